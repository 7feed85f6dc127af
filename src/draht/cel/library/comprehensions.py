"""Comprehensions with two variables: index and value of a list, key and value of a map.

Owns the syntax that their macros become, as upstream makes it (cel-go ``ext/comprehensions.go``).
"""

from __future__ import annotations

from typing import Final

from draht.cel.ast import Expr
from draht.cel.library.macros import counted, every, loop_variable, some
from draht.cel.macros import Builder, Macro, MacroError

__all__ = ["COMPREHENSION_MACROS", "MAP_INSERT"]

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
