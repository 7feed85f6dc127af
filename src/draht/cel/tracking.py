"""What an evaluation really cost: the same price list as the estimate's, but with the values that were there.

Owns the meter that stops an evaluation at its limit, the prices of the steps of a program and those of calls. It
doesn't know programs: the compiler says when a step is paid. Source: cel-go v0.29.2 ``interpreter/runtimecost.go``
with Kubernetes' option that testing for presence is free, and k8s.io/apiserver v0.37.2 ``pkg/cel/library/cost.go``
for the equality of Kubernetes' types.

A call counts as one of its overload only if the checker left exactly one. Where types are ``dyn`` and several are left,
upstream charges by the function's name alone, which for functions of the language is one unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from draht.cel.declarations import Overload
from draht.cel.errors import LimitError
from draht.cel.prices import COMPARISONS
from draht.cel.sizes import LIST_COST, MAP_COST, REGEX_LENGTH_FACTOR, STRING_FACTOR, STRUCT_COST
from draht.cel.values import Map, Optional, type_of

__all__ = [
    "ATTRIBUTE",
    "LIST_COST",
    "MAP_COST",
    "QUALIFIER",
    "STRUCT_COST",
    "Meter",
    "actual_size",
    "call_price",
]

ATTRIBUTE: Final = 1
"""Units for reading a variable, whatever follows it."""
QUALIFIER: Final = 1
"""Units for each selection or index behind it."""

_BY_UNIT: Final = frozenset(
    {"kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "kubernetes.NamedFormat", "net.IP", "net.CIDR"}
)
# Priced by overload alone, so a call that may mean several of theirs costs one unit.
_UNIT_IF_AMBIGUOUS: Final = frozenset({"sort", "@sortByAssociatedKeys"})


@final
class Meter:
    """Adds up what an evaluation costs.

    Args:
        limit: The most it may cost.
    """

    __slots__ = ("cost", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.cost = 0

    def add(self, units: int) -> None:
        """Pay for a step.

        Raises:
            LimitError: All steps together cost more than the limit.
        """
        self.cost += units
        if self.cost > self.limit:
            raise LimitError(
                f"evaluation costs more than {self.limit:,} units",
                hint="go through fewer elements, or compare shorter texts",
            )


def actual_size(value: Any) -> int:
    """Code points, bytes, elements or entries; of an optional what it holds; 1 for what has no size."""
    if type(value) is Optional and value.has_value:
        return actual_size(value.value)
    if isinstance(value, str | bytes | list | tuple | Map):
        return len(value)
    size = getattr(value, "cel_size", 1)
    assert isinstance(size, int)
    return size


def call_price(function: str, overloads: Sequence[Overload], arguments: Sequence[Any], result: Any) -> int:
    """What a call cost.

    Args:
        function: The function's name.
        overloads: Those that the checker left.
        arguments: Receiver and arguments; an exception where evaluating one failed.
        result: What it returned; an exception if it failed.
    """
    if len(overloads) == 1 or function in {"_==_", "_!=_"}:
        overload = overloads[0]
        if overload.actual is not None:
            return overload.actual(result, *arguments)
        priced = _PRICES.get(overload.id)
        return priced(arguments) if priced is not None else 1
    if function in _UNIT_IF_AMBIGUOUS:
        return 1
    # Kubernetes charges by name; what it adds for one overload isn't charged when it can't tell.
    return min(
        (overload.actual(result, *arguments) for overload in overloads if overload.actual is not None), default=1
    )


def _scan(value: Any) -> int:
    return math.ceil(float(actual_size(value)) * STRING_FACTOR)


def _first(arguments: Sequence[Any]) -> int:
    return _scan(arguments[0])


def _second(arguments: Sequence[Any]) -> int:
    return _scan(arguments[1])


def _in_list(arguments: Sequence[Any]) -> int:
    return actual_size(arguments[1])


def _comparison(arguments: Sequence[Any]) -> int:
    return math.ceil(float(min(actual_size(arguments[0]), actual_size(arguments[1]))) * STRING_FACTOR)


def _equals(arguments: Sequence[Any]) -> int:
    left = arguments[0]
    if not isinstance(left, BaseException) and type_of(left).name in _BY_UNIT:
        return 1
    return _comparison(arguments)


def _concatenation(arguments: Sequence[Any]) -> int:
    return math.ceil(float(actual_size(arguments[0]) + actual_size(arguments[1])) * STRING_FACTOR)


def _matches(arguments: Sequence[Any]) -> int:
    text = math.ceil((1.0 + float(actual_size(arguments[0]))) * STRING_FACTOR)
    return text * math.ceil(float(actual_size(arguments[1])) * REGEX_LENGTH_FACTOR)


def _contains(arguments: Sequence[Any]) -> int:
    return _scan(arguments[0]) * _scan(arguments[1])


_PRICES: Final[dict[str, Callable[[Sequence[Any]], int]]] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    "equals": _equals,
    "starts_with_string": _second,
    "ends_with_string": _second,
    "string_to_bytes": _first,
    "bytes_to_string": _first,
    "strings_quote": _first,
    "string_format": _first,
    "in_list": _in_list,
    "add_string": _concatenation,
    "add_bytes": _concatenation,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
}
