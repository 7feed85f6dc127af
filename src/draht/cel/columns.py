"""One selector over many devices.

A cluster has tens of thousands of devices and few kinds of them. Owns a table of devices in which each thing that
selectors mention is a column: its values are numbered once, and a selector is evaluated once for each value, or for
each combination of values where one comparison reads several. ``&&``, ``||`` and ``!`` are computed on sets of rows.

Sets of rows are integers: bit i is row i. What an error says is found out when somebody looks at it.

Where every device has a value of its own (a UUID), a comparison with constants is a look-up: all other values of the
same type answer alike. Any other use of such a column costs one evaluation per device.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, final

from draht.api.errors import DrahtError
from draht.api.resource.device import DeviceAttribute
from draht.cel.ast import Call, Comprehension, Expr, Identifier, ListLiteral, Literal
from draht.cel.device import Device, attribute_value
from draht.cel.errors import EvaluationError
from draht.cel.mentions import Key, Mentions, exact_path, mentions_of
from draht.cel.selector import MAX_COST, Selector
from draht.cel.values import MISSING
from draht.cel.walk import descendants, finish

__all__ = ["Errors", "Table", "Verdict"]

_SMALL: Final = 256
"""Values that a byte can number."""
_KEPT: Final = 256
"""Selectors whose verdict is kept."""
_PLAIN: Final = frozenset({str, int, bool})
_COMPARISONS: Final = frozenset({"_==_", "_!=_"})

_MISSING_TYPE: Final = type(MISSING)

Rows: TypeAlias = int
"""A set of rows."""


@final
class Errors(Mapping[int, EvaluationError]):
    """Rows on which a selector fails, and how; found out when asked."""

    def __init__(self, selector: Selector, devices: Sequence[Device], rows: Rows) -> None:
        self._selector = selector
        self._devices = devices
        self.rows = rows

    def __getitem__(self, row: int) -> EvaluationError:
        if row < 0 or not self.rows >> row & 1:
            raise KeyError(row)
        answer = self._selector.evaluate(self._devices[row])
        assert isinstance(answer, EvaluationError)
        return answer

    def __iter__(self) -> Iterator[int]:
        rows = self.rows
        while rows:
            lowest = rows & -rows
            yield lowest.bit_length() - 1
            rows ^= lowest

    def __len__(self) -> int:
        return self.rows.bit_count()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a selector says about the rows of a table.

    Args:
        matches: The rows that it matches, bit i for row i.
        errors: The rows on which it fails.
    """

    matches: Rows
    errors: Errors


@final
class _Column:
    """The values of one thing in all rows; equal ones have the number of the first row in which they are."""

    __slots__ = ("_small", "_typed", "firsts", "numbers", "values")

    def __init__(self, values: Sequence[Any]) -> None:
        firsts: dict[Any, int] = {}
        put = firsts.setdefault
        self.numbers = [put(value, row) for row, value in enumerate(values)]
        self.firsts = firsts
        """Value → its first row."""
        self._small: tuple[bytes, dict[int, int]] | None = None
        self._typed: dict[type, tuple[Rows, list[int]]] | None = None

    @property
    def distinct(self) -> bool:
        """Whether no value occurs twice."""
        return len(self.firsts) == len(self.numbers)

    def rows_where(self, holds: Mapping[int, bool]) -> Rows:
        """The rows whose number maps to True."""
        if len(self.firsts) <= _SMALL:
            if self._small is None:
                ranks = {row: rank for rank, row in enumerate(self.firsts.values())}
                # From the last row to the first, as the digits of a number are written.
                self._small = bytes(map(ranks.__getitem__, reversed(self.numbers))), ranks
            ranked, ranks = self._small
            digits = bytearray(b"0" * _SMALL)
            for row, rank in ranks.items():
                if holds[row]:
                    digits[rank] = 49
            return int(ranked.translate(digits), 2)
        if not any(holds.values()):
            return 0
        digit = {row: 49 if true else 48 for row, true in holds.items()}
        return int(bytes(map(digit.__getitem__, reversed(self.numbers))), 2)

    def rows_of(self, number: int) -> Rows:
        """The rows with one value."""
        if self.distinct:
            return 1 << number
        rows = 0
        at = number
        try:
            while True:
                rows |= 1 << at
                at = self.numbers.index(number, at + 1)
        except ValueError:
            return rows

    def by_type(self) -> dict[type, tuple[Rows, list[int]]]:
        """Type of an attribute's value → the rows that have one of it, and the numbers of its values."""
        if self._typed is None:
            numbers: dict[type, list[int]] = {}
            for wire, row in self.firsts.items():
                numbers.setdefault(type(_value(wire)), []).append(row)
            self._typed = {}
            for type_, of_type in numbers.items():
                if len(numbers) == 1:
                    rows = (1 << len(self.numbers)) - 1
                else:
                    holding = set(of_type)
                    rows = self.rows_where({row: row in holding for row in self.firsts.values()})
                self._typed[type_] = (rows, of_type)
        return self._typed


def _value(wire: DeviceAttribute | None) -> Any:
    """The attribute's value; `MISSING` where there is none or it can't be read, which makes its row a defective one."""
    if wire is None:
        return MISSING
    try:
        return attribute_value(wire)
    except DrahtError:
        return MISSING


@final
class Table:
    """Devices, one a row, that many selectors are asked about. Filled as it is asked; not for several threads at once.

    Args:
        devices: The rows.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = devices
        self.all: Rows = (1 << len(devices)) - 1
        """Every row."""
        self.defective: Rows = sum(1 << row for row, device in enumerate(devices) if not _is_readable(device))
        """Rows on which every selector fails."""
        self._attributes = [device.attributes for device in devices]
        self._capacity = [device.capacity for device in devices]
        self._drivers = {device.driver for device in devices}
        self._columns: dict[Any, _Column] = {}
        self._verdicts: dict[Selector, Verdict] = {}

    def evaluate(self, selector: Selector) -> Verdict:
        """What the selector says about every row."""
        verdict = self._verdicts.get(selector)
        if verdict is None:
            matches, failed = _plan(selector).rows(self) if self.devices else (0, 0)
            failed |= self.defective
            verdict = Verdict(matches & ~failed, Errors(selector, self.devices, failed))
            if len(self._verdicts) >= _KEPT:
                del self._verdicts[next(iter(self._verdicts))]
            self._verdicts[selector] = verdict
        return verdict

    def column(self, what: Any) -> _Column:
        """The column of a `Key`, of ``driver`` or of ``allow_multiple``, or of several together (a tuple of these)."""
        column = self._columns.get(what)
        if column is None:
            if isinstance(what, tuple):
                column = _Column(list(zip(*(self.column(part).numbers for part in what), strict=True)))
            else:
                column = _Column(self._values(what))
            self._columns[what] = column
        return column

    def _values(self, what: Any) -> Sequence[Any]:
        devices = self.devices
        if what == "driver":
            return [device.driver for device in devices]
        if what == "allow_multiple":
            return [device.allow_multiple for device in devices]
        if what == "everything":
            return [
                (device.driver, device.allow_multiple, *device.attributes.items(), *_amounts(device))
                for device in devices
            ]
        assert isinstance(what, Key)
        if what.whole:
            if what.map == "attributes":
                return [(device.driver, *device.attributes.items()) for device in devices]
            return [(device.driver, *_amounts(device)) for device in devices]
        name = f"{what.domain}/{what.id}"
        if "/" in what.domain:
            return [None] * len(devices)
        found = self._named(what, name)
        return found if what.map == "attributes" else [None if one is None else one.value for one in found]

    def _named(self, key: Key, name: str) -> list[Any]:
        maps: list[Mapping[str, Any]] = self._attributes if key.map == "attributes" else self._capacity
        found = [map_.get(name) for map_ in maps]
        domain, id_ = key.domain, key.id
        if domain not in self._drivers or None not in found:
            return found
        # What has no domain has the driver's; what has one counts first.
        if len(self._drivers) == 1 and found.count(None) == len(found):
            return [map_.get(id_) for map_ in maps]
        return [
            one if one is not None else (map_.get(id_) if device.driver == domain else None)
            for one, map_, device in zip(found, maps, self.devices, strict=True)
        ]


def _amounts(device: Device) -> Iterator[tuple[str, Any]]:
    return ((name, amount.value) for name, amount in device.capacity.items())


def _is_readable(device: Device) -> bool:
    for attribute in device.attributes.values():
        if attribute.versions or (attribute.string is None and attribute.int_ is None and attribute.bool_ is None):
            try:
                attribute_value(attribute)
            except DrahtError:
                return False
    # Quantities have been read already by whoever decoded the device strictly; one that wasn't is found here.
    return True


class _Plan:
    """How a part of a selector is answered for all rows at once."""

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        """The rows on which it is true, and those on which it fails."""
        raise NotImplementedError


@final
class _Combined(_Plan):
    """``&&`` and ``||``: the side that decides hides the other's errors."""

    def __init__(self, left: _Plan, right: _Plan, *, both: bool) -> None:
        self._left = left
        self._right = right
        self._both = both

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        left, left_fails = self._left.rows(table)
        right, right_fails = self._right.rows(table)
        if self._both:
            false = table.all & ~((left | left_fails) & (right | right_fails))
            return left & right, (left_fails | right_fails) & ~false
        true = left | right
        return true, (left_fails | right_fails) & ~true


@final
class _Negated(_Plan):
    """``!``."""

    def __init__(self, inner: _Plan) -> None:
        self._inner = inner

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        true, fails = self._inner.rows(table)
        return table.all & ~true & ~fails, fails


@final
class _Leaf(_Plan):
    """A part that is evaluated once for each combination of what it reads."""

    def __init__(self, expr: Expr, program: Callable[[Device], Any], of_value: Callable[[Any], Any] | None) -> None:
        self._program = program
        self._reads = _columns_of(mentions_of(expr))
        self._of_value = of_value
        self._constants = _compared_constants(expr) if of_value is not None else None

    def rows(self, table: Table) -> tuple[Rows, Rows]:
        if not self._reads:
            answer = self._on_device(table, 0)
            return (table.all if answer is True else 0), (table.all if answer is None else 0)
        column = table.column(self._reads[0] if len(self._reads) == 1 else self._reads)
        if self._constants is not None and len(column.firsts) > _SMALL:
            return self._looked_up(table, column, self._constants)
        if self._of_value is None:
            answers = {row: self._on_device(table, row) for row in column.firsts.values()}
        else:
            answers = {row: self._on_value(table, wire, row) for wire, row in column.firsts.items()}
        matches = column.rows_where({row: answer is True for row, answer in answers.items()})
        if None not in answers.values():
            return matches, 0
        return matches, column.rows_where({row: answer is None for row, answer in answers.items()})

    def _on_device(self, table: Table, row: int) -> bool | None:
        """The answer for this row, None for an error; whether the row is defective doesn't matter here."""
        return _answer(self._program, table.devices[row])

    def _on_value(self, table: Table, wire: DeviceAttribute | None, row: int) -> bool | None:
        value = _value(wire)
        if value is MISSING or self._of_value is None:
            return self._on_device(table, row)
        return _answer(self._of_value, value)

    def _looked_up(self, table: Table, column: _Column, constants: Sequence[Any]) -> tuple[Rows, Rows]:
        """A comparison with constants: all values of a type that aren't among them answer alike."""
        special = {column.firsts.get(_wire(constant), -1): type(constant) for constant in constants}
        special.pop(-1, None)
        true: Rows = 0
        failed: Rows = 0
        for type_, (rows, numbers) in column.by_type().items():
            asked = [row for row, of_type in special.items() if of_type is type_]
            ordinary = next((row for row in numbers if row not in special), None)
            if type_ not in _PLAIN and type_ is not _MISSING_TYPE:
                asked = numbers
            elif ordinary is not None:
                others = rows
                for row in asked:
                    others &= ~column.rows_of(row)
                answer = self._on_device(table, ordinary)
                true |= others if answer is True else 0
                failed |= others if answer is None else 0
            for row in asked:
                answer = self._on_device(table, row)
                true |= column.rows_of(row) if answer is True else 0
                failed |= column.rows_of(row) if answer is None else 0
        return true, failed


def _answer(function: Callable[[Any], Any], value: Any) -> bool | None:
    try:
        answer = function(value)
    except EvaluationError:
        return None
    return answer if answer is True or answer is False else None


def _wire(constant: Any) -> DeviceAttribute:
    match constant:
        case bool():
            return DeviceAttribute(bool_=constant)
        case int():
            return DeviceAttribute(int_=constant)
        case _:
            return DeviceAttribute(string=constant)


def _columns_of(mentions: Mentions) -> tuple[Any, ...]:
    if mentions.everything:
        return ("everything",)
    scalars = ("driver",) * mentions.driver + ("allow_multiple",) * mentions.allow_multiple
    return (*scalars, *sorted(mentions.keys))


@lru_cache(maxsize=_KEPT)
def _plan(selector: Selector) -> _Plan:
    """How the selector is answered for a table."""
    expr = selector.checked.expr
    if selector.cost.most > MAX_COST:
        # Its parts together must stay below the limit, so it isn't taken apart.
        return _Leaf(expr, selector.computed, None)
    return finish(expr, lambda node: _planned(node, selector))


def _planned(expr: Expr, selector: Selector) -> Generator[Expr, _Plan, _Plan]:
    if isinstance(expr, Call) and expr.function in {"_&&_", "_||_"}:
        left = yield expr.args[0]
        right = yield expr.args[1]
        return _Combined(left, right, both=expr.function == "_&&_")
    if isinstance(expr, Call) and expr.function == "!_":
        inner = yield expr.args[0]
        return _Negated(inner)
    path = _single_path(expr)
    of_value = selector.part(expr, path).evaluate if path is not None else None
    return _Leaf(expr, selector.part(expr).evaluate, of_value)


def _single_path(expr: Expr) -> tuple[str, ...] | None:
    """The one attribute that the expression reads, if it is a function of its value alone."""
    inputs = 0
    paths = []
    for node in descendants(expr):
        if isinstance(node, Comprehension) and "device" in {node.variable, node.second, node.accumulator}:
            return None
        inputs += isinstance(node, Identifier) and node.name.removeprefix(".") == "device"
        path = exact_path(node)
        if path is not None and len(path) == 3 and path[0] == "attributes":
            paths.append(path)
    return paths[0] if paths and len(paths) == inputs and len(set(paths)) == 1 else None


def _compared_constants(expr: Expr) -> tuple[Any, ...] | None:
    """What a comparison of an attribute for equality compares it with."""
    if not isinstance(expr, Call):
        return None
    if expr.function in _COMPARISONS:
        others = [argument for argument in expr.args if isinstance(argument, Literal)]
        values = [other.value for other in others if type(other.value) in _PLAIN]
        return tuple(values) if len(values) == 1 and any(map(exact_path, expr.args)) else None
    if expr.function == "@in" and exact_path(expr.args[0]) and isinstance(expr.args[1], ListLiteral):
        values = [one.value for one in expr.args[1].elements if isinstance(one, Literal) and type(one.value) in _PLAIN]
        return tuple(values) if len(values) == len(expr.args[1].elements) else None
    return None
