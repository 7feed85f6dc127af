"""Conversions between types: ``int(x)``, ``string(x)``, ``type(x)`` and the like.

What texts are numbers is what Go's ``strconv`` reads, and doubles are written as Go's ``%g`` writes them. Source:
cel-go v0.29.2 ``common/stdlib`` and ``ConvertToType`` in ``common/types``; Go 1.26 ``strconv``. How durations and
timestamps are read and written is `draht.cel.gotime`'s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from draht.cel.declarations import Function, Overload
from draht.cel.errors import EvaluationError
from draht.cel.gotime import (
    MAX_UNIX_SECONDS,
    MIN_UNIX_SECONDS,
    Instant,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from draht.cel.numbers import MAX_UINT64, UInt
from draht.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT, Type, parameter, type_of
from draht.cel.values import MAX_INT64, MIN_INT64, Duration, Timestamp
from draht.cel.values import type_of as type_of_value

__all__ = ["CONVERSIONS", "CONVERSION_NAMES", "format_double"]

_A: Final = parameter("A")
_TWO_63: Final = 2.0**63
_TWO_64: Final = 2.0**64

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DIGITS: Final = re.compile(r"[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](?:([0-9a-fA-F]+)\.?([0-9a-fA-F]*)|\.([0-9a-fA-F]+))[pP]([+-]?)([0-9]+)")
# An underscore stands between digits or behind the prefix.
_BAD_UNDERSCORE: Final = re.compile(r"(?:^|[^0-9_])_|__|_(?:[^0-9]|$)")
_BAD_HEX_UNDERSCORE: Final = re.compile(r"(?:^|[^0-9a-fA-F_])_|__|_(?:[^0-9a-fA-F]|$)")
_PREFIX: Final = re.compile(r"([+-]?0)[xX]")
_INFINITE: Final = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _fails(value: Any, target: Type, hint: str | None = None) -> EvaluationError:
    message = f"type conversion error from '{type_of_value(value).name}' to '{target.name}'"
    return EvaluationError(message, kind="conversion", hint=hint)


def _same(value: Any) -> Any:
    return value


def _string_to_int(text: str) -> int:
    # The length first: a megabyte of digits must not be converted to be refused.
    if _INTEGER.fullmatch(text) and len(text.lstrip("+-").lstrip("0")) <= 19:
        number = int(text)
        if MIN_INT64 <= number <= MAX_INT64:
            return number
    raise _fails(text, INT)


def _string_to_uint(text: str) -> UInt:
    if _DIGITS.fullmatch(text) and len(text.lstrip("0")) <= 20:
        number = int(text)
        if number <= MAX_UINT64:
            return UInt(number)
    raise _fails(text, UINT)


def _string_to_double(text: str) -> float:
    bare = text
    if "_" in text:
        prefix = _PREFIX.match(text)
        bad = (
            _BAD_HEX_UNDERSCORE.search("0" + text[prefix.end() :])
            if prefix is not None
            else _BAD_UNDERSCORE.search(text)
        )
        if bad is not None:
            raise _fails(text, DOUBLE)
        bare = text.replace("_", "")
    if _DECIMAL.fullmatch(bare):
        number = float(bare)
        if not math.isinf(number):
            return number
    elif (match := _HEXADECIMAL.fullmatch(bare)) is not None:
        # A larger exponent changes nothing of what fits into an expression.
        exponent = min(int(match[5].lstrip("0")[:7] or "0"), 1_000_000)
        sign = "-" if bare[0] == "-" else ""
        try:
            return float.fromhex(f"{sign}0x{match[1] or '0'}.{match[2] or match[3] or '0'}p{match[4]}{exponent}")
        except OverflowError:
            pass
    elif text.lower() == "nan":
        return math.nan
    elif _INFINITE.fullmatch(text):
        return -math.inf if text[0] == "-" else math.inf
    raise _fails(text, DOUBLE)


def _double_to_int(number: float) -> int:
    # The smallest int64 is refused too, as upstream does.
    if -_TWO_63 < number < _TWO_63:
        return int(number)
    raise EvaluationError("integer overflow", kind="overflow")


def _double_to_uint(number: float) -> UInt:
    if 0 <= number < _TWO_64:
        return UInt(int(number))
    raise EvaluationError("unsigned integer overflow", kind="overflow")


def _uint_to_int(number: UInt) -> int:
    if number > MAX_INT64:
        raise EvaluationError("integer overflow", kind="overflow")
    return int(number)


def _int_to_uint(number: int) -> UInt:
    if number < 0:
        raise EvaluationError("unsigned integer overflow", kind="overflow")
    return UInt(number)


def _string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _fails(text, BOOL)


def _string_to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string", kind="conversion") from None


def _string_to_duration(text: str) -> Duration:
    try:
        return Duration(parse_duration(text))
    except ValueError as error:
        raise _fails(text, DURATION, str(error)) from None


def _string_to_timestamp(text: str) -> Timestamp:
    try:
        return Timestamp(*parse_timestamp(text))
    except ValueError as error:
        raise _fails(text, TIMESTAMP, str(error)) from None


def _int_to_timestamp(seconds: int) -> Timestamp:
    if not MIN_UNIX_SECONDS <= seconds <= MAX_UNIX_SECONDS:
        raise EvaluationError("timestamp overflow", kind="overflow")
    return Timestamp(seconds)


def _timestamp_to_int(moment: Timestamp) -> int:
    return moment.seconds


def _timestamp_to_string(moment: Timestamp) -> str:
    return format_timestamp(Instant(moment.seconds, moment.nanoseconds, moment.offset))


def _duration_to_int(duration: Duration) -> int:
    return duration.nanoseconds


def _duration_to_string(duration: Duration) -> str:
    return format_duration(duration.nanoseconds)


def _bool_to_string(value: bool) -> str:
    return "true" if value else "false"


def _number_to_string(number: int) -> str:
    return str(int(number))


def format_double(number: float) -> str:
    """A double as Go's ``%g`` writes it: the shortest digits that are read back, ``1e+06`` from a million on."""
    if number != number:
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "-0" if math.copysign(1.0, number) < 0 else "0"
    mantissa, _, exponent = f"{number!r}".partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    power = (len(whole) if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")))) + int(exponent or 0)
    digits = digits.rstrip("0")
    # The decimal point stands in front of the digits, moved right by ``power``.
    if not -4 <= power - 1 < 6:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if power <= 0 else '+'}{abs(power - 1):02}"
    if power <= 0:
        return f"{sign}0.{'0' * -power}{digits}"
    if len(digits) <= power:
        return sign + digits.ljust(power, "0")
    return f"{sign}{digits[:power]}.{digits[power:]}"


def _conversion(name: str, target: Type, *sources: tuple[str, Type, Callable[[Any], Any]]) -> Function:
    return Function(name, tuple(Overload(id_, (source,), target, call) for id_, source, call in sources))


CONVERSIONS: Final = (
    Function("type", (Overload("type", (_A,), type_of(_A), type_of_value),)),
    _conversion("bool", BOOL, ("bool_to_bool", BOOL, _same), ("string_to_bool", STRING, _string_to_bool)),
    _conversion("bytes", BYTES, ("bytes_to_bytes", BYTES, _same), ("string_to_bytes", STRING, _string_to_bytes)),
    _conversion(
        "double",
        DOUBLE,
        ("double_to_double", DOUBLE, _same),
        ("int64_to_double", INT, float),
        ("string_to_double", STRING, _string_to_double),
        ("uint64_to_double", UINT, float),
    ),
    _conversion(
        "duration",
        DURATION,
        ("duration_to_duration", DURATION, _same),
        ("string_to_duration", STRING, _string_to_duration),
    ),
    Function("dyn", (Overload("to_dyn", (_A,), DYN, _same),)),
    _conversion(
        "int",
        INT,
        ("int64_to_int64", INT, _same),
        ("double_to_int64", DOUBLE, _double_to_int),
        ("duration_to_int64", DURATION, _duration_to_int),
        ("string_to_int64", STRING, _string_to_int),
        ("timestamp_to_int64", TIMESTAMP, _timestamp_to_int),
        ("uint64_to_int64", UINT, _uint_to_int),
    ),
    _conversion(
        "string",
        STRING,
        ("string_to_string", STRING, _same),
        ("bool_to_string", BOOL, _bool_to_string),
        ("bytes_to_string", BYTES, _bytes_to_string),
        ("double_to_string", DOUBLE, format_double),
        ("duration_to_string", DURATION, _duration_to_string),
        ("int64_to_string", INT, _number_to_string),
        ("timestamp_to_string", TIMESTAMP, _timestamp_to_string),
        ("uint64_to_string", UINT, _number_to_string),
    ),
    _conversion(
        "timestamp",
        TIMESTAMP,
        ("timestamp_to_timestamp", TIMESTAMP, _same),
        ("int64_to_timestamp", INT, _int_to_timestamp),
        ("string_to_timestamp", STRING, _string_to_timestamp),
    ),
    _conversion(
        "uint",
        UINT,
        ("uint64_to_uint64", UINT, _same),
        ("double_to_uint64", DOUBLE, _double_to_uint),
        ("int64_to_uint64", INT, _int_to_uint),
        ("string_to_uint64", STRING, _string_to_uint),
    ),
)

CONVERSION_NAMES: Final = frozenset(function.name for function in CONVERSIONS)
"""The functions whose calls on constants are computed once, when the program is built."""
