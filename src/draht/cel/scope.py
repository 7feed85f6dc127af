"""What a name in an expression stands for: a variable of a fold around it, or something that the environment declares.

Owns the order of look-ups. A name of several parts is looked up as a whole before it is taken for a selection of its
first part, unless the first part is a local variable; a leading dot passes local variables by. Source: cel-go v0.29.2
``checker/env.go`` and ``checker/scopes.go``, with an empty container.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

from draht.cel.ast import Expr, Identifier, Select
from draht.cel.declarations import Environment
from draht.cel.reference import Reference
from draht.cel.types import Type, type_of

__all__ = ["Named", "Scope", "spelled"]


class Named(NamedTuple):
    """What a name was found to be."""

    name: str
    """The name by which the tree goes on to call it: with a leading dot where a local variable has the same name."""
    reference: Reference
    type: Type


@final
class Scope:
    """The names that can be seen at one place of an expression.

    Args:
        environment: What can be seen everywhere.
    """

    __slots__ = ("_environment", "_locals")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._locals: dict[str, list[Type]] = {}

    def enter(self, variables: Mapping[str, Type]) -> None:
        """Variables become visible, and hide those of the same name."""
        for name, kind in variables.items():
            self._locals.setdefault(name, []).append(kind)

    def leave(self, variables: Mapping[str, Type]) -> None:
        """Variables that were entered last are gone."""
        for name in variables:
            self._locals[name].pop()

    def variables(self) -> list[str]:
        """The names of all variables that can be seen."""
        return [*self._environment.variables, *(name for name, stack in self._locals.items() if stack)]

    def simple(self, name: str) -> Named | None:
        """What an identifier stands for."""
        bare = name.removeprefix(".")
        stack = self._locals.get(bare)
        if stack and bare == name:
            return Named(name, Reference(name), stack[-1])
        return self._declared(bare, hidden=bool(stack))

    def qualified(self, expr: Select) -> Named | None:
        """What a chain of selections stands for as one name."""
        name = spelled(expr)
        if name is None:
            return None
        bare = name.removeprefix(".")
        stack = self._locals.get(bare.split(".", 1)[0])
        if stack and bare == name:
            return None
        return self._declared(bare, hidden=bool(stack))

    def _declared(self, name: str, *, hidden: bool) -> Named | None:
        seen_as = "." + name if hidden else name
        environment = self._environment
        variable = environment.variables.get(name)
        if variable is not None:
            return Named(seen_as, Reference(name), variable)
        kind = environment.types.get(name)
        if kind is not None:
            return Named(seen_as, Reference(name, constant=True, value=kind), type_of(kind))
        constant = environment.constants.get(name)
        if constant is not None:
            return Named(seen_as, Reference(name, constant=True, value=constant[1]), constant[0])
        return None


def spelled(expr: Expr) -> str | None:
    """The dotted name that an identifier or a chain of selections spells; None for anything else."""
    names: list[str] = []
    while isinstance(expr, Select):
        if expr.test:
            return None
        names.append(expr.field)
        expr = expr.operand
    if not isinstance(expr, Identifier):
        return None
    return ".".join([expr.name, *reversed(names)])
