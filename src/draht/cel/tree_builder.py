"""Making the nodes of a tree while its text is read.

Owns ids, the ranges of text that nodes have, the limit on how deep operators stand within each other, the expansion of
macros, and the list of issues. It doesn't know the grammar; the parser says which node to make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from draht.cel.ast import Call, Expr, Literal
from draht.cel.errors import Issue
from draht.cel.lexer import MOST_ISSUES, Token
from draht.cel.macros import ANY_NUMBER, Builder, Macro, MacroError, Numbering
from draht.cel.source import Source

__all__ = ["MOST_DEPTH", "Macros", "Operand", "Stop", "TreeBuilder"]

MOST_DEPTH: Final = 250
"""How deep rules of the grammar, and operators, may be nested; upstream's number."""

Macros = Mapping[tuple[str, int, bool], Macro]


class Stop(Exception):  # noqa: N818 - it isn't an error but the end of reading
    """Nothing after this can be judged; why is among the issues."""


class Operand(NamedTuple):
    """A part of the tree that is done."""

    expr: Expr
    height: int
    """How many operators that upstream counts are within each other."""
    start: int
    end: int


@final
class TreeBuilder:
    """The tree of one text, as far as it has been read.

    Args:
        source: The text.
        issues: What the lexer found; what is found here is added.
        macros: The macros of the environment.
    """

    def __init__(self, source: Source, issues: list[Issue], macros: Macros) -> None:
        self.source = source
        self.issues = issues
        self.ranges: dict[int, tuple[int, int]] = {}
        self.expands = True
        """Whether macros are expanded; not once something has been left out of the tree."""
        self._macros = macros
        self._numbering = Numbering()

    def report(self, at: int, message: str, hint: str | None = None) -> None:
        """Something is wrong; one thing is said of each place.

        Raises:
            Stop: Enough is wrong.
        """
        place = self.source.place(at)
        if any((issue.line, issue.column) == place for issue in self.issues):
            return
        self.issues.append(Issue(message, *place, hint))
        if len(self.issues) >= MOST_ISSUES:
            raise Stop

    def number(self, at: int) -> int:
        """A fresh id for a node at this offset."""
        return self._numbering.next(at)

    def stand_in(self, start: int, end: int) -> Operand:
        """What stands for a part that couldn't be read."""
        return Operand(Literal(self._numbering.next(start), start, None), 0, start, end)

    def made(self, expr: Expr, height: int, start: int, end: int) -> Operand:
        """A node with the text that it was read from.

        Raises:
            Stop: Too many operators are within each other.
        """
        if height > MOST_DEPTH:
            self.report(expr.at, f"operators are nested deeper than {MOST_DEPTH} levels", "split the expression")
            raise Stop
        self.ranges[expr.id] = (start, end)
        return Operand(expr, height, start, end)

    def call(self, function: str, token: Token, *args: Operand, deeper: int) -> Operand:
        """An operator over operands; ``deeper`` is 1 for the operators that upstream counts."""
        expr = Call(self._numbering.next(token.start), token.start, function, None, tuple(arg.expr for arg in args))
        height = max(arg.height for arg in args) + deeper
        return self.made(expr, height, args[0].start, args[-1].end)

    def called(
        self, function: str, opening: Token, target: Operand | None, args: Sequence[Operand], start: int, end: int
    ) -> Operand:
        """A call, or what a macro makes of it."""
        member = target is not None
        receiver = target.expr if target is not None else None
        values = tuple(arg.expr for arg in args)
        height = max((arg.height for arg in args), default=0)
        if target is not None:
            height = max(height, target.height) + 1
        macro = self._macros.get((function, len(args), member)) or self._macros.get((function, ANY_NUMBER, member))
        if macro is not None and self.expands:
            if height > MOST_DEPTH:
                raise MacroError(opening.start, f"operators are nested deeper than {MOST_DEPTH} levels")
            made = self._expanded(macro, opening, receiver, values)
            if made is not None:
                return self.made(made, height, start, end)
        expr = Call(self._numbering.next(opening.start), opening.start, function, receiver, values)
        return self.made(expr, height, start, end)

    def _expanded(self, macro: Macro, opening: Token, receiver: Expr | None, values: tuple[Expr, ...]) -> Expr | None:
        try:
            return macro.expand(Builder(self._numbering, opening.start), receiver, values)
        except MacroError as error:
            self.report(error.at, error.message, error.hint)
            if self._numbering.full:
                raise Stop from None
            return None

    def balanced(self, function: str, terms: Sequence[Operand], ops: Sequence[Token]) -> Operand:
        """One operator over many terms as a tree of least depth, as upstream builds it."""
        if len(terms) == 1:
            return terms[0]

        def over(low: int, high: int) -> Operand:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else over(low, middle - 1)
            right = terms[middle + 1] if middle == high else over(middle + 1, high)
            return self.call(function, ops[middle], left, right, deeper=0)

        return over(0, len(ops) - 1)
