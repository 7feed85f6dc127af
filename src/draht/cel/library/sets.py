"""Lists taken as sets: ``sets.contains``, ``sets.equivalent``, ``sets.intersects``.

Owns cel-go v0.29.2 ``ext.Sets()`` with its prices. Elements are equal as ``==`` has it: ``1``, ``1u`` and ``1.0`` are
one element; what can't be compared isn't equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import LimitError
from draht.cel.library.charges import actual_size
from draht.cel.numbers import MAX_UINT64
from draht.cel.sizes import ONE, CallCost, Operand
from draht.cel.types import BOOL, list_of, parameter
from draht.cel.values import contains

__all__ = ["LIBRARY"]

_LIST: Final = list_of(parameter("T"))
_MAX_COMPARISONS: Final = 2_000_000
"""Units beyond which no limit in use lets a call pass; it is refused before it is computed."""


def _affordable(a: Any, b: Any) -> None:
    if len(a) * len(b) > _MAX_COMPARISONS:
        raise LimitError(f"comparing {len(a)} with {len(b)} elements costs more than any limit allows")


def _contains(values: Any, part: Any) -> bool:
    _affordable(values, part)
    return all(contains(value, values) for value in part)


def _equivalent(a: Any, b: Any) -> bool:
    return _contains(a, b) and _contains(b, a)


def _intersects(a: Any, b: Any) -> bool:
    _affordable(a, b)
    return any(contains(value, b) for value in a)


def _overload(id_: str, call: Callable[[Any, Any], bool], factor: float) -> Overload:
    def estimate(operands: tuple[Operand, ...]) -> CallCost:
        return CallCost((operands[0].size * operands[1].size).scaled(factor) + ONE)

    def actual(_result: Any, *arguments: Any) -> int:
        return min(1 + int(float(actual_size(arguments[0]) * actual_size(arguments[1])) * factor), MAX_UINT64)

    return Overload(id_, (_LIST, _LIST), BOOL, call, estimate=estimate, actual=actual)


LIBRARY: Final = Library(
    "sets",
    (
        Function("sets.contains", (_overload("list_sets_contains_list", _contains, 1.0),)),
        # Each of the two must contain the other.
        Function("sets.equivalent", (_overload("list_sets_equivalent_list", _equivalent, 2.0),)),
        Function("sets.intersects", (_overload("list_sets_intersects_list", _intersects, 1.0),)),
    ),
)
