"""``cel.bind(name, value, expression)``.

Owns the macro as upstream makes it (cel-go ``ext/bindings.go``): a fold over nothing whose accumulator has the name.
"""

from __future__ import annotations

from typing import Final

from draht.cel.ast import Expr, Identifier
from draht.cel.declarations import Library
from draht.cel.macros import Builder, Macro, MacroError

__all__ = ["BIND_MACROS", "LIBRARY"]


def _bind(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    if not isinstance(target, Identifier) or target.name != "cel":
        return None
    name, value, result = args
    if not isinstance(name, Identifier):
        message = "the first argument of cel.bind() names the value and must be a plain name"
        raise MacroError(name.at, message, "write it like cel.bind(x, 1 + 2, x * x)")
    return build.bind(name.name, value, result)


BIND_MACROS: Final = (Macro("bind", 3, True, _bind),)

LIBRARY: Final = Library("bindings", macros=BIND_MACROS)
