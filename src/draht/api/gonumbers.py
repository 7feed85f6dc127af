"""Go's integer and float arithmetic, where it differs from Python's.

Upstream's quantities are computed with 64-bit integers that overflow in silence, exponents of 32 bits and powers of ten
from a table. Whoever reproduces them needs these few operations exactly; they hold no rule about quantities. Source:
the Go specification (integer overflow, numeric conversion), Go 1.26 ``math.Pow10``, and k8s.io/apimachinery v0.37.2
``pkg/api/resource`` for the ways it rounds.
"""

from __future__ import annotations

import math
from typing import Final

__all__ = [
    "MAX_INT64",
    "MIN_INT64",
    "approximate",
    "negated",
    "rounded_away",
    "scaled_big",
    "scaled_up",
    "scaled_up_unchecked",
    "wrap32",
    "wrap64",
]

MIN_INT64: Final = -(2**63)
MAX_INT64: Final = 2**63 - 1

# The tables that Go multiplies powers of ten from; 10.0**n differs in the last bit for some n.
_POW10_LOW: Final = tuple(float(f"1e{n}") for n in range(32))
_POW10_HIGH: Final = tuple(float(f"1e{32 * n}") for n in range(10))
_POW10_NEGATIVE: Final = tuple(float(f"1e-{32 * n}") for n in range(11))


def wrap32(number: int) -> int:
    """The number as an int32 that overflowed."""
    return number if -(2**31) <= number < 2**31 else (number + 2**31) % 2**32 - 2**31


def wrap64(number: int) -> int:
    """The number as an int64 that overflowed; also what ``big.Int.Int64`` gives."""
    return number if MIN_INT64 <= number <= MAX_INT64 else (number + 2**63) % 2**64 - 2**63


def negated(number: int) -> int:
    """The negated int64; the smallest one stays itself."""
    return number if number == MIN_INT64 else -number


def scaled_up(number: int, places: int) -> int | None:
    """``number * 10**places`` if it fits in an int64."""
    if places == 0 or number == 0:
        return number
    if places > 18:
        return None
    scaled: int = number * 10**places
    return scaled if MIN_INT64 <= scaled <= MAX_INT64 else None


def scaled_up_unchecked(number: int, places: int) -> int:
    """What upstream's ``ScaledValue`` returns for an int64 whether or not it fits.

    It scales by these five powers in one step and keeps the overflowed product; by others digit by digit, ending at 0.
    """
    scaled = scaled_up(number, places)
    if scaled is not None:
        return scaled
    if places in {1, 2, 3, 6, 9} and number != MIN_INT64:
        return wrap64(number * int(10**places))
    return 0


def rounded_away(number: int, places: int) -> int:
    """An int64 without its last decimal places, rounded away from zero."""
    divisor: int = 10 ** min(places, 20)
    return -(-number // divisor) if number >= 0 else number // divisor


def scaled_big(mantissa: int, dropped: int) -> int:
    """A big integer without its last decimal places as an int64: upstream's ``scaledValue``.

    It adds one whenever something was dropped, so a negative number that was cut towards zero goes up twice; and it
    overflows in silence.
    """
    if dropped == 0:
        return wrap64(mantissa)
    if dropped < 0:
        # A float that is too large for an int64 converts to the smallest one (on amd64).
        power: int = 10**-dropped if dropped >= -18 else MIN_INT64
        return wrap64(wrap64(mantissa) * power)
    # A divisor above the mantissa's magnitude changes nothing any more, however much larger it is.
    divisor = 10 ** min(dropped, mantissa.bit_length() + 19)
    if mantissa < MAX_INT64 and dropped < 19:
        mantissa = wrap64(mantissa)
        quotient = abs(mantissa) // divisor
        quotient = quotient if mantissa >= 0 else -quotient
    else:
        quotient = mantissa // divisor
    return wrap64(wrap64(quotient) + (1 if mantissa % divisor else 0))


def approximate(mantissa: int, exponent: int) -> float:
    """The nearest float to the mantissa times Go's power of ten; infinite or not a number as in Go."""
    try:
        base = float(mantissa)
    except OverflowError:
        base = math.inf if mantissa > 0 else -math.inf
    return base * _pow10(exponent) if exponent else base


def _pow10(exponent: int) -> float:
    if exponent > 308:
        return math.inf
    if exponent >= 0:
        return _POW10_HIGH[exponent // 32] * _POW10_LOW[exponent % 32]
    if exponent >= -323:
        return _POW10_NEGATIVE[-exponent // 32] / _POW10_LOW[-exponent % 32]
    return 0.0
