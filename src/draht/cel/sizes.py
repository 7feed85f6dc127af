"""Ranges of sizes and costs, in which the estimator computes, and what a function says about the price of a call.

Owns the arithmetic: it saturates at the largest uint64, as upstream does, so that a hopeless expression stays hopeless
instead of wrapping around to a small number. A few of upstream's formulas wrap all the same; those say so where they
are (`wrapped`). Source: cel-go v0.29.2 ``checker/cost.go`` and ``common/cost.go``.

A function's ``estimate`` (`draht.cel.declarations.Estimate`) gets its operands, the receiver first, and returns what
the call adds to the cost of the operands, and how large the result is where that is known. None means: charge what
the language charges for the overload (`draht.cel.prices`), which for most is one unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from draht.cel.numbers import MAX_UINT64

if TYPE_CHECKING:
    from draht.cel.ast import Expr
    from draht.cel.types import Type

__all__ = [
    "LIST_COST",
    "MAP_COST",
    "ONE",
    "REGEX_LENGTH_FACTOR",
    "STRING_FACTOR",
    "STRUCT_COST",
    "UNKNOWN_SIZE",
    "CallCost",
    "Cost",
    "Operand",
    "Size",
    "wrapped",
]

LIST_COST: Final = 10
"""Units for making a list, whatever its length."""
MAP_COST: Final = 30
STRUCT_COST: Final = 40
STRING_FACTOR: Final = 0.1
"""Units per code point or byte for going once through a string."""
REGEX_LENGTH_FACTOR: Final = 0.25
"""Units per code point of a regular expression; multiplied by those of the text."""

_TWO_TO_64: Final = float(1 << 64)


def _added(left: int, right: int) -> int:
    return min(left + right, MAX_UINT64)


def _multiplied(left: int, right: int) -> int:
    return min(left * right, MAX_UINT64)


def _scaled(number: int, factor: float) -> int:
    product = float(number) * factor
    return MAX_UINT64 if product >= _TWO_TO_64 else min(math.ceil(product), MAX_UINT64)


def wrapped(number: int) -> int:
    """The number as a uint64 that overflowed or went below zero."""
    return number & MAX_UINT64


@dataclass(frozen=True, slots=True)
class Cost:
    """Least and most cost units of something."""

    least: int
    most: int

    @classmethod
    def fixed(cls, units: int) -> Cost:
        """A cost that is known."""
        return cls(units, units)

    def __add__(self, other: Cost) -> Cost:
        return Cost(_added(self.least, other.least), _added(self.most, other.most))

    def __mul__(self, other: Cost) -> Cost:
        return Cost(_multiplied(self.least, other.least), _multiplied(self.most, other.most))

    def scaled(self, factor: float) -> Cost:
        """Both ends times a factor, rounded up."""
        return Cost(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Cost) -> Cost:
        """The range that holds both."""
        return Cost(min(self.least, other.least), max(self.most, other.most))


@dataclass(frozen=True, slots=True)
class Size:
    """Least and most size: code points of a string, bytes, elements of a list or map; 1 for what has no size."""

    least: int
    most: int

    @classmethod
    def fixed(cls, size: int) -> Size:
        """A size that is known."""
        return cls(size, size)

    def __add__(self, other: Size) -> Size:
        return Size(_added(self.least, other.least), _added(self.most, other.most))

    def __mul__(self, other: Size) -> Size:
        return Size(_multiplied(self.least, other.least), _multiplied(self.most, other.most))

    def scaled(self, factor: float) -> Cost:
        """The cost at a price per element: both ends times the factor, rounded up."""
        return Cost(_scaled(self.least, factor), _scaled(self.most, factor))

    def times(self, cost: Cost) -> Cost:
        """The cost of doing something once per element."""
        return Cost(_multiplied(self.least, cost.least), _multiplied(self.most, cost.most))

    def union(self, other: Size) -> Size:
        """The range that holds both."""
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN_SIZE: Final = Size(0, MAX_UINT64)
ONE: Final = Cost(1, 1)


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
    known: Size | None
    """The size from the expression or from the declaration of the input; None where neither says anything."""
    path: tuple[str, ...] = ()
    """Where the value comes from in the input: ``("device", "attributes", "@values")``; empty for what is computed."""
    items: Size = UNKNOWN_SIZE
    """The size of one of its elements as the declaration of the input bounds it (``path + ("@items",)``)."""

    @property
    def size(self) -> Size:
        """The size, or from zero to the largest where nothing is known."""
        return self.known if self.known is not None else UNKNOWN_SIZE
