"""Recognising what a comprehension was made from.

The parser replaces macros by folds, and a fold that is run as a fold is slow: its accumulator is read and written for
every element. Owns the shapes of the standard macros' folds, so that the compiler can run them as the loops they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from draht.cel.ast import Call, Comprehension, Expr, Identifier, ListLiteral, Literal

__all__ = ["Shape", "shape_of"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a fold means.

    Args:
        kind: ``bind`` (`cel.bind`), ``every`` (`all`), ``some`` (`exists`), ``only_one`` (`exists_one`), ``mapped``
            (`map`, `filter`, `transformList`) or ``other``.
        predicate: What is asked of each element, if anything is.
        element: What ``mapped`` collects.
    """

    kind: OneOf["bind", "every", "some", "only_one", "mapped", "other"]
    predicate: Expr | None = None
    element: Expr | None = None


_OTHER = Shape("other")


def shape_of(expr: Comprehension) -> Shape:
    """The shape of a fold; ``other`` where it isn't one that the standard macros make."""
    if _is(expr.condition, False):
        empty = isinstance(expr.range, ListLiteral) and not expr.range.elements
        return Shape("bind") if empty else _OTHER
    name = expr.accumulator
    if name in {expr.variable, expr.second} or not isinstance(expr.step, Call):
        return _OTHER
    if _reads(expr.result, name):
        return _every_or_some(expr, expr.step) or _mapped(expr, expr.step) or _OTHER
    return _only_one(expr, expr.step) or _OTHER


def _is(expr: Expr, value: bool | int) -> bool:
    return isinstance(expr, Literal) and type(expr.value) is type(value) and expr.value == value


def _reads(expr: Expr, name: str) -> bool:
    return isinstance(expr, Identifier) and expr.name == name


def _asks(expr: Expr, function: str) -> Expr | None:
    """The operand of a unary call."""
    if isinstance(expr, Call) and expr.function == function and len(expr.args) == 1:
        return expr.args[0]
    return None


def _every_or_some(expr: Comprehension, step: Call) -> Shape | None:
    asked = _asks(expr.condition, "@not_strictly_false")
    if asked is None or step.function not in {"_&&_", "_||_"} or not _reads(step.args[0], expr.accumulator):
        return None
    if step.function == "_&&_" and _is(expr.initial, True) and _reads(asked, expr.accumulator):
        return Shape("every", step.args[1])
    negated = _asks(asked, "!_")
    if step.function == "_||_" and _is(expr.initial, False) and negated is not None:
        return Shape("some", step.args[1]) if _reads(negated, expr.accumulator) else None
    return None


def _mapped(expr: Comprehension, step: Call) -> Shape | None:
    if not _is(expr.condition, True) or not isinstance(expr.initial, ListLiteral) or expr.initial.elements:
        return None
    predicate = None
    if step.function == "_?_:_":
        if not isinstance(step.args[1], Call) or not _reads(step.args[2], expr.accumulator):
            return None
        predicate, step = step.args[0], step.args[1]
    if step.function != "_+_" or not _reads(step.args[0], expr.accumulator):
        return None
    added = step.args[1]
    if not isinstance(added, ListLiteral) or len(added.elements) != 1 or added.optional:
        return None
    return Shape("mapped", predicate, added.elements[0])


def _only_one(expr: Comprehension, step: Call) -> Shape | None:
    result = expr.result
    if not (isinstance(result, Call) and result.function == "_==_" and _reads(result.args[0], expr.accumulator)):
        return None
    if not (_is(result.args[1], 1) and _is(expr.initial, 0) and _is(expr.condition, True)):
        return None
    if step.function != "_?_:_" or not _reads(step.args[2], expr.accumulator):
        return None
    added = step.args[1]
    if not (isinstance(added, Call) and added.function == "_+_" and _reads(added.args[0], expr.accumulator)):
        return None
    return Shape("only_one", step.args[0]) if _is(added.args[1], 1) else None
