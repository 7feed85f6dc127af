"""The values of one thing that many devices have.

Owns their numbering: equal values get one number, which is the first row that has the value, and a question that was
answered for each value becomes a set of rows. It doesn't know where the values come from or what is asked of them.

Sets of rows are integers: bit i is row i.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from draht.api.errors import DrahtError
from draht.api.resource.device import DeviceAttribute
from draht.cel.device import attribute_value
from draht.cel.values import MISSING

__all__ = ["SMALL", "Column", "Rows"]

SMALL: Final = 256
"""Values that a byte can number."""
_DIGITS: Final = b"01"

Rows: TypeAlias = int
"""A set of rows."""


@final
class Column:
    """The values of one thing in all rows; equal ones have the number of the first row in which they are."""

    __slots__ = ("_small", "_typed", "_values", "firsts", "numbers")

    def __init__(self, values: Sequence[Any]) -> None:
        firsts: dict[Any, int] = {}
        put = firsts.setdefault
        self.numbers = [put(value, row) for row, value in enumerate(values)]
        self.firsts = firsts
        """Value → its first row."""
        self._small: tuple[bytes, dict[int, int]] | None = None
        self._typed: dict[type, tuple[Rows, list[int]]] | None = None
        self._values: list[Any] | None = None

    @property
    def distinct(self) -> bool:
        """Whether no value occurs twice."""
        return len(self.firsts) == len(self.numbers)

    def rows_where(self, holds: Mapping[int, bool]) -> Rows:
        """The rows whose number maps to True."""
        if len(self.firsts) <= SMALL:
            if self._small is None:
                ranks = {row: rank for rank, row in enumerate(self.firsts.values())}
                # From the last row to the first, as the digits of a number are written.
                self._small = bytes(map(ranks.__getitem__, reversed(self.numbers))), ranks
            ranked, ranks = self._small
            digits = bytearray(b"0" * SMALL)
            for row, rank in ranks.items():
                if holds[row]:
                    digits[rank] = 49
            return int(ranked.translate(digits), 2)
        if not any(holds.values()):
            return 0
        return int(bytes([_DIGITS[holds[number]] for number in reversed(self.numbers)]), 2)

    @property
    def values(self) -> list[Any]:
        """The values of an attribute, in the order of `firsts`; `MISSING` for none."""
        if self._values is None:
            self._values = [_value(wire) for wire in self.firsts]
        return self._values

    @property
    def known(self) -> list[Any]:
        """The values that there are, in the same order."""
        return [value for value in self.values if value is not MISSING]

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
            for value, row in zip(self.values, self.firsts.values(), strict=True):
                numbers.setdefault(type(value), []).append(row)
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
