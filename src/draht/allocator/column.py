"""Columns: what several devices have, one value a position, held once however many nodes have the same.

A cluster has thousands of nodes and few kinds of them. Two nodes whose devices have equal values in what a claim
mentions get the same answer, so values are kept by column and equal columns are one object: comparing and hashing them
is comparing identities, and grouping all nodes is one pass over lists of objects.

It doesn't know what the values mean.
"""

from __future__ import annotations

from typing import Any, Final, final
from weakref import WeakValueDictionary

__all__ = ["Column", "intern"]


@final
class Column:
    """An immutable sequence of hashable values; equal only to itself, and unique among columns with equal values."""

    __slots__ = ("__weakref__", "values")

    values: tuple[Any, ...]

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Column({self.values!r})"


# Weak, so that the columns of devices that are gone don't stay.
_COLUMNS: Final[WeakValueDictionary[tuple[Any, ...], Column]] = WeakValueDictionary()


def intern(values: tuple[Any, ...]) -> Column:
    """The one column with these values.

    Values must be hashable, and equal only where they are interchangeable: ``1`` and ``True`` may not both occur.
    """
    column = _COLUMNS.get(values)
    if column is None:
        # Two threads may arrive here; the first one's column is the column.
        column = _COLUMNS.setdefault(values, Column(values))
    return column
