"""Columns of many rows at once, for clusters whose drivers publish every device with the same names.

A row makes its columns itself when somebody asks (`draht.allocator.row`). For thousands of rows that is thousands of
walks over devices for each attribute. Here all devices of equally long rows of one driver are walked once, for all
attributes together, and each distinct content of a row is looked at once.

Owns nothing but speed: what it makes equals what rows make. Rows that don't fit the pattern are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from draht.allocator.column import Column, intern
from draht.allocator.constraint import pattern
from draht.allocator.row import amounts_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from draht.allocator.row import Row

__all__ = ["tabulate"]

_WORTHWHILE = 32
"""Fewer rows of a kind are not worth it."""


def tabulate(rows: Sequence[Row], *, lists: bool) -> tuple[dict[tuple[str, Any], list[Hashable]], frozenset[str]]:
    """Columns by what is mentioned, each with one entry a row, and the attributes in which hardly two rows are equal.

    Both are empty where rows have little in common.

    Args:
        rows: All rows.
        lists: Whether list attributes are on, for the patterns.
    """
    if len(rows) < _WORTHWHILE or any(len(row.usable) != 1 for row in rows):
        return {}, frozenset()
    driver, size = rows[0].usable[0].id.driver, rows[0].size
    if not size or any(row.size != size or row.usable[0].id.driver != driver for row in rows):
        return {}, frozenset()
    devices = [device for row in rows for device in row.usable[0].devices]
    found: dict[tuple[str, Any], list[Hashable]] = {}
    unique: set[str] = set()
    for name, chunks in _chunks([device.attributes for device in devices], driver, size):
        alike: dict[int, Column] = {}
        for chunk in chunks:
            if id(chunk) not in alike:
                alike[id(chunk)] = intern(pattern(chunk, lists))
        found["pattern", (name, lists)] = [alike[id(chunk)] for chunk in chunks]
        if len(alike) > len(rows) // 2:
            # As good as unique: nobody groups nodes by that.
            unique.add(name)
            continue
        known = {id(chunk): intern(chunk) for chunk in {id(chunk): chunk for chunk in chunks}.values()}
        found["attribute", name] = [known[id(chunk)] for chunk in chunks]
    parts = []
    for name, chunks in _chunks([device.capacity for device in devices], driver, size):
        known = {id(chunk): intern(chunk) for chunk in {id(chunk): chunk for chunk in chunks}.values()}
        column: list[Hashable] = [known[id(chunk)] for chunk in chunks]
        found["capacity", name] = column
        parts.append(column)
    if parts:
        keys = list(zip(*parts, strict=True))
        first = dict(zip(reversed(keys), reversed(rows), strict=True))
        whole = {key: row.capacities() for key, row in first.items()}
        capacities = [whole[key] for key in keys]
        found["capacities", None] = list(capacities)
        pairs = list(zip([row.frame for row in rows], capacities, strict=True))
        amounts = {pair: amounts_of(*pair) for pair in dict.fromkeys(pairs)}
        found["amounts", None] = [amounts[pair] for pair in pairs]
    return found, frozenset(unique)


def _chunks(values: list[Mapping[str, Any]], driver: str, size: int) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """For each name that all devices have, what each row has of it; equal rows have the same object."""
    names = tuple(values[0])
    number = len(names)
    if not number or any(len(each) != number for each in values):
        return
    qualified = [name if "/" in name else f"{driver}/{name}" for name in names]
    if len(set(qualified)) != number:
        return
    for name, whole in zip(names, qualified, strict=True):
        # Name by name rather than all at once: the views of all mappings together would wake the garbage collector.
        try:
            flat = [each[name] for each in values]
        except KeyError:
            return
        pieces = zip(*[iter(flat)] * size, strict=True)
        unique: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        put = unique.setdefault
        yield whole, [put(piece, piece) for piece in pieces]
