"""Which of the known names a misspelt one probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["near"]


def near(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the names that look like it, or all if they are few, or nothing."""
    names = sorted(known)
    if close := difflib.get_close_matches(name, names, n=3, cutoff=0.5):
        return f"; did you mean {' or '.join(close)}?"
    return f"; there are {', '.join(names)}" if 0 < len(names) <= 12 else ""
