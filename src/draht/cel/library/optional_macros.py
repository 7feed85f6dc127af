"""The macros of optional values: ``optMap`` and ``optFlatMap``.

Owns their syntax as upstream makes it (cel-go ``cel/library.go``): the receiver is written twice, once to ask whether
it has a value and once to take it. The functions that they call are in ``draht.cel.library.optional``.
"""

from __future__ import annotations

from typing import Final

from draht.cel.ast import Expr, Identifier
from draht.cel.macros import Builder, Macro, MacroError

__all__ = ["OPTIONAL_MACROS"]


def _variable(argument: Expr) -> str:
    if not isinstance(argument, Identifier):
        message = "the first argument names the value and must be a plain name"
        raise MacroError(argument.at, message, "write it like value.optMap(v, v + 1)")
    return argument.name


def _opt_map(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    bound = build.bind(_variable(args[0]), build.member_call("value", build.copy(target)), args[1])
    present = build.member_call("hasValue", target)
    return build.call("_?_:_", present, build.call("optional.of", bound), build.call("optional.none"))


def _opt_flat_map(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    bound = build.bind(_variable(args[0]), build.member_call("value", build.copy(target)), args[1])
    return build.call("_?_:_", build.member_call("hasValue", target), bound, build.call("optional.none"))


OPTIONAL_MACROS: Final = (Macro("optMap", 2, True, _opt_map), Macro("optFlatMap", 2, True, _opt_flat_map))
