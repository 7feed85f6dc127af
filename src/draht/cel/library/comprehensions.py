"""Comprehensions with two variables: index and value of a list, key and value of a map.

Owns the syntax that their macros become and the function with which they collect maps, as upstream makes them (cel-go
v0.29.2 ``ext/comprehensions.go``).
"""

from __future__ import annotations

from typing import Any, Final, final

from draht.cel.ast import Expr
from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError
from draht.cel.library.macros import counted, every, loop_variable, some
from draht.cel.macros import Builder, Macro, MacroError
from draht.cel.types import map_of, parameter
from draht.cel.values import MISSING, Map, key_of

__all__ = ["COMPREHENSION_MACROS", "LIBRARY", "MAP_INSERT"]

MAP_INSERT: Final = "cel.@mapInsert"
"""The function with which folds put an entry into a map."""


def _variables(args: tuple[Expr, ...]) -> tuple[str, str]:
    first, second = loop_variable(args[0]), loop_variable(args[1])
    if first == second:
        raise MacroError(args[1].at, f"both loop variables are called {first}", "give them different names")
    return first, second


def _all(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    return every(build, target, *_variables(args), args[2])


def _exists(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    return some(build, target, *_variables(args), args[2])


def _exists_one(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    return counted(build, target, *_variables(args), args[2])


def _collect(build: Builder, target: Expr, args: tuple[Expr, ...], initial: Expr, step: Expr) -> Expr:
    """The fold that takes each step, or with four arguments only where the third is true."""
    first, second = _variables(args)
    if len(args) == 4:
        step = build.call("_?_:_", args[2], step, build.accumulator())
    return build.fold(target, first, initial, build.literal(True), step, build.accumulator(), second=second)


def _transform_list(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    step = build.call("_+_", build.accumulator(), build.list_of(args[-1]))
    return _collect(build, target, args, build.list_of(), step)


def _transform_map(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    key, _ = _variables(args)
    step = build.call(MAP_INSERT, build.accumulator(), build.identifier(key), args[-1])
    return _collect(build, target, args, build.empty_map(), step)


def _transform_map_entry(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    step = build.call(MAP_INSERT, build.accumulator(), args[-1])
    return _collect(build, target, args, build.empty_map(), step)


COMPREHENSION_MACROS: Final = (
    Macro("all", 3, True, _all),
    Macro("exists", 3, True, _exists),
    Macro("existsOne", 3, True, _exists_one),
    Macro("exists_one", 3, True, _exists_one),
    Macro("transformList", 3, True, _transform_list),
    Macro("transformList", 4, True, _transform_list),
    Macro("transformMap", 3, True, _transform_map),
    Macro("transformMap", 4, True, _transform_map),
    Macro("transformMapEntry", 3, True, _transform_map_entry),
    Macro("transformMapEntry", 4, True, _transform_map_entry),
)


@final
class _Collected(Map):
    """The map that a fold collects; nobody else sees it before the fold ends, so it may grow in place."""

    __slots__ = ()


def _insert(collected: Map, key: Any, value: Any) -> Map:
    if not isinstance(collected, _Collected):
        collected = _Collected(dict(collected.entries))
    if collected.entry(key) is not MISSING:
        raise EvaluationError(
            f"the map has the key {str(key)[:80]!r} already", hint="make the keys different, or filter the elements"
        )
    collected.entries[key_of(key)] = value
    return collected


def _insert_all(collected: Map, added: Map) -> Map:
    for key, value in added.items():
        collected = _insert(collected, key, value)
    return collected


_K: Final = parameter("K")
_V: Final = parameter("V")
_MAP: Final = map_of(_K, _V)

LIBRARY: Final = Library(
    "comprehensions",
    (
        Function(
            MAP_INSERT,
            (
                Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert),
                Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
            ),
        ),
    ),
    COMPREHENSION_MACROS,
)
