"""What of a device an expression reads.

Owns the analysis and its result. The result is a promise: two devices that are equal in what is mentioned have the same
outcome, errors included, so one evaluation does for all of them. Whatever isn't plain reading of a known key counts as
reading the whole map: loops, computed keys, a map as a value. Names given by ``cel.bind`` are followed. Whether a
device is defective (`draht.cel.device.Device.defect`) always matters and isn't listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from draht.cel.ast import Call, Comprehension, Expr, Identifier, Literal, Select
from draht.cel.folds import shape_of
from draht.cel.walk import children

__all__ = ["Key", "Mentions", "exact_path", "mentions_of"]

_INPUT: Final = "device"
_MAPS: Final = frozenset({"attributes", "capacity"})


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A place in a device's maps.

    Args:
        map: ``attributes`` or ``capacity``.
        domain: The domain; empty with ``whole``, for all of the map.
        id: The identifier; empty with ``whole``, for all of the domain.
        whole: Not one value but a map.
    """

    map: str
    domain: str
    id: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Mentions:
    """What an expression reads of a device.

    Args:
        driver: It reads ``device.driver``.
        allow_multiple: It reads ``device.allowMultipleAllocations``.
        keys: What it reads of attributes and capacity.
        everything: It uses the device as a value; the rest says nothing then.
    """

    driver: bool = False
    allow_multiple: bool = False
    keys: frozenset[Key] = frozenset()
    everything: bool = False


def mentions_of(expr: Expr) -> Mentions:
    """What a checked expression reads of ``device``."""
    reads = list(_reads(expr))
    keys = set()
    driver = allow_multiple = everything = False
    for path in reads:
        if not path:
            everything = True
        elif path[0] == "driver":
            driver = True
        elif path[0] == "allowMultipleAllocations":
            allow_multiple = True
        elif path[0] in _MAPS:
            keys.add(_key(path))
        else:
            everything = True
    return Mentions(driver, allow_multiple, frozenset(keys), everything)


def _key(path: tuple[str, ...]) -> Key:
    if len(path) == 1:
        return Key(path[0], "", whole=True)
    if len(path) == 2:
        return Key(path[0], path[1], whole=True)
    return Key(path[0], path[1], path[2])


_Scope = dict[str, tuple[str, ...] | None]
"""Variables: the path into the device that a name stands for, or None for anything else."""


def _reads(expr: Expr) -> Iterator[tuple[str, ...]]:
    """The paths that are read, each as far as its keys are known."""
    waiting: list[tuple[Expr, _Scope]] = [(expr, {})]
    while waiting:
        node, scope = waiting.pop()
        path, rest = _path(node, scope)
        waiting.extend((part, scope) for part in rest)
        if path is not None:
            yield path
        elif isinstance(node, Call) and node.function == "@in":
            container, rest = _path(node.args[1], scope)
            if container is not None and isinstance(node.args[0], Literal) and isinstance(node.args[0].value, str):
                # Whether a key is there is part of what is known when its value is.
                yield (*container, node.args[0].value)
                waiting.extend((part, scope) for part in rest)
            else:
                waiting.extend((part, scope) for part in node.args)
        elif isinstance(node, Comprehension):
            waiting.extend(_parts(node, scope))
        elif not rest:
            waiting.extend((part, scope) for part in children(node))


def _parts(node: Comprehension, scope: _Scope) -> Iterator[tuple[Expr, _Scope]]:
    inner: _Scope = {**scope, node.variable: None, node.accumulator: None}
    if node.second is not None:
        inner[node.second] = None
    yield node.range, scope
    if shape_of(node).kind == "bind":
        bound, rest = _path(node.initial, scope)
        if bound is not None and not rest and not _is_optional(node.initial):
            yield node.result, {**scope, node.accumulator: bound}
            return
    yield node.initial, scope
    yield node.condition, inner
    yield node.step, inner
    yield node.result, inner


def _path(node: Expr, scope: _Scope) -> tuple[tuple[str, ...] | None, list[Expr]]:
    """The path from the device as far as keys are known, and the computed keys behind that, which are read as well.

    None with nothing where the node is no path from the device.
    """
    keys: list[Any] = []
    computed: list[Expr] = []
    while True:
        match node:
            case Select():
                keys.append(node.field)
                node = node.operand
            case Call(function="_[_]" | "_[?_]" | "_?._"):
                key = node.args[1]
                known = isinstance(key, Literal) and isinstance(key.value, str)
                keys.append(key.value if known and isinstance(key, Literal) else None)
                if not isinstance(key, Literal):
                    computed.append(key)
                node = node.args[0]
            case _:
                break
    if not isinstance(node, Identifier):
        return None, []
    name = node.name.removeprefix(".")
    start = scope.get(node.name, () if name == _INPUT else None)
    if start is None:
        return None, []
    keys.reverse()
    known_keys = keys[: keys.index(None)] if None in keys else keys
    return (*start, *known_keys), computed


def exact_path(node: Expr) -> tuple[str, ...] | None:
    """The keys of ``device.a["b"].c`` if the node is nothing but that: all known, none optional, no ``has()``."""
    keys: list[str] = []
    while True:
        match node:
            case Select(test=False):
                keys.append(node.field)
                node = node.operand
            case Call(function="_[_]", args=(operand, Literal(value=str(key)))):
                keys.append(key)
                node = operand
            case Identifier(name="device") | Identifier(name=".device"):
                return tuple(reversed(keys))
            case _:
                return None


def _is_optional(node: Expr) -> bool:
    while isinstance(node, Select | Call):
        if isinstance(node, Call):
            if node.function != "_[_]":
                return True
            node = node.args[0]
        else:
            node = node.operand
    return False
