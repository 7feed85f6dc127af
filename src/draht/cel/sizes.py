"""Ranges of sizes and costs, in which the estimator computes.

Owns the arithmetic: it saturates at the largest uint64, as upstream does, so that a hopeless expression stays hopeless
instead of wrapping around to a small number (cel-go ``checker/cost.go``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from draht.cel.numbers import MAX_UINT64

if TYPE_CHECKING:
    from draht.cel.ast import Expr
    from draht.cel.types import Type

__all__ = ["UNKNOWN_SIZE", "CallCost", "Cost", "Operand", "Size"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Least and most cost units of something."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Size:
    """Least and most size: code points of a string, bytes, elements of a list or map."""

    least: int
    most: int


UNKNOWN_SIZE: Final = Size(0, MAX_UINT64)


@dataclass(frozen=True, slots=True)
class CallCost:
    """What a call costs, without its operands, and how large its result is where that is known."""

    cost: Cost
    result: Size | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument as the estimator knows it; the receiver of a member call is the first."""

    expr: Expr
    type: Type
    size: Size
    path: tuple[str, ...] = ()
    """Where the value comes from in the input: ``("device", "attributes", "@values")``; empty for what is computed."""
