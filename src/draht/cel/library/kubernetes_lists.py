"""Functions of lists that Kubernetes brings: ``isSorted``, ``sum``, ``min``, ``max``, ``indexOf``, ``includes``.

Owns k8s.io/apiserver v0.37.2 ``pkg/cel/library/lists.go`` in version 1. Elements that have no order among each other
(NaN, values of different types) are passed over, not refused, as upstream does. ``includes`` asks a scalar as well as
a list, so that a selector holds for an attribute of either form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError
from draht.cel.library.charges import list_scanned, traversed
from draht.cel.library.standard_operators import add
from draht.cel.numbers import UInt
from draht.cel.sizes import ONE, CallCost, Operand
from draht.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    parameter,
)
from draht.cel.values import Duration, Timestamp, compare, equal, no_such_overload

__all__ = ["COMPARABLE", "INCLUDES", "LIBRARY", "is_comparable"]

COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
"""The types that have an order."""
_NAMES: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS: Final[tuple[tuple[str, Type, Any], ...]] = (
    ("int", INT, 0),
    ("uint", UINT, UInt(0)),
    ("double", DOUBLE, 0.0),
    ("duration", DURATION, Duration(0)),
)
_A: Final = parameter("A")
_ORDERED: Final = frozenset({int, UInt, float, bool, Duration, Timestamp, str, bytes})


def is_comparable(value: Any) -> bool:
    """Whether the value is of a type that has an order."""
    return type(value) in _ORDERED


def _order(a: Any, b: Any) -> int:
    """As `compare`; 2 where the two have no order."""
    try:
        return compare(a, b)
    except EvaluationError:
        return 2


def _comparable(function: str, values: Any) -> None:
    for value in values:
        if not is_comparable(value):
            raise no_such_overload(function, value)


def _is_sorted(values: Any) -> bool:
    # What comes behind the first pair that isn't in order is never looked at.
    for index, value in enumerate(values):
        if not is_comparable(value):
            raise no_such_overload("isSorted", value)
        if index and _order(values[index - 1], value) == 1:
            return False
    return True


def _best(function: str, replaced_at: int) -> Callable[[Any], Any]:
    def best(values: Any) -> Any:
        if not values:
            raise EvaluationError(f"{function} of an empty list", hint="ask for size(list) > 0 first")
        _comparable(function, values)
        found = values[0]
        for value in values[1:]:
            if _order(found, value) == replaced_at:
                found = value
        return found

    return best


def _sum(zero: Any) -> Callable[[Any], Any]:
    def total(values: Any) -> Any:
        result = zero
        for value in values:
            result = add(result, value)
        return result

    return total


def _same(a: Any, b: Any) -> bool:
    try:
        return equal(a, b)
    except EvaluationError:
        return False


def _index_of(values: Any, item: Any) -> int:
    for index, value in enumerate(values):
        if _same(value, item):
            return index
    return -1


def _last_index_of(values: Any, item: Any) -> int:
    for index in range(len(values) - 1, -1, -1):
        if _same(values[index], item):
            return index
    return -1


def _includes(target: Any, item: Any) -> bool:
    if type(target) is tuple or type(target) is list:
        return any(_same(value, item) for value in target)
    return _same(target, item)


def _includes_estimate(operands: tuple[Operand, ...]) -> CallCost:
    if operands[0].type.parameters:
        return list_scanned(operands)
    # What the checker doesn't know may be a list: one unit for each element.
    return CallCost(operands[0].size.times(ONE))


def _per_type(function: str, suffix: str, result: Type | None, call: Callable[[Any], Any]) -> Function:
    """One overload for each type that has an order; without a result type, it is that of the elements."""
    return Function(
        function,
        tuple(
            Overload(
                f"list_{name}_{suffix}_{'bool' if result is not None else name}",
                (list_of(type_),),
                result if result is not None else type_,
                call,
                member=True,
                estimate=list_scanned,
                actual=traversed,
            )
            for name, type_ in zip(_NAMES, COMPARABLE, strict=True)
        ),
    )


def _position(function: str, id_: str, call: Callable[[Any, Any], int]) -> Function:
    overload = Overload(id_, (list_of(_A), _A), INT, call, member=True, estimate=list_scanned, actual=traversed)
    return Function(function, (overload,))


INCLUDES: Final = Function(
    "includes",
    (
        Overload(
            "list_includes_dyn_dyn",
            (DYN, DYN),
            BOOL,
            _includes,
            member=True,
            estimate=_includes_estimate,
            actual=traversed,
        ),
    ),
)
"""Also what dynamic resource allocation adds by itself for servers older than 1.37."""

LIBRARY: Final = Library(
    "kubernetes.lists",
    (
        _per_type("isSorted", "is_sorted", BOOL, _is_sorted),
        Function(
            "sum",
            tuple(
                Overload(
                    f"list_{name}_sum_{name}",
                    (list_of(type_),),
                    type_,
                    _sum(zero),
                    member=True,
                    estimate=list_scanned,
                    actual=traversed,
                )
                for name, type_, zero in _ZEROS
            ),
        ),
        _per_type("max", "max", None, _best("max", -1)),
        _per_type("min", "min", None, _best("min", 1)),
        _position("indexOf", "list_a_index_of_int", _index_of),
        _position("lastIndexOf", "list_a_last_index_of_int", _last_index_of),
        INCLUDES,
    ),
)
