"""Lists: how long they may be, and what may be in them once.

Owns the frame in which the rules of a list's members run: a list that is too long is refused as a whole, unread, so
that no object can make judging it expensive; members come first, then what is there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

from draht.validation.errors import Report

__all__ = ["check_list", "check_set", "declare_too_many", "declare_unique", "duplicates"]

_Item = TypeVar("_Item")


def check_list(
    report: Report,
    items: Sequence[_Item],
    path: str,
    check: Callable[[_Item, str], None],
    *,
    limit: int | None = None,
    covered: bool = True,
) -> bool:
    """Judge each member; False if there are too many and none was judged.

    Args:
        report: Takes what is wrong.
        items: The list.
        path: Its field.
        check: Judges a member at its path.
        limit: How many there may be.
        covered: Whether the limit is declared, too.
    """
    if limit is not None and len(items) > limit:
        report.too_many(path, len(items), limit, origin="maxItems", covered=covered)
        return False
    for index, item in enumerate(items):
        check(item, f"{path}[{index}]")
    return True


def check_set(
    report: Report,
    items: Sequence[_Item],
    path: str,
    check: Callable[[_Item, str], None],
    key: Callable[[_Item], Hashable],
    *,
    limit: int | None = None,
    covered: bool = True,
    unique_covered: bool = True,
) -> None:
    """`check_list` for a list in which no key may be there twice."""
    if check_list(report, items, path, check, limit=limit, covered=covered):
        for index, value in duplicates(items, key):
            report.duplicate(f"{path}[{index}]", value, covered=unique_covered)


def duplicates(items: Sequence[_Item], key: Callable[[_Item], Hashable]) -> Iterator[tuple[int, Hashable]]:
    """Place and key of each member whose key an earlier one has."""
    seen = set()
    for index, item in enumerate(items):
        value = key(item)
        if value in seen:
            yield index, value
        seen.add(value)


def declare_too_many(report: Report, path: str, count: int, limit: int, *, replaces: bool = True) -> bool:
    """The declared rule of a list's length; True if it is too long."""
    if count <= limit:
        return False
    message = f"must have at most {limit} entries, not {count}"
    report.declare("TooMany", path, message, origin="maxItems", replaces=replaces)
    return True


def declare_unique(
    report: Report,
    items: Sequence[_Item],
    path: str,
    key: Callable[[_Item], Hashable],
    *,
    replaces: bool = True,
) -> None:
    """The declared rule that no key is there twice."""
    for index, value in duplicates(items, key):
        report.declare("Duplicate", f"{path}[{index}]", "is there twice", value, replaces=replaces)
