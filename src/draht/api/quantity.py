"""Amounts as Kubernetes means them: exact values that remember how they were written.

A `Quantity` is a value like ``80Gi`` or ``1500m``. It exists because capacities decide who gets a device: they must
compare, add up and print exactly as upstream's ``resource.Quantity`` (k8s.io/apimachinery v0.37.2) does, also where
upstream is peculiar. The grammar and the canonical text are in `draht.api.quantity_syntax`.

Upstream holds a value either as an int64 with a decimal exponent or as a big decimal, and its conversions to integers
differ between the two: ``1Gi`` is an integer, ``1.5Gi`` is not. That is visible to selectors, so the form is kept here
as well. Values are immutable and safe to share between threads.

Two deliberate differences, both where upstream has no usable answer:

- Work is bounded. Upstream compares or adds ``1e999999999`` by writing out a billion digits, and wraps exponents
  around when their difference leaves 32 bits. Here comparison looks at magnitudes first and always answers;
  arithmetic whose exact result has more than `MAX_DIGITS` digits raises `QuantityRangeError`.
- Nothing is changed by being looked at. Upstream's comparison turns its receiver into a big decimal when its operand
  is one, after which the receiver is no integer any more.

Errors::

    DrahtError
    └── QuantityError            a text is no quantity, an argument is out of bounds
        └── QuantityRangeError   the exact result is too large to compute
"""

from __future__ import annotations

import sys
from decimal import Decimal
from functools import lru_cache
from typing import Final, final

from draht.api.gonumbers import (
    MAX_INT64,
    MIN_INT64,
    approximate,
    negated,
    rounded_away,
    scaled_big,
    scaled_up,
    scaled_up_unchecked,
    wrap32,
)
from draht.api.quantity_syntax import (
    MAX_DIGITS,
    Format,
    QuantityError,
    QuantityRangeError,
    canonical,
    parse,
)

__all__ = ["MAX_DIGITS", "Format", "Quantity", "QuantityError", "QuantityRangeError"]

_CACHED_LENGTH: Final = 32
# Exponents that are aligned without a look at the magnitudes first: nano to exa are 27 apart.
_NEAR: Final = 32
_HASH_MODULUS: Final = sys.hash_info.modulus
# What Go's strings.TrimSpace removes; str.strip() would remove four more control characters.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@final
class Quantity:
    """An exact amount: ``mantissa * 10**exponent`` and the family of suffixes it is written with.

    ``Quantity("80Gi")`` reads a text. Equality, order and hash follow the value alone: ``1Gi == 1024Mi``. ``str`` gives
    what upstream would send, which for most texts is the text itself.

    Raises:
        QuantityError: The text is no quantity.
    """

    __slots__ = ("_big", "_exponent", "_format", "_mantissa", "_text")

    _mantissa: int
    _exponent: int
    _format: Format
    _big: bool
    _text: str | None

    def __new__(cls, text: str) -> Quantity:
        """Read a text; equal texts may share one object."""
        return _cached(text) if len(text) <= _CACHED_LENGTH else _make(*parse(text))

    @classmethod
    def unshared(cls, text: str) -> Quantity:
        """Read a text into an object of its own, for languages in which amounts have an identity.

        Raises:
            QuantityError: It is no quantity.
        """
        return _make(*parse(text))

    @classmethod
    def of(cls, value: int, family: Format = Format.DECIMAL_SI, *, scale: int = 0) -> Quantity:
        """The amount ``value * 10**scale``; upstream's ``NewQuantity``, ``NewMilliQuantity`` and ``NewScaledQuantity``.

        Raises:
            QuantityError: The value has more than 64 bits, or the scale isn't between -9 (nano) and 18 (exa).
        """
        if not MIN_INT64 <= value <= MAX_INT64:
            raise QuantityError("the number doesn't fit in 64 bits", hint="use Quantity(text) for larger amounts")
        if not -9 <= scale <= 18:
            raise QuantityError(f"scale {scale} is not between -9 and 18")
        return _make(value, scale, family, False, None)

    @classmethod
    def from_wire(cls, value: object) -> Quantity:
        """The amount in a decoded JSON or YAML value: a string or a number; surrounding space is ignored.

        A fractional number should reach this as `decimal.Decimal` (a decoder's ``float_hook``) or as its source text: a
        float has lost how it was written, and with that perhaps its family of suffixes.

        Raises:
            QuantityError: The value is neither, or is no quantity.
        """
        if isinstance(value, str):
            return cls(value.strip(_SPACE))
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            if isinstance(value, int) and value.bit_length() > 4 * MAX_DIGITS:
                raise QuantityError("the number is too long for a quantity", hint="round the number to what is meant")
            return cls(format(Decimal(value), "f") if isinstance(value, int) else str(value))
        raise QuantityError(
            f"a quantity is a string or a number, not {type(value).__name__}", hint="write it in quotes, such as '80Gi'"
        )

    @property
    def mantissa(self) -> int:
        """The value without its power of ten."""
        return self._mantissa

    @property
    def exponent(self) -> int:
        """The power of ten; not normalised, and not the power of two of a binary suffix."""
        return self._exponent

    @property
    def format(self) -> Format:
        """The family of suffixes."""
        return self._format

    def __str__(self) -> str:
        return self.canonical() if self._text is None else self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _make, (self._mantissa, self._exponent, self._format, self._big, self._text)

    def canonical(self) -> str:
        """The canonical text; ``str`` is the text that was read where upstream keeps it (``+5``, ``12E6``).

        It loses the value in the one case where upstream's does: beyond the largest suffix of its family.
        """
        return canonical(self._mantissa, self._exponent, self._format, big=self._big)

    # Comparison

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1 as the value is less than, equal to or greater than the other; upstream's ``Cmp``."""
        mine, theirs = self._mantissa, other._mantissa
        if self._exponent == other._exponent:
            return (mine > theirs) - (mine < theirs)
        return _compare(mine, self._exponent, theirs, other._exponent)

    def is_identical(self, other: Quantity) -> bool:
        """Whether upstream's ``==`` of the two structs holds: same value, form and spelling, and no big decimal.

        Upstream compares like this in one place, where a request equals the default of a policy.
        """
        if self._big or other._big:
            return False
        return (self._mantissa, self._exponent, self._format, self._text) == (
            other._mantissa,
            other._exponent,
            other._format,
            other._text,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        if self._exponent == other._exponent:
            return self._mantissa == other._mantissa
        return self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        if self._exponent == other._exponent:
            return self._mantissa < other._mantissa
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        if self._exponent == other._exponent:
            return self._mantissa <= other._mantissa
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        if self._exponent == other._exponent:
            return self._mantissa > other._mantissa
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        if self._exponent == other._exponent:
            return self._mantissa >= other._mantissa
        return self.compare(other) >= 0

    def __hash__(self) -> int:
        if self._exponent == 0:
            return hash(self._mantissa)
        # As Python hashes fractions: equal values have equal hashes and no power of ten is written out.
        value = abs(self._mantissa) * pow(10, self._exponent, _HASH_MODULUS) % _HASH_MODULUS
        return hash(value if self._mantissa >= 0 else -value)

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._mantissa > 0) - (self._mantissa < 0)

    def __bool__(self) -> bool:
        return self._mantissa != 0

    # Arithmetic

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in this value's format unless it is zero.

        Raises:
            QuantityRangeError: The sum has more than `MAX_DIGITS` digits.
        """
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._plus(other, other._mantissa, other._mantissa)

    def __sub__(self, other: Quantity) -> Quantity:
        """The difference, in this value's format unless it is zero.

        Raises:
            QuantityRangeError: The difference has more than `MAX_DIGITS` digits.
        """
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._plus(other, negated(other._mantissa), -other._mantissa)

    def __mul__(self, factor: int) -> Quantity:
        """The product with a 64-bit integer; exact, whatever upstream's ``Mul`` reports about it.

        Raises:
            QuantityError: The factor has more than 64 bits.
            QuantityRangeError: The product has more than `MAX_DIGITS` digits.
        """
        if not isinstance(factor, int):
            return NotImplemented
        if not MIN_INT64 <= factor <= MAX_INT64:
            raise QuantityError("a factor must fit in 64 bits")
        mantissa, exponent = self._mantissa, self._exponent
        product = mantissa * factor
        if self._big:
            return _make(_bounded(product), exponent, self._format, True, None)
        if mantissa == 0:
            return _make(0, exponent, self._format, False, None)
        if factor == 0:
            return _make(0, 0, self._format, False, None)
        # Upstream stays with int64 where nothing overflows and, for fractions, where the product is an integer.
        fits = MIN_INT64 <= product <= MAX_INT64 and not (
            MIN_INT64 in (mantissa, factor) and 1 not in (mantissa, factor)
        )
        if exponent > 0:
            fits = fits and scaled_up(product, exponent) is not None
        elif exponent < 0:
            fits = fits and product % 10**-exponent == 0
        return _make(_bounded(product), exponent, self._format, not fits, None)

    def __neg__(self) -> Quantity:
        mantissa = -self._mantissa if self._big else negated(self._mantissa)
        return _make(mantissa, self._exponent, self._format, self._big, None)

    def _plus(self, other: Quantity, small: int, exact: int) -> Quantity:
        """Add the other's exponent with a mantissa of ours: ``small`` in int64, ``exact`` where that overflows."""
        family = self._format if self._mantissa else other._format
        mantissa, exponent = self._mantissa, self._exponent
        if not (self._big or other._big):
            if small == 0:
                return _make(mantissa, exponent, family, False, None)
            if mantissa == 0:
                return _make(small, other._exponent, family, False, None)
            low = min(exponent, other._exponent)
            left = scaled_up(mantissa, exponent - low)
            right = scaled_up(small, other._exponent - low)
            if left is not None and right is not None and MIN_INT64 <= left + right <= MAX_INT64:
                return _make(left + right, low, family, False, None)
        low = min(exponent, other._exponent)
        if mantissa == 0 and other._exponent - low > MAX_DIGITS:
            return _make(exact, other._exponent, family, True, None)
        if exact == 0 and exponent - low > MAX_DIGITS:
            return _make(mantissa, exponent, family, True, None)
        total = _bounded(mantissa, exponent - low) + _bounded(exact, other._exponent - low)
        return _make(_bounded(total), low, family, True, None)

    # Conversion

    def value(self) -> int:
        """The value as upstream's ``Value``: rounded away from zero, but 0 or wrapped around where 64 bits overflow.

        A negative fraction that upstream holds as a big decimal is rounded *up* and then up again (-1.0000000001 is
        0); use `compare` where the exact value matters.
        """
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """The value in thousandths; see `value`."""
        return self.scaled_value(-3)

    def scaled_value(self, scale: int) -> int:
        """The value in units of ``10**scale``; see `value`."""
        if self._big:
            # Beyond this exponent upstream holds the value in nano-units: a multiple of 2**64.
            return 0 if self._exponent > MAX_DIGITS else scaled_big(self._mantissa, scale - self._exponent)
        if self._exponent < scale:
            return rounded_away(self._mantissa, scale - self._exponent)
        places = wrap32(self._exponent - scale)
        return self._mantissa if places < 0 else scaled_up_unchecked(self._mantissa, places)

    def as_int64(self) -> int | None:
        """The value if upstream can tell it as an int64 at once, else None; CEL's ``asInteger``.

        None for big decimals and for numbers written with a fraction, even one of zeros (``1.0``).
        """
        if self._big or self._exponent < 0:
            return None
        return scaled_up(self._mantissa, self._exponent)

    def is_integer(self) -> bool:
        """Whether `as_int64` has an answer; CEL's ``isInteger``."""
        return self.as_int64() is not None

    def as_approximate_float64(self) -> float:
        """The nearest float to the mantissa times the nearest to the power of ten, both rounded as Go does.

        Infinite beyond a float's range. Not a number for a zero with a huge exponent, as upstream.
        """
        return approximate(self._mantissa, self._exponent)


def _make(mantissa: int, exponent: int, family: Format, big: bool, text: str | None) -> Quantity:
    quantity: Quantity = object.__new__(Quantity)
    quantity._mantissa = mantissa
    quantity._exponent = exponent
    quantity._format = family
    quantity._big = big
    quantity._text = text
    return quantity


# A cluster has few distinct amounts and many devices that have them.
@lru_cache(maxsize=8192)
def _cached(text: str) -> Quantity:
    return _make(*parse(text))


def _digits(number: int) -> int:
    """The number of decimal digits, or one more; never less."""
    return number.bit_length() * 30103 // 100000 + 1


def _compare(a: int, a_exponent: int, b: int, b_exponent: int) -> int:
    if not -_NEAR < a_exponent - b_exponent < _NEAR:
        a_sign, b_sign = (a > 0) - (a < 0), (b > 0) - (b < 0)
        if a_sign != b_sign or a_sign == 0:
            return (a_sign > b_sign) - (a_sign < b_sign)
        apart = (a_exponent + _digits(a)) - (b_exponent + _digits(b))
        if abs(apart) > 2:
            return a_sign if apart > 0 else -a_sign
        # Magnitudes are close, so the exponents are no further apart than one of the mantissas is long.
    if a_exponent > b_exponent:
        a *= 10 ** (a_exponent - b_exponent)
    else:
        b *= 10 ** (b_exponent - a_exponent)
    return (a > b) - (a < b)


def _bounded(number: int, places: int = 0) -> int:
    """``number * 10**places``, refused before it is computed where that would be enormous."""
    if number and _digits(number) + places > MAX_DIGITS + 1:
        raise QuantityRangeError(
            f"the exact result has more than {MAX_DIGITS} digits", hint="check the exponents of the amounts"
        )
    return number * 10**places if number else 0
