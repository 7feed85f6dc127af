"""Values that have a form of their own, moments and amounts, and how messages name what was expected."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping

from draht.api.quantity import Quantity, QuantityError
from draht.api.reader.shape import ScalarKind

__all__ = ["EXPECTED", "is_quantity", "time_problem"]

EXPECTED: Mapping[ScalarKind, str] = {
    "str": "a string",
    "bool": "true or false",
    "int": "an integer",
    "quantity": "an amount such as 1, 500m or 80Gi",
    "time": "a time such as 2026-01-31T13:45:00Z",
    "micro-time": "a time such as 2026-01-31T13:45:00.000000Z",
    "int-or-string": "an integer or a name",
}

_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|[-+](\d{2}):(\d{2}))", re.ASCII)


def time_problem(text: str, *, micro: bool = False) -> str | None:
    """Why a text is no moment in RFC 3339 form as Go's time.Parse reads it; None if it is one.

    Of its oddities, a comma before the fraction and offsets up to 24:60 are accepted too, a sign in it is not.

    Args:
        text: The text.
        micro: The form of event times, which has exactly six digits behind the seconds.
    """
    match = _TIME.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        return "it isn't in RFC 3339 form"
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, offset_hour, offset_minute = match.groups()[6:]
    if micro and len(fraction or "") != 6:
        return "it needs six digits behind the seconds"
    # calendar knows no year 0, which is a leap year like 2000.
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(year or 2000, month)[1]:
        return "there is no such day"
    if hour > 23 or minute > 59 or second > 59 or int(offset_hour or 0) > 24 or int(offset_minute or 0) > 60:
        return "there is no such time of day"
    return None


def is_quantity(value: str | int) -> bool:
    """Whether a value is an amount, by the rules of `draht.api.quantity`."""
    try:
        Quantity.from_wire(value)
    except QuantityError:
        return False
    return True
