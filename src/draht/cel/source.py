"""The text of an expression and its lines.

Owns the translation between offsets and what a person counts: lines from 1, columns from 1, both in code points. Only a
line feed ends a line, as upstream counts. It doesn't know what the text means.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import final

__all__ = ["Source"]


@final
class Source:
    """The text of one expression.

    Args:
        text: The expression.
    """

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset in code points."""
        if self._starts is None:
            self._starts = [0]
            at = self.text.find("\n")
            while at >= 0:
                self._starts.append(at + 1)
                at = self.text.find("\n", at + 1)
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
