"""Which of the known names a misspelt one probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "near"]


def near(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the names that look like it, or all if they are few, or nothing."""
    names = sorted(known)
    return did_you_mean(name, names) or (f"; there are {', '.join(names)}" if 0 < len(names) <= 12 else "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a name: the names that look like it, or nothing."""
    close = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""
