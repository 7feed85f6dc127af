"""The text of a quantity: its grammar, and the canonical text of a value.

Kubernetes' amounts (``80Gi``, ``1500m``, ``12e6``) have a grammar of their own, with corners that only the code of
upstream's ``resource.Quantity`` defines; both directions live here so that they can be compared with it line by line.
Source of every rule: k8s.io/apimachinery v0.37.2, ``pkg/api/resource``. What such a value is worth, how it compares and
adds up, is `draht.api.quantity`.

Corners worth knowing, all upstream's:

- digits may be absent: ``Mi``, ``+`` and ``.`` are zero (but ``Pi`` and ``e-30`` are refused);
- what is finer than nano is rounded away from zero, so a request never becomes nothing;
- only values with a binary suffix are capped, at ±(2^63-1);
- exponents are 32 bits wide and wrap around: ``5e4294967296`` is 5;
- canonical text knows no suffix above ``E`` and ``Ei`` and then writes *none*: ``1000E`` becomes ``1``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from draht.api.errors import DrahtError
from draht.api.gonumbers import MAX_INT64, MIN_INT64, wrap32

__all__ = ["MAX_DIGITS", "Format", "Parts", "QuantityError", "QuantityRangeError", "canonical", "parse"]

MAX_DIGITS = 4096
"""Longest text that is read and most digits a result may have. Upstream has no limit but the size of a request; the
longest quantity that means something has some twenty characters, and digits cost quadratic time."""

_FAST_DIGITS = 18
"""Digits that upstream holds in an int64 together with a decimal exponent; longer numbers become big decimals."""

_NANO = -9
_INTERPRETER_DIGITS = 640
"""Digits that `int` and `str` convert however ``PYTHONINTMAXSTRDIGITS`` is set."""


class QuantityError(DrahtError):
    """A text is no quantity, or an operation on quantities has no answer."""


class QuantityRangeError(QuantityError):
    """The exact result is larger than anything that is computed here (`MAX_DIGITS`)."""


class Format(StrEnum):
    """The family of suffixes a quantity was written with, and will be written with again."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class Parts(NamedTuple):
    """What a text says: ``mantissa * 10**exponent``, and how upstream would hold and print it."""

    mantissa: int
    exponent: int
    format: Format
    big: bool
    """Whether upstream holds the value as a big decimal, which decides about conversions to integers."""
    text: str | None
    """The text that upstream prints instead of the canonical one, because it was close enough to it."""


# Possessive quantifiers: without them a long row of digits before a bad character costs quadratic time.
_QUANTITY = re.compile(r"([+-]?)(0*+)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[+-]?[0-9]*+)")
_EXPONENT = re.compile(r"[eE]([+-]?)([0-9]+)")

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIXES = {suffix: (exponent, Format.DECIMAL_SI) for suffix, exponent in _DECIMAL.items()} | {
    suffix: (exponent, Format.BINARY_SI) for suffix, exponent in _BINARY.items()
}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}
_BINARY_FAST_DIGITS = {exponent: 14 - exponent * 3 // 10 for exponent in _BINARY.values()}
_POWERS_OF_2 = {exponent: 1 << exponent for exponent in _BINARY.values()}

# What people write instead, by its lower-case letters.
_LOOKALIKES = {
    "k": "k for 1000 or Ki for 1024",
    "kb": "k for 1000 or Ki for 1024 bytes",
    "kib": "Ki for 1024 bytes",
    "mb": "M for 10^6 or Mi for 2^20 bytes",
    "mib": "Mi for 2^20 bytes",
    "g": "G for 10^9 or Gi for 2^30",
    "gb": "G for 10^9 or Gi for 2^30 bytes",
    "gib": "Gi for 2^30 bytes",
    "tb": "T for 10^12 or Ti for 2^40 bytes",
    "tib": "Ti for 2^40 bytes",
}


def parse(text: str) -> Parts:
    """Read a quantity as upstream's ``ParseQuantity`` does.

    Raises:
        QuantityError: The text is no quantity, or is longer than `MAX_DIGITS` characters.
    """
    if len(text) > MAX_DIGITS:
        raise QuantityError(
            f"a quantity of {len(text)} characters, more than the {MAX_DIGITS} that are read",
            hint="round the number to what is meant",
        )
    match = _QUANTITY.fullmatch(text)
    if match is None or not text:
        raise _refused(text)
    sign, zeros, whole, fraction, suffix = match.groups()
    known = _SUFFIXES.get(suffix)
    exponent, family = known if known is not None else _interpret(text, suffix)
    has_digits = bool(zeros or whole or fraction)
    whole = whole or "0"
    fraction = fraction or ""

    if family is Format.BINARY_SI:
        if not fraction and len(whole) <= _BINARY_FAST_DIGITS[exponent]:
            value = int(whole)
            mantissa = value << exponent
            # Upstream takes a number that isn't a multiple of eight for canonical.
            return Parts(-mantissa if sign == "-" else mantissa, 0, family, False, text if value & 7 else None)
    elif len(whole) + len(fraction) <= _FAST_DIGITS:
        scale = wrap32(exponent - len(fraction))
        if scale >= _NANO:
            digits = whole + fraction
            mantissa = int(digits)
            kept = text == "0" or (scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000"))
            return Parts(-mantissa if sign == "-" else mantissa, scale, family, False, text if kept else None)

    if not has_digits:
        raise _refused(text)
    return _big(sign, whole + fraction, len(fraction), exponent, family)


def _big(sign: str, digits: str, places: int, exponent: int, family: Format) -> Parts:
    """The value of a number that upstream holds as a big decimal: rounded to nano, capped, its family corrected."""
    mantissa = _integer(digits)
    if mantissa == 0:
        return Parts(0, -places if family is Format.BINARY_SI else wrap32(exponent - places), family, True, None)
    if family is Format.BINARY_SI:
        mantissa *= _POWERS_OF_2[exponent]
        exponent = 0
    exponent -= places
    if exponent < _NANO:
        dropped = _NANO - exponent
        # More places dropped than there are digits: no need for the power of ten.
        mantissa = 1 if dropped > len(digits) + 20 else -(-mantissa // 10**dropped)
        exponent = _NANO
    elif exponent - _NANO + len(digits) <= MAX_DIGITS:
        mantissa *= 10 ** (exponent - _NANO)
        exponent = _NANO
    if family is Format.BINARY_SI:
        if mantissa > MAX_INT64 * 10**9:
            mantissa, exponent = MAX_INT64, 0
        elif mantissa < 10**9:
            family = Format.DECIMAL_SI
    return Parts(-mantissa if sign == "-" else mantissa, exponent, family, True, None)


def canonical(mantissa: int, exponent: int, family: Format, *, big: bool) -> str:
    """The canonical text of a value, as upstream's ``CanonicalizeBytes`` builds it.

    No fraction, the largest suffix that needs none, the family kept: except that binary values between -1024 and 1024
    and those with a fraction are written with decimal suffixes.
    """
    if mantissa == 0:
        return "0"
    if family is Format.BINARY_SI:
        whole = _whole(mantissa, exponent)
        if whole is not None and not -1024 < whole < 1024:
            twos = (whole & -whole).bit_length() - 1
            # Upstream's int64 code can't negate the smallest int64, so it finds no factors in it.
            times = 0 if whole == MIN_INT64 and not big else twos // 10
            return _text(whole >> 10 * times) + _BINARY_SUFFIX.get(10 * times, "")
        family = Format.DECIMAL_SI
    digits = _text(mantissa)
    stripped = digits.rstrip("0")
    exponent = wrap32(exponent + len(digits) - len(stripped))
    padding = exponent % 3
    stripped += "0" * padding
    exponent = wrap32(exponent - padding)
    if family is Format.DECIMAL_SI:
        return stripped + _DECIMAL_SUFFIX.get(exponent, "")
    return f"{stripped}e{exponent}" if exponent else stripped


def _interpret(text: str, suffix: str) -> tuple[int, Format]:
    """The exponent of ``e5`` or ``E-3``; it is read with 64 bits and used with 32."""
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise _refused(text)
    digits = match[2].lstrip("0") or "0"
    if len(digits) > 19:
        raise _refused(text)
    exponent = -int(digits) if match[1] == "-" else int(digits)
    if not -(2**63) <= exponent < 2**63:
        raise _refused(text)
    return wrap32(exponent), Format.DECIMAL_EXPONENT


def _whole(mantissa: int, exponent: int) -> int | None:
    """The value if it has no fraction."""
    if exponent >= 0:
        return mantissa * int(10**exponent)
    quotient, remainder = divmod(mantissa, 10**-exponent)
    return None if remainder else quotient


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _INTERPRETER_DIGITS else int(Decimal(digits))


def _text(number: int) -> str:
    if number.bit_length() < 3 * _INTERPRETER_DIGITS:
        return str(number)
    return format(Decimal(number), "f")


def _refused(text: str) -> QuantityError:
    if not text:
        return QuantityError(
            "an empty text is no quantity", hint="write a number with an optional suffix, such as 80Gi"
        )
    letters = text.lstrip("+-.0123456789 ")
    meant = _LOOKALIKES.get(letters.lower(), "a number with one of n u m k M G T P E, Ki … Ei or e<exponent>")
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return QuantityError(f"{shown!r} is no quantity", hint=f"write {meant}")
