"""Macros: calls that the parser replaces by other syntax.

Owns what a macro is and the builder of nodes that it gets. It doesn't know any macro; the libraries bring theirs
(``draht.cel.library.macros`` the standard ones).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from draht.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Field,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
)

__all__ = ["ACCUMULATOR", "ANY_NUMBER", "MOST_NODES", "UNUSED_VARIABLE", "Builder", "Macro", "MacroError", "Numbering"]

ANY_NUMBER: Final = -1
"""Stands for any number of arguments."""
ACCUMULATOR: Final = "@result"
"""The variable in which a fold collects; no identifier of an expression can be called so."""
UNUSED_VARIABLE: Final = "#unused"
"""The loop variable of a fold that runs over nothing, which is how a value gets a name."""
MOST_NODES: Final = 1 << 16
"""How many nodes an expression may have after expansion.

Macros that copy their receiver double it, and 10 KiB of them would fill any memory. Upstream has no such limit.
"""


class MacroError(Exception):
    """A macro's arguments aren't what it needs.

    Args:
        at: Offset in code points of what is wrong.
        message: One sentence for a person.
        hint: The next step, where one is known.
    """

    def __init__(self, at: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.hint = hint


@final
class Numbering:
    """The ids of one expression's nodes.

    Raises:
        MacroError: From `next`, at more than `MOST_NODES`.
    """

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    @property
    def full(self) -> bool:
        """Whether there are as many nodes as there may be."""
        return self.last > MOST_NODES

    def next(self, at: int) -> int:
        """A fresh id for a node at this offset."""
        self.last += 1
        if self.last > MOST_NODES:
            raise MacroError(at, "the expression is too large once its macros are expanded")
        return self.last


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes the nodes of an expansion; all are reported where the macro was called.

    Args:
        numbering: The ids of the expression.
        at: Offset of the call's opening parenthesis.
    """

    numbering: Numbering
    at: int

    def _id(self) -> int:
        return self.numbering.next(self.at)

    def literal(self, value: bool | int) -> Expr:
        """A constant."""
        return Literal(self._id(), self.at, value)

    def identifier(self, name: str) -> Expr:
        """A variable."""
        return Identifier(self._id(), self.at, name)

    def accumulator(self) -> Expr:
        """The variable in which the fold collects."""
        return self.identifier(ACCUMULATOR)

    def list_of(self, *elements: Expr) -> Expr:
        """A list literal."""
        return ListLiteral(self._id(), self.at, elements)

    def empty_map(self) -> Expr:
        """``{}``."""
        return MapLiteral(self._id(), self.at, ())

    def call(self, function: str, *args: Expr) -> Expr:
        """A call of a global function."""
        return Call(self._id(), self.at, function, None, args)

    def member_call(self, function: str, target: Expr, *args: Expr) -> Expr:
        """A call on a receiver."""
        return Call(self._id(), self.at, function, target, args)

    def presence(self, operand: Expr, field: str) -> Expr:
        """The test of ``has(operand.field)``."""
        return Select(self._id(), self.at, operand, field, test=True)

    def fold(
        self,
        range_: Expr,
        variable: str,
        initial: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
        *,
        second: str | None = None,
        accumulator: str = ACCUMULATOR,
    ) -> Expr:
        """A comprehension; see `draht.cel.ast.Comprehension`."""
        return Comprehension(
            self._id(), self.at, range_, variable, second, accumulator, initial, condition, step, result
        )

    def bind(self, name: str, value: Expr, result: Expr) -> Expr:
        """``result`` with ``name`` standing for ``value``: a fold over nothing."""
        return self.fold(
            self.list_of(), UNUSED_VARIABLE, value, self.literal(False), self.identifier(name), result, accumulator=name
        )

    def copy(self, expr: Expr) -> Expr:
        """The same tree with ids of its own, at the same places; its entries and fields where the macro was called.

        Raises:
            MacroError: The expression becomes too large.
        """
        # Each node is visited twice: first its parts are put on the stack, then it is made from their copies.
        todo: list[tuple[Expr, bool]] = [(expr, False)]
        done: list[Expr] = []
        while todo:
            node, parts_done = todo.pop()
            parts = _parts(node)
            if parts and not parts_done:
                todo.append((node, True))
                todo.extend((part, False) for part in reversed(parts))
                continue
            copies = tuple(done[len(done) - len(parts) :]) if parts else ()
            del done[len(done) - len(parts) :]
            done.append(self._rebuilt(node, copies))
        return done[0]

    def _rebuilt(self, node: Expr, parts: tuple[Expr, ...]) -> Expr:
        new = self.numbering.next(self.at)
        match node:
            case Literal():
                return Literal(new, node.at, node.value)
            case Identifier():
                return Identifier(new, node.at, node.name)
            case Select():
                return Select(new, node.at, parts[0], node.field, node.test)
            case Call():
                if node.target is None:
                    return Call(new, node.at, node.function, None, parts)
                return Call(new, node.at, node.function, parts[0], parts[1:])
            case ListLiteral():
                return ListLiteral(new, node.at, parts, node.optional)
            case MapLiteral():
                entries = tuple(
                    MapEntry(self._id(), self.at, parts[2 * index], parts[2 * index + 1], entry.optional)
                    for index, entry in enumerate(node.entries)
                )
                return MapLiteral(new, node.at, entries)
            case StructLiteral():
                fields = tuple(
                    Field(self._id(), self.at, field.name, value, field.optional)
                    for field, value in zip(node.fields, parts, strict=True)
                )
                return StructLiteral(new, node.at, node.type_name, fields)
            case Comprehension():
                return Comprehension(new, node.at, parts[0], node.variable, node.second, node.accumulator, *parts[1:])


def _parts(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.args if node.target is None else (node.target, *node.args)
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case StructLiteral():
            return tuple(field.value for field in node.fields)
        case Comprehension():
            return (node.range, node.initial, node.condition, node.step, node.result)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class Macro:
    """A call that is replaced.

    Args:
        name: The function's name.
        arguments: How many arguments it takes, or `ANY_NUMBER`.
        member: Called on a receiver.
        expand: Makes the replacement from a builder of nodes, the receiver and the arguments; None leaves the call.
            Raises `MacroError`.
    """

    name: str
    arguments: int
    member: bool
    expand: Callable[[Builder, Expr | None, tuple[Expr, ...]], Expr | None]
