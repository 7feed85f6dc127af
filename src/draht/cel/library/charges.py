"""What calls of the Kubernetes libraries cost, where several functions cost the same.

Owns the formulas of Kubernetes' estimator (k8s.io/apiserver v0.37.2 ``pkg/cel/library/cost.go``): the price before a
call from the sizes of its operands, and the price after it from the values. What belongs to one function stands with
that function. The formulas are part of the API: an expression is refused by its price, so they are kept to the unit,
also where an actual price is rounded differently from its estimate.
"""

from __future__ import annotations

import math
from typing import Any, Final

from draht.cel.errors import LimitError
from draht.cel.sizes import ONE, REGEX_LENGTH_FACTOR, STRING_FACTOR, CallCost, Operand, Size
from draht.cel.values import Map

__all__ = [
    "actual_size",
    "list_scanned",
    "one",
    "one_unit",
    "scan",
    "scanned",
    "searched",
    "searched_by",
    "text_scan",
    "text_scan_twice",
    "traversal",
    "traversed",
]

_MAX_PARTS: Final = 1 << 21
_ONE_UNIT: Final = CallCost(ONE)
_MATCHED: Final = Size.fixed(1)


def actual_size(value: Any) -> int:
    """Code points, bytes, elements or entries of a value; 1 for what has no size."""
    kind = type(value)
    if kind is str or kind is bytes or kind is tuple or kind is list or isinstance(value, Map):
        return len(value)
    size = getattr(value, "cel_size", 1)
    assert isinstance(size, int)
    return size


def one_unit(_operands: tuple[Operand, ...]) -> CallCost:
    """A look at a field: one unit."""
    return _ONE_UNIT


def one(_result: Any, *_arguments: Any) -> int:
    """A look at a field took one unit."""
    return 1


def scan(operands: tuple[Operand, ...]) -> CallCost:
    """Going once through the first operand."""
    return CallCost(operands[0].size.scaled(STRING_FACTOR))


def text_scan(operands: tuple[Operand, ...]) -> CallCost:
    """Going once through the first operand, with a result of the same size."""
    size = operands[0].size
    return CallCost(size.scaled(STRING_FACTOR), size)


def text_scan_twice(operands: tuple[Operand, ...]) -> CallCost:
    """Going twice through the first operand."""
    return CallCost(operands[0].size.scaled(2 * STRING_FACTOR))


def scanned(_result: Any, *arguments: Any) -> int:
    """Having gone once through the first argument."""
    return math.ceil(float(actual_size(arguments[0])) * STRING_FACTOR)


def list_scanned(operands: tuple[Operand, ...]) -> CallCost:
    """One unit per element of the receiver and, where elements are texts, going through each of them."""
    receiver = operands[0]
    if not receiver.type.parameters:
        # A text: `indexOf` and `lastIndexOf` have one name for both. Or a list that only the run time knows.
        return CallCost(receiver.size.scaled(STRING_FACTOR))
    cost = ONE
    if receiver.type.parameters[0].kind in ("string", "bytes"):
        cost += receiver.items.scaled(STRING_FACTOR)
    return CallCost(receiver.size.times(cost))


def traversed(_result: Any, *arguments: Any) -> int:
    """Having gone through the first argument and everything in it."""
    return traversal(arguments[0])


def traversal(value: Any) -> int:
    """Units for going through a value and everything in it."""
    total = 0
    # A stack of its own: values nest as deep as an expression can make them, and one may stand in others many times.
    pending = [value]
    for _ in range(_MAX_PARTS):
        if not pending:
            return total
        value = pending.pop()
        kind = type(value)
        if kind is str:
            total += int(float(len(value.encode("utf-8", "surrogateescape"))) * STRING_FACTOR)
        elif kind is bytes:
            total += int(float(len(value)) * STRING_FACTOR)
        elif kind is tuple or kind is list:
            pending.extend(value)
        elif isinstance(value, Map):
            for key, entry in value.items():
                pending += (key, entry)
        else:
            total += 1
    raise LimitError(f"going through this value takes more than {_MAX_PARTS:,} steps")


def searched_by(operands: tuple[Operand, ...]) -> CallCost:
    """Matching the receiver with the regular expression that is the second operand."""
    text, pattern = operands[0].size, operands[1].size
    # One more, so that an empty text doesn't make an expensive pattern free.
    cost = (text + _MATCHED).scaled(STRING_FACTOR) * pattern.scaled(REGEX_LENGTH_FACTOR)
    return CallCost(cost, Size(0, text.most))


def searched(_result: Any, *arguments: Any) -> int:
    """Having matched the first argument with the regular expression that is the second."""
    text = math.ceil((1.0 + float(actual_size(arguments[0]))) * STRING_FACTOR)
    return text * math.ceil(float(actual_size(arguments[1])) * REGEX_LENGTH_FACTOR)
