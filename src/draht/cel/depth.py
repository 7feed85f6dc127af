"""Running code that nests deeper than Python's stack allows.

A program is closures within closures, one or two frames per level of the tree, and an expression of 3 kB may have a
thousand levels. Such an expression is rare and hostile, but it must get its answer, not a RecursionError. Owns the one
place where the limit of recursion is raised: for the time of one call, one at a time, by what that call needs. Since
Python 3.11 calls between Python functions take no C stack, so this is safe.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final, TypeVar

__all__ = ["SHALLOW", "run_deep"]

SHALLOW: Final = 100
"""Levels that are run without further ado."""
_FRAMES_PER_LEVEL: Final = 6
_SPARE: Final = 200

_one_at_a_time = threading.RLock()

T = TypeVar("T")


def run_deep(levels: int, function: Callable[[], T]) -> T:
    """Call a function that nests so many levels of an expression."""
    with _one_at_a_time:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + levels * _FRAMES_PER_LEVEL + _SPARE)
        try:
            return function()
        finally:
            sys.setrecursionlimit(limit)
