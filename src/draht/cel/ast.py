"""The syntax tree of CEL: what the parser makes, and what the checker, the cost estimator and the compiler walk.

Owns the node types only. Macros are already expanded here: ``all``, ``map`` and the like have become `Comprehension`,
``has(a.b)`` a `Select` that tests. Operators are calls of the functions that the CEL specification names for them
(``_+_``, ``_&&_``, ``_?_:_``, ``_[_]``, ``@in`` …), so nothing behind the parser knows operators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from draht.cel.numbers import UInt

__all__ = [
    "Call",
    "Comprehension",
    "Expr",
    "Field",
    "Identifier",
    "ListLiteral",
    "Literal",
    "MapEntry",
    "MapLiteral",
    "Select",
    "StructLiteral",
]


@dataclass(frozen=True, slots=True)
class _Node:
    id: int
    """Unique in one expression; the key of what the checker finds out about the node."""
    at: int
    """Offset in code points of where the node is reported: an operator's sign, a call's opening parenthesis or dot."""


@dataclass(frozen=True, slots=True)
class Literal(_Node):
    """A constant. ``bool`` before ``int``: Python's True is an int, CEL's isn't."""

    value: bool | int | UInt | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Identifier(_Node):
    """A name; with a leading dot where it was written so."""

    name: str


@dataclass(frozen=True, slots=True)
class Select(_Node):
    """``operand.field``, or with ``test`` what ``has(operand.field)`` asks."""

    operand: Expr
    field: str
    test: bool = False


@dataclass(frozen=True, slots=True)
class Call(_Node):
    """A function call; ``target`` is the receiver of ``target.function(args)``."""

    function: str
    target: Expr | None
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral(_Node):
    """``[a, ?b]``; ``optional`` holds the indices of elements written with a question mark."""

    elements: tuple[Expr, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapEntry(_Node):
    """One entry of a map literal."""

    key: Expr
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class MapLiteral(_Node):
    """``{key: value}``."""

    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class Field(_Node):
    """One field of a struct literal."""

    name: str
    value: Expr
    optional: bool = False


@dataclass(frozen=True, slots=True)
class StructLiteral(_Node):
    """``Type{field: value}``."""

    type_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Comprehension(_Node):
    """A fold over a list or map: what the macros become.

    ``accumulator`` starts as ``initial``; for each element, while ``condition`` holds, it becomes ``step``; the value
    of the whole is ``result``. With ``second`` the variables are index and value, or key and value.
    """

    range: Expr
    variable: str
    second: str | None
    accumulator: str
    initial: Expr
    condition: Expr
    step: Expr
    result: Expr


Expr: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension
