"""What a name or a call in an expression refers to, and an expression with all of that found out.

Owns the result of checking. It doesn't find anything out; that is the checker's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from draht.cel.ast import Expr
    from draht.cel.declarations import Overload
    from draht.cel.types import Type

__all__ = ["Checked", "Reference"]


@dataclass(frozen=True, slots=True)
class Reference:
    """What an identifier or a call means.

    Args:
        name: The variable's, the type's or the function's name, without a leading dot.
        overloads: For a call: the signatures that its operands' types allow, in the order of the declaration. More
            than one where types are known only at run time.
        constant: Whether the name stands for a value that is known now.
        value: That value; for the name of a type the `Type`.
    """

    name: str
    overloads: tuple[Overload, ...] = ()
    constant: bool = False
    value: Any = None


@dataclass(frozen=True, slots=True)
class Checked:
    """An expression whose types and references are known.

    Args:
        expr: The tree, in which qualified names are resolved: ``a.b.c`` that is one name has become an `Identifier`,
            and ``a.b(x)`` that calls the function ``a.b`` a `Call` without receiver. Ids are those of the parsed tree.
        types: Type of each node by its id; free type parameters have become ``dyn``.
        references: What identifiers and calls refer to, by the node's id. A variable of a comprehension has one too.
    """

    expr: Expr
    types: Mapping[int, Type]
    references: Mapping[int, Reference]

    @property
    def output(self) -> Type:
        """The type of the whole expression."""
        return self.types[self.expr.id]
