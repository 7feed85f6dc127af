"""Parts of timestamps and durations: ``getFullYear``, ``getHours``, ``getMilliseconds`` and others.

Without a zone, parts are those in UTC (Kubernetes sets ``DefaultUTCTimeZone``). A zone may be an offset (``-08:00``),
``UTC``, ``Local`` (the server's, taken to be UTC) or empty. Zones by name need the IANA data base, which is files, and
this package reads none: such a call is an evaluation error here, where upstream answers. Source: cel-go v0.29.2
``common/stdlib`` and ``common/types/duration.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from draht.api.gonumbers import MAX_INT64, wrap64
from draht.cel.declarations import Function, Overload
from draht.cel.errors import EvaluationError
from draht.cel.gotime import civil, days_from_civil
from draht.cel.types import DURATION, INT, STRING, TIMESTAMP
from draht.cel.values import Duration, Timestamp

__all__ = ["TIMES"]

_SECOND: Final = 10**9
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 3600 * _SECOND
_DAY_SECONDS: Final = 86400
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,30}")
_UTC: Final = frozenset({"", "UTC", "Local"})


def _offset(zone: str) -> int:
    """Seconds east of UTC."""
    if zone in _UTC:
        return 0
    hours, colon, minutes = zone.partition(":")
    if not colon:
        raise EvaluationError(
            f"the time zone {zone[:40]!r} isn't known here",
            hint="write UTC or an offset such as -08:00; zones by name need files that this package doesn't read",
        )
    parts = []
    for part in (hours, minutes):
        number = int(part) if _INTEGER.fullmatch(part) else None
        if number is None or not -MAX_INT64 - 1 <= number <= MAX_INT64:
            raise EvaluationError(f"the time zone offset {zone[:40]!r} isn't of the form -08:00")
        parts.append(number)
    total = parts[0] * 60 - parts[1] if zone[0] == "-" else parts[0] * 60 + parts[1]
    # Upstream computes in nanoseconds, which overflow in silence.
    return int(wrap64(total * _MINUTE) / _SECOND)


def _date(seconds: int) -> tuple[int, int, int]:
    return civil(seconds // _DAY_SECONDS)


def _day_of_year(seconds: int) -> int:
    days = seconds // _DAY_SECONDS
    return days - days_from_civil(civil(days)[0], 1, 1)


_PARTS: Final[tuple[tuple[str, str, Callable[[int], int]], ...]] = (
    ("getFullYear", "year", lambda seconds: _date(seconds)[0]),
    ("getMonth", "month", lambda seconds: _date(seconds)[1] - 1),
    ("getDayOfYear", "day_of_year", _day_of_year),
    ("getDayOfMonth", "day_of_month", lambda seconds: _date(seconds)[2] - 1),
    ("getDate", "day_of_month_1_based", lambda seconds: _date(seconds)[2]),
    # 1970-01-01 was a Thursday; Sunday is 0.
    ("getDayOfWeek", "day_of_week", lambda seconds: (seconds // _DAY_SECONDS + 4) % 7),
    ("getHours", "hours", lambda seconds: seconds // 3600 % 24),
    ("getMinutes", "minutes", lambda seconds: seconds // 60 % 60),
    ("getSeconds", "seconds", lambda seconds: seconds % 60),
)


def _truncated(nanoseconds: int, unit: int) -> int:
    """Whole units, as Go gets them by way of a double."""
    whole, rest = divmod(abs(nanoseconds), unit)
    value = int(float(whole) + float(rest) / float(unit))
    return -value if nanoseconds < 0 else value


def _hours(duration: Duration) -> int:
    return _truncated(duration.nanoseconds, _HOUR)


def _minutes(duration: Duration) -> int:
    return _truncated(duration.nanoseconds, _MINUTE)


def _seconds(duration: Duration) -> int:
    return _truncated(duration.nanoseconds, _SECOND)


def _milliseconds(duration: Duration) -> int:
    whole = abs(duration.nanoseconds) // 1_000_000
    return -whole if duration.nanoseconds < 0 else whole


_OF_DURATION: Final[dict[str, tuple[str, Callable[[Duration], int]]]] = {
    "getHours": ("hours", _hours),
    "getMinutes": ("minutes", _minutes),
    "getSeconds": ("seconds", _seconds),
    "getMilliseconds": ("milliseconds", _milliseconds),
}


def _part(name: str, word: str, plain: Callable[[Any], int], zoned: Callable[[Any, str], int]) -> Function:
    # Upstream's id of this one overload lacks a word.
    with_zone = "timestamp_to_seconds_tz" if word == "seconds" else f"timestamp_to_{word}_with_tz"
    overloads = [
        Overload(f"timestamp_to_{word}", (TIMESTAMP,), INT, plain, member=True),
        Overload(with_zone, (TIMESTAMP, STRING), INT, zoned, member=True),
    ]
    if name in _OF_DURATION:
        unit, call = _OF_DURATION[name]
        overloads.append(Overload(f"duration_to_{unit}", (DURATION,), INT, call, member=True))
    return Function(name, tuple(overloads))


def _by_seconds(name: str, word: str, part: Callable[[int], int]) -> Function:
    def plain(moment: Timestamp) -> int:
        return part(moment.seconds)

    def zoned(moment: Timestamp, zone: str) -> int:
        return part(moment.seconds + _offset(zone))

    return _part(name, word, plain, zoned)


def _millisecond(moment: Timestamp) -> int:
    return moment.nanoseconds // 1_000_000


def _millisecond_in_zone(moment: Timestamp, zone: str) -> int:
    _offset(zone)
    return moment.nanoseconds // 1_000_000


TIMES: Final = (
    *(_by_seconds(*part) for part in _PARTS),
    _part("getMilliseconds", "milliseconds", _millisecond, _millisecond_in_zone),
)
