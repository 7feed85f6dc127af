"""Sorting in exactly the order that Go's ``sort.Slice`` leaves.

Elements with equal keys end up somewhere, and a selector can see where: ``list.sortBy(x, key)``. Go's sort is not
stable, but it is deterministic: pattern-defeating quicksort (https://arxiv.org/abs/2106.05123) with a generator that
is seeded by the length. This is that variant (Go 1.26 ``sort``). It also ends, with Go's result, where the order is
none: NaN isn't less than anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

__all__ = ["sorted_indices"]

_INSERTED: Final = 12
"""Ranges up to this length are sorted by insertion."""
_MEDIAN_OF_THREE: Final = 8
_MEDIAN_OF_NINE: Final = 50
_MOST_SWAPS: Final = 12
_REPAIRS: Final = 5
"""Pairs out of order that are put right before a range no longer counts as nearly sorted."""
_MASK: Final = (1 << 64) - 1


def sorted_indices(keys: Any, less: Callable[[Any, Any], bool]) -> list[int]:
    """The indices of the keys in sorted order.

    Args:
        keys: A sequence.
        less: Whether its first argument must come before its second.
    """
    indices = list(range(len(keys)))
    _Sorter(indices, lambda a, b: less(keys[a], keys[b])).run(0, len(indices), len(indices).bit_length())
    return indices


@final
class _Sorter:
    """Sorts a list in place by what is known of two of its elements."""

    __slots__ = ("_items", "_less")

    def __init__(self, items: list[int], less: Callable[[int, int], bool]) -> None:
        self._items = items
        self._less = less

    def _before(self, i: int, j: int) -> bool:
        return self._less(self._items[i], self._items[j])

    def _swap(self, i: int, j: int) -> None:
        items = self._items
        items[i], items[j] = items[j], items[i]

    def run(self, start: int, end: int, bad_pivots: int) -> None:
        """Sort a range; after so many bad pivots, by a heap."""
        balanced = partitioned = True
        while True:
            length = end - start
            if length <= _INSERTED:
                self._insert(start, end)
                return
            if bad_pivots == 0:
                self._heap(start, end)
                return
            if not balanced:
                self._scatter(start, end)
                bad_pivots -= 1
            pivot, swaps = self._pivot(start, end)
            rising = swaps == 0
            if swaps == _MOST_SWAPS:
                self._items[start:end] = self._items[start:end][::-1]
                pivot = (end - 1) - (pivot - start)
                rising = True
            if balanced and partitioned and rising and self._repair(start, end):
                return
            if start > 0 and not self._before(start - 1, pivot):
                # Nothing here is less than the pivot, so there are many of its kind.
                start = self._split_equal(start, end, pivot)
                continue
            middle, partitioned = self._split(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= length // 8
            # The shorter side is sorted in a call of its own, so calls nest as deep as the logarithm of the length.
            if left < right:
                self.run(start, middle, bad_pivots)
                start = middle + 1
            else:
                self.run(middle + 1, end, bad_pivots)
                end = middle

    def _insert(self, start: int, end: int) -> None:
        for at in range(start + 1, end):
            while at > start and self._before(at, at - 1):
                self._swap(at, at - 1)
                at -= 1

    def _heap(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift(root, length, start)
        for last in range(length - 1, -1, -1):
            self._swap(start, start + last)
            self._sift(0, last, start)

    def _sift(self, root: int, end: int, first: int) -> None:
        while (child := 2 * root + 1) < end:
            if child + 1 < end and self._before(first + child, first + child + 1):
                child += 1
            if not self._before(first + root, first + child):
                return
            self._swap(first + root, first + child)
            root = child

    def _scatter(self, start: int, end: int) -> None:
        """Move three elements somewhere else, to break a pattern that makes bad pivots."""
        length = end - start
        if length < _MEDIAN_OF_THREE:
            return
        random = length
        mask = (1 << length.bit_length()) - 1
        middle = start + length // 4 * 2
        for at in range(middle - 1, middle + 2):
            random ^= random << 13 & _MASK
            random ^= random >> 7
            random ^= random << 17 & _MASK
            other = random & mask
            self._swap(at, start + (other - length if other >= length else other))

    def _pivot(self, start: int, end: int) -> tuple[int, int]:
        """Where the pivot is, and how many swaps it took to find the median among the candidates."""
        quarter = (end - start) // 4
        candidates = [start + quarter, start + quarter * 2, start + quarter * 3]
        swaps = 0
        if end - start >= _MEDIAN_OF_NINE:
            for number, at in enumerate(candidates):
                candidates[number], more = self._median(at - 1, at, at + 1)
                swaps += more
        median, more = self._median(*candidates)
        return median, swaps + more

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        swaps = 0
        if self._before(b, a):
            a, b, swaps = b, a, swaps + 1
        if self._before(c, b):
            b, swaps = c, swaps + 1
        if self._before(b, a):
            b, swaps = a, swaps + 1
        return b, swaps

    def _repair(self, start: int, end: int) -> bool:
        """Whether the range is sorted after a few pairs were put right."""
        at = start + 1
        for _ in range(_REPAIRS):
            while at < end and not self._before(at, at - 1):
                at += 1
            if at == end:
                return True
            if end - start < _MEDIAN_OF_NINE:
                return False
            self._swap(at, at - 1)
            if at - start >= 2:
                # Down to the second element of the whole list, not of the range.
                down = at - 1
                while down >= 1 and self._before(down, down - 1):
                    self._swap(down, down - 1)
                    down -= 1
            up = at + 1
            while up < end and self._before(up, up - 1):
                self._swap(up, up - 1)
                up += 1
        return False

    def _split(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Put what is less than the pivot in front of it; where it is then, and whether all was so before."""
        self._swap(start, pivot)
        low, high = start + 1, end - 1
        moved = False
        while True:
            while low <= high and self._before(low, start):
                low += 1
            while low <= high and not self._before(high, start):
                high -= 1
            if low > high:
                break
            self._swap(low, high)
            moved = True
            low += 1
            high -= 1
        self._swap(high, start)
        return high, not moved

    def _split_equal(self, start: int, end: int, pivot: int) -> int:
        """Put what equals the pivot in front of what is greater; where the greater begin."""
        self._swap(start, pivot)
        low, high = start + 1, end - 1
        while True:
            while low <= high and not self._before(start, low):
                low += 1
            while low <= high and self._before(start, high):
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low += 1
            high -= 1
