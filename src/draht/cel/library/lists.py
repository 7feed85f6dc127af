"""Functions of lists from CEL's extensions: ``sort``, ``sortBy``, ``distinct``, ``flatten``, ``slice`` and their like.

Owns cel-go v0.29.2 ``ext.Lists(ext.ListsVersion(3))`` with the prices that came with version 3. ``first`` and ``last``
belong to optional values.

One deliberate difference: what would take so long or become so large that every limit refuses its price is refused
before it is computed, not after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from draht.cel.ast import Call, Comprehension, Expr, Identifier, ListLiteral, Literal, Select
from draht.cel.declarations import Estimate, Function, Library, Overload
from draht.cel.errors import EvaluationError, LimitError
from draht.cel.library.charges import actual_size
from draht.cel.library.go_sort import sorted_indices
from draht.cel.library.kubernetes_lists import COMPARABLE, is_comparable
from draht.cel.library.macros import loop_variable
from draht.cel.macros import Builder, Macro, MacroError
from draht.cel.numbers import MAX_UINT64
from draht.cel.sizes import LIST_COST, ONE, STRING_FACTOR, CallCost, Cost, Operand, Size, wrapped
from draht.cel.types import DYN, INT, Type, list_of, parameter
from draht.cel.values import compare, contains, no_such_overload

__all__ = ["LIBRARY", "MAX_ELEMENTS", "MAX_RANGE"]

MAX_RANGE: Final = 1_000_000
"""Most numbers that ``lists.range`` makes."""
MAX_ELEMENTS: Final = 1 << 20
"""Most elements of a list that a function makes."""
_MAX_COMPARISONS: Final = 4_000_000
"""Units of a comparison of all with all beyond which no limit in use lets it pass."""

_T: Final = parameter("T")
_LIST: Final = list_of(_T)
_DYNS: Final = list_of(DYN)
_SORTED_LIST: Final = "@__sortBy_input__"


def _slice(values: Any, start: int, end: int) -> tuple[Any, ...]:
    if start < 0 or end < 0 or start > end or end > len(values):
        raise EvaluationError(
            f"slice({start}, {end}) is no part of a list of {len(values)} elements",
            hint="count from 0; the end isn't part of the slice",
        )
    return tuple(values[start:end])


def _flatten(values: Any, depth: int = 1) -> tuple[Any, ...]:
    if type(values) is not tuple and type(values) is not list:
        raise no_such_overload("flatten", values)
    if type(depth) is not int:
        raise no_such_overload("flatten", values, depth)
    if depth < 0:
        raise EvaluationError("flatten() needs a depth that isn't negative")
    flat: list[Any] = []
    # A stack of its own: lists nest as deep as an expression can make them.
    pending: list[Iterator[Any]] = [iter(values)]
    while pending:
        for value in pending[-1]:
            if (type(value) is tuple or type(value) is list) and len(pending) <= depth:
                pending.append(iter(value))
                break
            flat.append(value)
            if len(flat) > MAX_ELEMENTS:
                raise LimitError(f"the flat list would have more than {MAX_ELEMENTS} elements")
        else:
            pending.pop()
    return tuple(flat)


def _affordable(count: int) -> None:
    if 2 * count * count > _MAX_COMPARISONS:
        raise LimitError(f"comparing {count} elements with each other costs more than any limit allows")


def _sort(values: Any) -> Any:
    return _sort_by_keys(values, values)


def _sort_by_keys(values: Any, keys: Any) -> Any:
    # Upstream asks only whether there is a list; what its elements are is looked at here.
    if type(values) is not tuple and type(values) is not list:
        raise no_such_overload("sort", values)
    if len(values) != len(keys):
        raise EvaluationError(f"there are {len(keys)} sort keys for {len(values)} elements")
    if not values:
        return values
    kind = type(keys[0])
    if not is_comparable(keys[0]):
        raise EvaluationError("only values that have an order can be sorted", hint="sort by a number or a string")
    if any(type(key) is not kind for key in keys):
        raise EvaluationError("only values of one type can be sorted", hint="convert the elements first")
    _affordable(len(keys))
    return tuple(values[index] for index in sorted_indices(keys, _before))


def _before(a: Any, b: Any) -> bool:
    try:
        return compare(a, b) < 0
    except EvaluationError:
        return False


def _range(count: int) -> tuple[int, ...]:
    if count < 0:
        raise EvaluationError(f"lists.range() needs a size that isn't negative, not {count}")
    if count > MAX_RANGE:
        raise EvaluationError(f"lists.range({count}) would have more than {MAX_RANGE} elements")
    return tuple(range(count))


def _reverse(values: Any) -> tuple[Any, ...]:
    return tuple(values[::-1])


def _distinct(values: Any) -> tuple[Any, ...]:
    _affordable(len(values))
    if all(type(value) is str for value in values):
        return tuple(dict.fromkeys(values))
    found: list[Any] = []
    for value in values:
        if not contains(value, found):
            found.append(value)
    return tuple(found)


def _sort_by(build: Builder, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    assert target is not None
    if not isinstance(target, (ListLiteral, Select, Identifier, Comprehension, Call)):
        raise MacroError(target.at, "sortBy() sorts a list", "write it like list.sortBy(x, x.key)")
    variable = loop_variable(args[0])
    step = build.call("_+_", build.accumulator(), build.list_of(args[1]))
    keys = build.fold(
        build.identifier(_SORTED_LIST), variable, build.list_of(), build.literal(True), step, build.accumulator()
    )
    return build.bind(
        _SORTED_LIST, target, build.member_call("@sortByAssociatedKeys", build.identifier(_SORTED_LIST), keys)
    )


# Prices


def _number(operand: Operand, otherwise: int) -> int:
    """The value of a literal int, not below zero."""
    expr = operand.expr
    if isinstance(expr, Literal) and type(expr.value) is int:
        return max(0, expr.value)
    return otherwise


def _making(size: Size, factor: float = 1.0) -> CallCost:
    """A call that makes a list at a price per element."""
    return CallCost(size.scaled(factor) + ONE + Cost.fixed(LIST_COST), size)


def _made(size: int, factor: float = 1.0) -> int:
    return min(int(float(size) * factor) + 1 + LIST_COST, MAX_UINT64)


def _slice_estimate(operands: tuple[Operand, ...]) -> CallCost:
    receiver, start, end = operands
    # The difference wraps around where the slice is impossible.
    return _making(Size.fixed(wrapped(_number(end, receiver.size.most) - _number(start, 0))))


def _flatten_estimate(operands: tuple[Operand, ...]) -> CallCost:
    depth = _number(operands[1], MAX_UINT64) if len(operands) > 1 else 1
    return _making(operands[0].size, float(depth))


def _range_estimate(operands: tuple[Operand, ...]) -> CallCost:
    return _making(Size.fixed(_number(operands[0], MAX_UINT64)))


def _reverse_estimate(operands: tuple[Operand, ...]) -> CallCost:
    return _making(operands[0].size)


def _distinct_estimate(operands: tuple[Operand, ...]) -> CallCost:
    return _making(operands[0].size * operands[0].size, 2.0)


def _sort_estimate(key: Type) -> Estimate:
    factor = 2.0 + (STRING_FACTOR if key.kind in ("string", "bytes") else 0.0)

    def estimate(operands: tuple[Operand, ...]) -> CallCost:
        # The keys are the last operand: of sort() the list itself.
        return _making(operands[-1].size * operands[-1].size, factor)

    return estimate


def _listed(result: Any, *_arguments: Any) -> int:
    return _made(actual_size(result))


def _flattened(_result: Any, *arguments: Any) -> int:
    depth = float(arguments[1]) if len(arguments) == 2 else 1.0
    return _made(actual_size(arguments[0]), depth if depth >= 0 else 1.0)


def _compared(_result: Any, *arguments: Any) -> int:
    keys = arguments[-1]
    if not keys:
        return _made(0)
    factor = 2.0 + (STRING_FACTOR if type(keys[0]) in (str, bytes) else 0.0)
    return _made(min(len(keys) * len(keys), MAX_UINT64), factor)


LIBRARY: Final = Library(
    "lists",
    (
        Function(
            "slice",
            (
                Overload(
                    "list_slice",
                    (_LIST, INT, INT),
                    _LIST,
                    _slice,
                    member=True,
                    estimate=_slice_estimate,
                    actual=_listed,
                ),
            ),
        ),
        Function(
            "flatten",
            (
                # Not guarded: a list that is flat already is no list of lists, and is taken all the same.
                Overload(
                    "list_flatten",
                    (list_of(_LIST),),
                    _LIST,
                    _flatten,
                    member=True,
                    estimate=_flatten_estimate,
                    actual=_flattened,
                    guarded=False,
                ),
                Overload(
                    "list_flatten_int",
                    (_DYNS, INT),
                    _DYNS,
                    _flatten,
                    member=True,
                    estimate=_flatten_estimate,
                    actual=_flattened,
                    guarded=False,
                ),
            ),
        ),
        Function(
            "sort",
            tuple(
                Overload(
                    f"list_{type_.name}_sort",
                    (list_of(type_),),
                    list_of(type_),
                    _sort,
                    member=True,
                    estimate=_sort_estimate(type_),
                    actual=_compared,
                    guarded=False,
                )
                for type_ in COMPARABLE
            ),
        ),
        Function(
            "@sortByAssociatedKeys",
            tuple(
                Overload(
                    f"list_{type_.name}_sortByAssociatedKeys",
                    (_LIST, list_of(type_)),
                    _LIST,
                    _sort_by_keys,
                    member=True,
                    estimate=_sort_estimate(type_),
                    actual=_compared,
                    guarded=False,
                )
                for type_ in COMPARABLE
            ),
        ),
        Function(
            "lists.range",
            (Overload("lists_range", (INT,), list_of(INT), _range, estimate=_range_estimate, actual=_listed),),
        ),
        Function(
            "reverse",
            (
                Overload(
                    "list_reverse",
                    (_LIST,),
                    _LIST,
                    _reverse,
                    member=True,
                    estimate=_reverse_estimate,
                    actual=_listed,
                ),
            ),
        ),
        Function(
            "distinct",
            (
                Overload(
                    "list_distinct",
                    (_LIST,),
                    _LIST,
                    _distinct,
                    member=True,
                    estimate=_distinct_estimate,
                    actual=_compared,
                ),
            ),
        ),
    ),
    (Macro("sortBy", 2, True, _sort_by),),
)
