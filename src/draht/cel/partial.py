"""An expression that is being read: the operands and operators that wait for what comes to their right.

Owns the precedence of operators: one place per precedence, each left empty as soon as an operator arrives that binds
less tightly. It doesn't read tokens; the parser hands over operands and operators in the order of the text.
"""

from __future__ import annotations

from typing import Final, final

from draht.cel.lexer import Token
from draht.cel.tree_builder import Operand, TreeBuilder

__all__ = ["UNARY", "PartialExpression"]

_MULTIPLICATIONS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_ADDITIONS: Final = {"+": "_+_", "-": "_-_"}
_RELATIONS: Final = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in"}
UNARY: Final = {"!": "!_", "-": "-_"}
"""The functions of the signs before an operand."""


@final
class PartialExpression:
    """What has been read of one expression."""

    __slots__ = (
        "_and_ops",
        "_and_terms",
        "_choices",
        "_or_ops",
        "_or_terms",
        "_product",
        "_relation",
        "_sign",
        "_sum",
    )

    def __init__(self) -> None:
        self._choices: list[tuple[Operand, Token, Operand | None]] = []
        self._or_terms: list[Operand] = []
        self._or_ops: list[Token] = []
        self._and_terms: list[Operand] = []
        self._and_ops: list[Token] = []
        self._relation: tuple[Operand, Token] | None = None
        self._sum: tuple[Operand, Token] | None = None
        self._product: tuple[Operand, Token] | None = None
        self._sign: tuple[Token, bool] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits for an operand."""
        return not (
            self._choices or self._or_ops or self._and_ops or self._relation or self._sum or self._product or self._sign
        )

    @property
    def question(self) -> Token | None:
        """The question mark whose colon hasn't come yet."""
        return self._choices[-1][1] if self._choices and self._choices[-1][2] is None else None

    def depths(self) -> tuple[int, int, int]:
        """How deep upstream's rules expr, relation and calc are nested at an operand that comes now."""
        return (
            1 + len(self._choices) - (self.question is not None),
            1 + (self._relation is not None),
            1 + (self._sum is not None) + (self._product is not None),
        )

    def sign(self, first: Token, *, odd: bool) -> None:
        """Signs stand before the operand that comes now; an even number of them means nothing."""
        self._sign = (first, odd)

    def signed(self, build: TreeBuilder, operand: Operand) -> Operand:
        """The operand with the signs before it."""
        if self._sign is None:
            return operand
        first, odd = self._sign
        self._sign = None
        if odd:
            operand = build.call(UNARY[first.kind], first, operand, deeper=0)
            operand = operand._replace(start=first.start)
            build.ranges[operand.expr.id] = (first.start, operand.end)
        return operand

    def operator(self, build: TreeBuilder, token: Token, operand: Operand) -> bool:
        """Put an operator behind what it binds; False if the token is none."""
        kind = token.kind
        if kind in _MULTIPLICATIONS:
            self._product = (self._multiplied(build, operand), token)
        elif kind in _ADDITIONS:
            self._sum = (self._added(build, operand), token)
        elif kind in _RELATIONS:
            self._relation = (self._related(build, operand), token)
        elif kind == "&&":
            self._and_terms.append(self._related(build, operand))
            self._and_ops.append(token)
        elif kind == "||":
            self._or_terms.append(self._conjunction(build, operand))
            self._or_ops.append(token)
        elif kind == "?" and self.question is None:
            self._choices.append((self._disjunction(build, operand), token, None))
        elif kind == ":" and self.question is not None:
            condition, question, _ = self._choices[-1]
            self._choices[-1] = (condition, question, self._disjunction(build, operand))
        else:
            return False
        return True

    def whole(self, build: TreeBuilder, operand: Operand) -> Operand:
        """The expression that ends with this operand; there must be no open `question`."""
        operand = self._disjunction(build, operand)
        while self._choices:
            condition, question, then = self._choices.pop()
            assert then is not None
            operand = build.call("_?_:_", question, condition, then, operand, deeper=1)
        return operand

    def _multiplied(self, build: TreeBuilder, operand: Operand) -> Operand:
        if self._product is not None:
            left, token = self._product
            self._product = None
            operand = build.call(_MULTIPLICATIONS[token.kind], token, left, operand, deeper=1)
        return operand

    def _added(self, build: TreeBuilder, operand: Operand) -> Operand:
        operand = self._multiplied(build, operand)
        if self._sum is not None:
            left, token = self._sum
            self._sum = None
            operand = build.call(_ADDITIONS[token.kind], token, left, operand, deeper=1)
        return operand

    def _related(self, build: TreeBuilder, operand: Operand) -> Operand:
        operand = self._added(build, operand)
        if self._relation is not None:
            left, token = self._relation
            self._relation = None
            operand = build.call(_RELATIONS[token.kind], token, left, operand, deeper=1)
        return operand

    def _conjunction(self, build: TreeBuilder, operand: Operand) -> Operand:
        terms, ops = [*self._and_terms, self._related(build, operand)], self._and_ops
        self._and_terms, self._and_ops = [], []
        return build.balanced("_&&_", terms, ops)

    def _disjunction(self, build: TreeBuilder, operand: Operand) -> Operand:
        terms, ops = [*self._or_terms, self._conjunction(build, operand)], self._or_ops
        self._or_terms, self._or_ops = [], []
        return build.balanced("_||_", terms, ops)
