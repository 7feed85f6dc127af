"""The standard macros: ``has``, ``all``, ``exists``, ``exists_one``, ``map``, ``filter``.

Owns the syntax that they become, node for node as upstream makes it (cel-go ``parser/macro.go``): the cost of an
expression is counted on these nodes. ``existsOne`` isn't among them: upstream's standard library has it with two
variables only. It doesn't know macros of other libraries.
"""

from __future__ import annotations

from typing import Final

from draht.cel.ast import Expr, Identifier, Select
from draht.cel.macros import ACCUMULATOR, Builder, Macro, MacroError

__all__ = ["STANDARD_MACROS", "counted", "every", "loop_variable", "some"]

_OLD_ACCUMULATOR: Final = "__result__"
"""Upstream's former name of the accumulator, which it still refuses."""


def loop_variable(argument: Expr) -> str:
    """The name that an argument gives to the loop variable.

    Raises:
        MacroError: It isn't a plain name.
    """
    if not isinstance(argument, Identifier):
        raise MacroError(
            argument.at,
            "the first argument names the loop variable and must be a plain name",
            "write it like list.all(x, x > 0)",
        )
    if argument.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError(argument.at, f"{argument.name} can't name a loop variable", "choose another name")
    return argument.name


def every(build: Builder, range_: Expr, first: str, second: str | None, predicate: Expr) -> Expr:
    """True while no element fails the predicate."""
    return build.fold(
        range_,
        first,
        build.literal(True),
        build.call("@not_strictly_false", build.accumulator()),
        build.call("_&&_", build.accumulator(), predicate),
        build.accumulator(),
        second=second,
    )


def some(build: Builder, range_: Expr, first: str, second: str | None, predicate: Expr) -> Expr:
    """False until an element satisfies the predicate."""
    return build.fold(
        range_,
        first,
        build.literal(False),
        build.call("@not_strictly_false", build.call("!_", build.accumulator())),
        build.call("_||_", build.accumulator(), predicate),
        build.accumulator(),
        second=second,
    )


def counted(build: Builder, range_: Expr, first: str, second: str | None, predicate: Expr) -> Expr:
    """Whether the number of elements that satisfy the predicate is one."""
    return build.fold(
        range_,
        first,
        build.literal(0),
        build.literal(True),
        build.call("_?_:_", predicate, build.call("_+_", build.accumulator(), build.literal(1)), build.accumulator()),
        build.call("_==_", build.accumulator(), build.literal(1)),
        second=second,
    )


def _has(
    build: Builder,
    target: Expr | None,  # noqa: ARG001 - every expansion is called with a receiver, if only None
    args: tuple[Expr, ...],
) -> Expr:
    (argument,) = args
    if not isinstance(argument, Select):
        raise MacroError(
            argument.at,
            "has() asks for a field: its argument must end in .name",
            'a key that isn\'t a name is asked for with "key" in map',
        )
    return build.presence(argument.operand, argument.field)


def _all(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    return every(build, target, loop_variable(args[0]), None, args[1])


def _exists(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    return some(build, target, loop_variable(args[0]), None, args[1])


def _exists_one(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    return counted(build, target, loop_variable(args[0]), None, args[1])


def _map(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    variable = loop_variable(args[0])
    initial = build.list_of()
    step = build.call("_+_", build.accumulator(), build.list_of(args[-1]))
    if len(args) == 3:
        step = build.call("_?_:_", args[1], step, build.accumulator())
    return build.fold(target, variable, initial, build.literal(True), step, build.accumulator())


def _filter(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    variable = loop_variable(args[0])
    initial = build.list_of()
    step = build.call("_+_", build.accumulator(), build.list_of(args[0]))
    step = build.call("_?_:_", args[1], step, build.accumulator())
    return build.fold(target, variable, initial, build.literal(True), step, build.accumulator())


STANDARD_MACROS: Final = (
    Macro("has", 1, False, _has),
    Macro("all", 2, True, _all),
    Macro("exists", 2, True, _exists),
    Macro("exists_one", 2, True, _exists_one),
    Macro("map", 2, True, _map),
    Macro("map", 3, True, _map),
    Macro("filter", 2, True, _filter),
)
