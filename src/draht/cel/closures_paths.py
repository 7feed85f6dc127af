"""Code of ``a.b``, ``a[b]``, ``a.?b``, ``a[?b]`` and ``has(a.b)``.

A chain of them is one path: a root and steps. After the first optional step, or if the root is an optional, the rest is
optional too and a missing key ends the path with ``optional.none()`` instead of an error. Source: cel-go v0.29.2
``interpreter/attributes.go``, where a path is called attribute and a step qualifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from draht.cel.closures_logic import Closure
from draht.cel.errors import EvaluationError
from draht.cel.numbers import UInt
from draht.cel.values import MAX_INT64, MISSING, NONE, Map, Optional, type_name

__all__ = ["Step", "check_key", "index", "no_such_key", "path", "present"]

_KEYS: Final = frozenset({str, int, UInt, bool, float})
"""What maps and lists can be asked for."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path.

    Args:
        key: The key where it is known, or `MISSING`.
        computed: Code of the key where it isn't.
        optional: Written with a question mark.
        test: The last step of ``has()``.
    """

    key: Any
    computed: Closure | None = None
    optional: bool = False
    test: bool = False


def no_such_key(key: Any) -> EvaluationError:
    """The error of a key that a map lacks."""
    return EvaluationError(f"no such key: {_shown(key)}", kind="no-such-key")


def check_key(key: Any) -> None:
    """Refuse what no map or list can be asked for.

    Raises:
        EvaluationError: The value is neither string, number nor bool.
    """
    if type(key) not in _KEYS:
        raise EvaluationError(f"invalid key: a value of type {type_name(key)}")


def index(value: Any, key: Any) -> Any:
    """``value[key]``.

    Raises:
        EvaluationError: There is no such key or index, or the value has none at all.
    """
    if isinstance(value, Map):
        found = value.find(key)
        if found is MISSING:
            raise no_such_key(key)
        return found
    if type(value) is list or type(value) is tuple:
        at = _position(key)
        if 0 <= at < len(value):
            return value[at]
        raise EvaluationError(f"index out of bounds: {_shown(key)}", kind="index")
    raise no_such_key(key)


def present(value: Any, key: Any) -> Any:
    """``value[key]``, or `MISSING`.

    Raises:
        EvaluationError: A list is asked for what is no number.
    """
    if isinstance(value, Map):
        return value.find(key)
    if type(value) is list or type(value) is tuple:
        at = _position(key)
        return value[at] if 0 <= at < len(value) else MISSING
    return MISSING


def _position(key: Any) -> int:
    kind = type(key)
    if kind is int:
        return key  # type: ignore[no-any-return]  # just compared
    if kind is UInt and key <= MAX_INT64:
        return int(key)
    if kind is float and key == key and abs(key) < 2.0**63 and key.is_integer():
        return int(key)
    if kind is UInt or kind is float:
        raise EvaluationError(f"unsupported index value {_shown(key)} in list", kind="index")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list", kind="index")


def _shown(key: Any) -> str:
    return key[:100] if type(key) is str else str(key)


def path(root: Closure, steps: Sequence[Step], *, bare: bool = False) -> Closure:
    """The path from what the root gives along the steps.

    Args:
        root: Code of the value to start from.
        steps: At least one.
        bare: The path is a branch of a condition or a key. There upstream forgets that ``has()`` of an optional is a
            question, and what was to be tested is the value.
    """
    plain = all(step.computed is None and not step.optional and not step.test for step in steps)
    if plain and len(steps) == 1:
        return _one_name(root, steps[0].key) if type(steps[0].key) is str else _one_step(root, steps[0].key)
    if plain and len(steps) == 3 and all(type(step.key) is str for step in steps):
        return _three_names(root, steps)
    if (
        len(steps) == 3
        and steps[2].test
        and not bare
        and all(type(step.key) is str and not step.optional for step in steps)
    ):
        return _has_third_name(root, steps)
    return _any_path(root, steps, bare=bare)


def _any_path(root: Closure, steps: Sequence[Step], *, bare: bool = False) -> Closure:
    kept = tuple((step.key, step.computed, step.optional, step.test) for step in steps)
    tests = steps[-1].test and not bare
    absent = False if tests else NONE

    def followed(frame: Any) -> Any:
        value = root(frame)
        optional = False
        if type(value) is Optional:
            value = value.value
            if value is MISSING:
                return absent
            optional = True
        for key, computed, asks, test in kept:
            if computed is not None:
                key = computed(frame)
                check_key(key)
            if asks or optional:
                optional = True
                value = present(value, key)
                if value is MISSING:
                    return absent
            elif test:
                return present(value, key) is not MISSING
            else:
                value = index(value, key)
        if tests:
            return True
        return Optional(value) if optional else value

    return followed


def _one_step(root: Closure, key: Any) -> Closure:
    def followed(frame: Any) -> Any:
        value = root(frame)
        if isinstance(value, Map):
            found = value.find(key)
            if found is MISSING:
                raise no_such_key(key)
            return found
        if type(value) is Optional:
            if value.value is MISSING:
                return NONE
            found = present(value.value, key)
            return NONE if found is MISSING else Optional(found)
        return index(value, key)

    return followed


def _one_name(root: Closure, name: str) -> Closure:
    """``device.driver``, and ``own.id`` of what has been bound to a domain."""
    long_way = _one_step(root, name)

    def followed(frame: Any) -> Any:
        try:
            return root(frame).entries[name]
        except (KeyError, AttributeError):
            # It isn't there, or the root is no map.
            return long_way(frame)

    return followed


def _three_names(root: Closure, steps: Sequence[Step]) -> Closure:
    """``device.attributes["domain"].id``, which is most of what selectors read."""
    first, second, third = (step.key for step in steps)
    long_way = path(path(root, steps[:2]), steps[2:])

    def followed(frame: Any) -> Any:
        try:
            return root(frame).entries[first].entries[second].entries[third]
        except (KeyError, AttributeError):
            # Something isn't there, or is no map.
            return long_way(frame)

    return followed


def _has_third_name(root: Closure, steps: Sequence[Step]) -> Closure:
    """``has(device.attributes["domain"].id)``."""
    first, second, third = (step.key for step in steps)
    long_way = _any_path(root, steps)

    def followed(frame: Any) -> Any:
        try:
            if third in root(frame).entries[first].entries[second].entries:
                return True
        except (KeyError, AttributeError):
            pass
        # A map may find what isn't in it.
        return long_way(frame)

    return followed
