"""Durations and timestamps as texts, read and written as Go's ``time`` package does.

CEL defines ``duration("1.5h")`` and ``timestamp("2026-01-02T03:04:05Z")`` by what Go accepts, and Go accepts more and
less than a standard says: a comma before the fraction, an hour of one digit, an offset of 24:60; but no day unit.
Checker and run time need the same reading, so it stands here once. Source: Go 1.26 ``time.ParseDuration`` and
``time.Parse`` with ``time.RFC3339``; the range of timestamps is cel-go's ``common/types/timestamp.go``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple

__all__ = [
    "MAX_UNIX_SECONDS",
    "MIN_UNIX_SECONDS",
    "Instant",
    "civil",
    "days_from_civil",
    "format_duration",
    "format_timestamp",
    "parse_duration",
    "parse_timestamp",
]

MIN_UNIX_SECONDS: Final = -62135596800
"""0001-01-01T00:00:00Z."""
MAX_UNIX_SECONDS: Final = 253402300799
"""9999-12-31T23:59:59Z."""

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5
    "μs": 10**3,  # U+03BC, the Greek letter, which Go takes as well
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_TERM = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^.0-9]+)")
_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_LIMIT: Final = 1 << 63


class Instant(NamedTuple):
    """A point in time, and the offset in which it was written and is written again."""

    seconds: int
    """Since 1970-01-01T00:00:00Z."""
    nanoseconds: int
    """0 to 999,999,999."""
    offset: int = 0
    """Seconds east of UTC; takes no part in comparisons of time."""


def parse_duration(text: str) -> int:
    """The nanoseconds of ``-1h2.5s``: a sign, and numbers with a unit (``ns us µs ms s m h``); or ``0``.

    Raises:
        ValueError: The text is no duration, or it doesn't fit into 64 bits.
    """
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError("a duration needs a number and a unit")
    total = 0
    at = 0
    while at < len(rest):
        match = _TERM.match(rest, at)
        if match is None or not (match[1] or match[3]):
            raise ValueError("a duration is numbers with a unit each")
        unit = _UNITS.get(match[4])
        if unit is None:
            raise ValueError(f"{match[4][:20]!r} is no unit of a duration")
        total += _term(match[1], match[3] or "", unit)
        if total > _LIMIT:
            raise ValueError("the duration is too long")
        at = match.end()
    if negative:
        return -total
    if total == _LIMIT:
        raise ValueError("the duration is too long")
    return total


def _term(whole: str, fraction: str, unit: int) -> int:
    digits = whole.lstrip("0")
    if len(digits) > 19 or int(digits or "0") > _LIMIT // unit:
        raise ValueError("the duration is too long")
    nanoseconds = int(digits or "0") * unit
    part, scale = 0, 1.0
    for digit in fraction:
        # Go stops where a fraction no longer fits into 63 bits; later digits change nothing.
        if part > (_LIMIT - 1) // 10:
            break
        longer = part * 10 + int(digit)
        if longer > _LIMIT:
            break
        part, scale = longer, scale * 10
    if part:
        nanoseconds += int(float(part) * (float(unit) / scale))
        if nanoseconds > _LIMIT:
            raise ValueError("the duration is too long")
    return nanoseconds


def format_duration(nanoseconds: int) -> str:
    """``1.5s``: what CEL's ``string(duration)`` gives; seconds as a 64-bit float without an exponent."""
    sign = -1 if nanoseconds < 0 else 1
    seconds, rest = divmod(abs(nanoseconds), _SECOND)
    value = float(sign * seconds) + float(sign * rest) / 1e9
    if value == int(value):
        return f"{int(value)}s"
    return f"{Decimal(repr(value)):f}s"


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the Gregorian calendar, which is continued in both directions."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def parse_timestamp(text: str) -> Instant:
    """The instant of an RFC 3339 text, read as leniently as Go does; digits of the fraction behind the ninth are lost.

    Raises:
        ValueError: The text is no timestamp, or it lies outside the years 1 to 9999 (UTC).
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("a timestamp is written as 2006-01-02T15:04:05Z")
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60 and 1 <= day <= _days_in(year, month)):
        raise ValueError("a part of the timestamp is out of range")
    nanoseconds = int((match[7] or "0")[:9].ljust(9, "0"))
    offset = 0
    if match[8]:
        hours, minutes = int(match[9]), int(match[10])
        if hours > 24 or minutes > 60:
            raise ValueError("the offset of the timestamp is out of range")
        offset = (hours * 60 + minutes) * (60 if match[8] == "+" else -60)
    seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    if not MIN_UNIX_SECONDS <= seconds <= MAX_UNIX_SECONDS:
        raise ValueError("the timestamp lies outside the years 1 to 9999")
    return Instant(seconds, nanoseconds, offset)


def _days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31


def format_timestamp(instant: Instant) -> str:
    """RFC 3339 in the instant's own offset, with as many digits of the fraction as it needs: ``string(timestamp)``."""
    days, rest = divmod(instant.seconds + instant.offset, 86400)
    year, month, day = civil(days)
    sign = "-" if year < 0 else ""
    text = f"{sign}{abs(year):04}-{month:02}-{day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    if instant.nanoseconds:
        text += f".{instant.nanoseconds:09}".rstrip("0")
    if not instant.offset:
        return text + "Z"
    minutes = abs(instant.offset) // 60
    return f"{text}{'-' if instant.offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
