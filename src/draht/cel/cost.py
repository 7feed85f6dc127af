"""The least and the most that evaluating an expression can cost, before it runs.

Owns upstream's estimate to the unit: an API server refuses a selector by it. Every node has a price; a loop is paid as
often as its range can be long; how long strings and lists can be is followed from the declaration of the input (``a
path such as device.attributes.@values``) through the expression. Source: cel-go v0.29.2 ``checker/cost.go`` with
Kubernetes' option that testing for presence is free.

What single functions cost stands with them and in `prices`. It doesn't know the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from draht.cel.ast import (
    Call,
    Comprehension,
    Expr,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from draht.cel.declarations import Overload
from draht.cel.numbers import MAX_UINT64
from draht.cel.prices import CONCATENATIONS, price
from draht.cel.reference import Checked
from draht.cel.sizes import LIST_COST, MAP_COST, ONE, STRUCT_COST, UNKNOWN_SIZE, CallCost, Cost, Operand, Size
from draht.cel.types import Type
from draht.cel.walk import finish

__all__ = ["SizeOf", "estimate"]

SizeOf: TypeAlias = Callable[[tuple[str, ...]], Size | None]
"""How large the part of the input at a path can be; None where nothing is declared about it."""

_Visit: TypeAlias = Generator[Expr, Cost, Cost]

_FREE: Final = Cost(0, 0)
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_SELECTED: Final = frozenset({"map", "object", "parameter"})
_NEVER_BIND: Final = "__result__"


def estimate(checked: Checked, size_of: SizeOf) -> Cost:
    """The range of the cost of evaluating an expression.

    Args:
        checked: The expression with its types.
        size_of: How large parts of the input can be.
    """
    return finish(checked.expr, _Estimator(checked, size_of).visit)


@final
class _Path:
    """A path as upstream keeps it: a Go slice.

    Appending to one path twice writes the same memory when the slice has room, so a path that was built first can
    change its last element. Upstream's estimates depend on that; so the room is kept here as well.
    """

    __slots__ = ("_array", "_length")

    def __init__(self, array: list[str], length: int) -> None:
        self._array = array
        self._length = length

    @classmethod
    def of(cls, name: str) -> _Path:
        return cls([name], 1)

    def extended(self, name: str) -> _Path:
        array = self._array
        if self._length == len(array):
            # Go doubles small slices of strings.
            array = [*array, *[""] * max(len(array), 1)]
        array[self._length] = name
        return _Path(array, self._length + 1)

    def names(self) -> tuple[str, ...]:
        return tuple(self._array[: self._length])


_NO_PATH: Final = _Path([], 0)


@dataclass(frozen=True, slots=True)
class _Entries:
    """How large the keys and values of a map are, or the elements of a list."""

    kind: str
    key: Size
    value: Size

    def union(self, other: _Entries) -> _Entries:
        return _Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Variable:
    path: _Path
    size: Size | None
    entries: _Entries | None = None


def _is_scalar(kind: Type) -> bool:
    while kind.kind == "opaque" and kind.name == "optional_type":
        kind = kind.parameters[0]
    return kind.kind in _SCALARS


def _written_size(expr: Expr) -> Size | None:
    match expr:
        case Literal(value=str() | bytes() as value):
            return Size.fixed(len(value))
        case Literal():
            return Size.fixed(1)
        case ListLiteral():
            return Size.fixed(len(expr.elements))
        case MapLiteral():
            return Size.fixed(len(expr.entries))
        case _:
            return None


class _Estimator:
    def __init__(self, checked: Checked, size_of: SizeOf) -> None:
        self._checked = checked
        self._size_of = size_of
        self._paths: dict[int, _Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Variable]] = {}

    def visit(self, expr: Expr) -> _Visit:
        match expr:
            case Literal():
                return _FREE
            case Identifier():
                variable = self._variable(expr.name)
                self._paths[expr.id] = variable.path if variable is not None else _Path.of(expr.name)
                return ONE
            case Select():
                return (yield from self._select(expr))
            case Call():
                return (yield from self._call(expr))
            case ListLiteral():
                return (yield from self._list(expr))
            case MapLiteral():
                return (yield from self._map(expr))
            case StructLiteral():
                cost = Cost.fixed(STRUCT_COST)
                for field in expr.fields:
                    cost += yield field.value
                return cost
            case Comprehension():
                if _is_binding(expr):
                    return (yield from self._binding(expr))
                return (yield from self._comprehension(expr))

    # What is known about nodes

    def _variable(self, name: str) -> _Variable | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, expr: Expr) -> _Path:
        if isinstance(expr, Identifier):
            variable = self._variable(expr.name)
            if variable is not None:
                return variable.path
        return self._paths.get(expr.id, _NO_PATH)

    def _declared(self, path: tuple[str, ...]) -> Size | None:
        return self._size_of(path) if path else None

    def _size(self, expr: Expr) -> Size | None:
        known = self._sizes.get(expr.id) or _written_size(expr)
        if known is not None:
            return known
        declared = self._declared(self._path(expr).names())
        if declared is not None:
            self._sizes[expr.id] = declared
            return declared
        if _is_scalar(self._checked.types[expr.id]):
            return Size.fixed(1)
        if isinstance(expr, Identifier):
            variable = self._variable(expr.name)
            if variable is not None:
                return variable.size
        return None

    def _size_or_unknown(self, expr: Expr) -> Size:
        return self._size(expr) or UNKNOWN_SIZE

    def _entries_of(self, expr: Expr) -> _Entries | None:
        known = self._entries.get(expr.id)
        if known is None and isinstance(expr, Identifier):
            variable = self._variable(expr.name)
            if variable is not None:
                return variable.entries
        return known

    def _set_size(self, expr: Expr, size: Size | None) -> None:
        if size is not None:
            self._sizes[expr.id] = size

    def _copy_sizes(self, target: Expr, source: Expr) -> None:
        self._set_size(target, self._size(source))
        entries = self._entries_of(source)
        if entries is not None:
            self._entries[target.id] = entries

    # Nodes

    def _select(self, expr: Select) -> _Visit:
        cost = yield expr.operand
        if expr.test:
            return cost
        if self._checked.types[expr.operand.id].kind in _SELECTED:
            cost += ONE
        self._paths[expr.id] = self._path(expr.operand).extended(expr.field)
        return cost

    def _list(self, expr: ListLiteral) -> _Visit:
        cost = Cost.fixed(LIST_COST)
        sizes = []
        for element in expr.elements:
            cost += yield element
            sizes.append(self._size_or_unknown(element))
        self._entries[expr.id] = _Entries("list", Size.fixed(1), _all_of(sizes))
        return cost

    def _map(self, expr: MapLiteral) -> _Visit:
        cost = Cost.fixed(MAP_COST)
        keys = []
        values = []
        for entry in expr.entries:
            cost += yield entry.key
            cost += yield entry.value
            keys.append(self._size_or_unknown(entry.key))
            values.append(self._size_or_unknown(entry.value))
        self._entries[expr.id] = _Entries("map", _all_of(keys), _all_of(values))
        return cost

    # Calls

    def _call(self, expr: Call) -> _Visit:
        if expr.function == "dyn":
            # Only switches type checking off; the value stays what it is.
            inner = yield expr.args[0]
            self._copy_sizes(expr, expr.args[0])
            return inner + ONE
        costs = []
        sizes = []
        for arg in expr.args:
            cost = yield arg
            costs.append(cost)
            sizes.append(self._size(arg))
        receiver = _FREE
        if expr.target is not None:
            receiver = yield expr.target
            sizes.insert(0, self._size(expr.target))
        least, most = MAX_UINT64, 0
        result: Size | None = None
        for overload in self._checked.references[expr.id].overloads:
            priced = self._priced(expr, overload, costs, sizes)
            least, most = min(least, priced.cost.least), max(most, priced.cost.most)
            if priced.result is not None:
                result = result.union(priced.result) if result is not None else priced.result
            if overload.id in _INDEXED:
                entries = self._entries_of(expr.args[0])
                result = entries.value if entries is not None else None
                self._paths[expr.id] = self._path(expr.args[0]).extended(_INDEXED[overload.id])
            if result is None:
                result = self._size(expr)
        self._set_size(expr, result)
        return receiver + Cost(least, most)

    def _priced(self, expr: Call, overload: Overload, costs: list[Cost], sizes: list[Size | None]) -> CallCost:
        """The price of one overload, with the cost of the arguments but not of the receiver."""
        nodes = expr.args if expr.target is None else (expr.target, *expr.args)
        operands = tuple([self._operand(node, size) for node, size in zip(nodes, sizes, strict=True)])
        arguments = _FREE
        for cost in costs:
            arguments += cost
        own = overload.estimate(operands) if overload.estimate is not None else None
        if own is not None:
            return CallCost(own.cost + arguments, own.result)
        if overload.id in {"logical_and", "logical_or"}:
            # The second operand may never be evaluated.
            return CallCost(Cost(costs[0].least, (costs[0] + costs[1]).most))
        if overload.id == "conditional":
            self._join_entries(expr, expr.args[1], expr.args[2])
            return CallCost(costs[0] + costs[1].union(costs[2]), operands[1].size.union(operands[2].size))
        if overload.id in CONCATENATIONS:
            self._join_entries(expr, expr.args[0], expr.args[1])
        general = price(overload.id, operands)
        return CallCost(general.cost + arguments, general.result)

    def _operand(self, node: Expr, size: Size | None) -> Operand:
        path = self._path(node).names()
        kind = self._checked.types[node.id]
        items = self._declared((*path, "@items")) if path and kind.parameters else None
        return Operand(node, kind, size, path, items if items is not None else UNKNOWN_SIZE)

    def _join_entries(self, expr: Expr, left: Expr, right: Expr) -> None:
        one, other = self._entries_of(left), self._entries_of(right)
        if one is not None and other is not None:
            self._entries[expr.id] = one.union(other)

    # Loops and bindings

    def _binding(self, expr: Comprehension) -> _Visit:
        cost = yield expr.range
        cost += yield expr.initial
        self._push_initial(expr)
        cost += yield expr.result
        self._locals[expr.accumulator].pop()
        self._copy_sizes(expr, expr.result)
        return cost

    def _comprehension(self, expr: Comprehension) -> _Visit:
        cost = yield expr.range
        cost += yield expr.initial
        self._push_initial(expr)
        if expr.second is None:
            self._push_single(expr.variable, expr.range)
        else:
            self._push_part(expr.variable, expr.range, key=True)
            self._push_part(expr.second, expr.range, key=False)
        condition = yield expr.condition
        step = yield expr.step
        self._locals[expr.variable].pop()
        if expr.second is not None:
            self._locals[expr.second].pop()
        cost += yield expr.result
        self._locals[expr.accumulator].pop()
        times = self._size_or_unknown(expr.range)
        cost += times.times(step + condition)
        if isinstance(expr.initial, Literal):
            self._set_size(expr, self._size(expr.initial))
        elif isinstance(expr.initial, ListLiteral | MapLiteral):
            self._set_size(expr, times)
            entries = self._entries_of(expr.step)
            if entries is not None:
                self._entries[expr.id] = entries
        return cost

    def _push(self, name: str, variable: _Variable) -> None:
        self._locals.setdefault(name, []).append(variable)

    def _push_initial(self, expr: Comprehension) -> None:
        initial = expr.initial
        path = self._path(initial)
        entries = self._entries_of(initial)
        self._push(expr.accumulator, _Variable(path, self._size(initial), entries))

    def _container(self, over: Expr, entries: _Entries | None) -> str:
        return entries.kind if entries is not None else self._checked.types[over.id].kind

    def _push_single(self, name: str, over: Expr) -> None:
        entries = self._entries_of(over)
        if self._container(over, entries) == "list":
            size, part = entries.value if entries is not None else None, "@items"
        else:
            size, part = entries.key if entries is not None else None, "@keys"
        self._push(name, _Variable(self._path(over).extended(part), size))

    def _push_part(self, name: str, over: Expr, *, key: bool) -> None:
        entries = self._entries_of(over)
        of_list = self._container(over, entries) == "list"
        if key:
            size, part = entries.key if entries is not None else None, "@indices" if of_list else "@keys"
        else:
            size, part = entries.value if entries is not None else None, "@items" if of_list else "@values"
        self._push(name, _Variable(self._path(over).extended(part), size))


_INDEXED: Final = {"index_list": "@items", "index_map": "@values"}


def _all_of(sizes: list[Size]) -> Size:
    """The range that holds all; nothing is as small and as large as zero."""
    if not sizes:
        return Size(0, 0)
    joined = Size(MAX_UINT64, 0)
    for size in sizes:
        joined = joined.union(size)
    return joined


def _is_binding(expr: Comprehension) -> bool:
    """Whether a comprehension only gives a value a name (``cel.bind``): it goes through nothing."""
    return (
        isinstance(expr.range, ListLiteral)
        and not expr.range.elements
        and isinstance(expr.condition, Literal)
        and expr.condition.value is False
        and expr.accumulator != _NEVER_BIND
    )
