"""Amounts packed into one integer, so that charging and testing many of them is one subtraction.

Every amount is a field: the remaining amount with a guard bit on top that is set while the amount isn't negative.
Subtracting a packed need subtracts in all fields at once, and a device fits if the guard bits it cares about survive.
That is only sound where those bits were set before; otherwise a field borrows from its neighbour. Values are scaled to
whole numbers by field, so nothing is rounded.

It doesn't know what the fields are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from draht.api.quantity import Quantity

__all__ = ["Field", "FieldPacker", "exact_sum"]

_FAR: Final = 300
# Beyond this many decimal digits amounts are taken as equally infinite: no cluster has them, and exact arithmetic with
# exponents out of somebody's text has no bound.


@dataclass(frozen=True, slots=True)
class Field:
    """One packed amount.

    Args:
        shift: Lowest bit.
        width: Bits without the guard.
        exponent: The unit is ``10**exponent``.
    """

    shift: int
    width: int
    exponent: int

    @property
    def guard(self) -> int:
        """The guard bit, in place."""
        return 1 << (self.shift + self.width)

    def remaining(self, amounts: Iterable[tuple[int, Quantity]]) -> int:
        """A signed sum of amounts, rounded down to the unit, limited to the field, with its guard, in place.

        Rounding down is exact for the search: all needs are whole units.
        """
        value = exact_sum(amounts, self.exponent)
        limit = 1 << self.width
        return (max(-limit, min(value, limit - 1)) + limit) << self.shift

    def need(self, amounts: Iterable[tuple[int, Quantity]]) -> int:
        """A sum of amounts to subtract, in place; one that can never fit is as large as the field."""
        value = exact_sum(amounts, self.exponent)
        limit = 1 << self.width
        return max(-limit, min(value, limit)) << self.shift


class FieldPacker:
    """Lays fields out one after the other."""

    __slots__ = ("negative", "size")

    def __init__(self) -> None:
        self.size = 0
        # Whether some need is negative: then a device can make room for another one.
        self.negative = False

    def add(self, value: Quantity, needs: Iterable[Quantity]) -> Field:
        """A field for an amount of which these needs may be taken, each any number of times while it fits."""
        wanted = list(needs)
        exponent = min((q.exponent for q in wanted if q.mantissa), default=0)
        total = abs(exact_sum(((1, value),), exponent))
        gains = sum(-exact_sum(((1, q),), exponent) for q in wanted if q.mantissa < 0)
        self.negative = self.negative or gains > 0
        width = (total + 64 * gains).bit_length() + 1
        made = Field(self.size, width, exponent)
        self.size += width + 1
        return made


def exact_sum(amounts: Iterable[tuple[int, Quantity]], exponent: int) -> int:
    """A sum of signed amounts in units of ``10**exponent``, rounded down."""
    listed = [(sign * q.mantissa, q.exponent) for sign, q in amounts if q.mantissa]
    if len(listed) == 1:
        mantissa, own = listed[0]
        if 0 <= own - exponent <= _FAR:
            single: int = mantissa * 10 ** (own - exponent)
            return single
    low = max(min((e for _, e in listed), default=exponent), exponent - _FAR)
    low = min(low, exponent)
    total = 0
    for mantissa, own in listed:
        places = own - low
        if places > 2 * _FAR:
            places = 2 * _FAR
        if places >= 0:
            total += mantissa * 10**places
        else:
            total += mantissa // 10 ** min(-places, 2 * _FAR)
    return total // 10 ** (exponent - low) if exponent > low else total
