"""What is wrong with a text, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Code", "Problem"]

Code = Literal[
    "unreadable",
    "syntax",
    "unknown-kind",
    "unknown-field",
    "duplicate-field",
    "missing-field",
    "wrong-type",
    "bad-value",
    "surprise",
]
"""What kind of problem; programs and tests tell problems apart by it, people by the message."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a file or of a server's answer.

    Attributes:
        code: Its kind.
        message: One sentence, lower case, without a full stop.
        source: File name, ``<stdin>``, or what the caller named the bytes.
        line: Counted from 1; None where the text has no lines or the problem isn't in the text.
        column: Counted from 1.
        path: The field, as ``spec.devices[3].attributes[index].int``; empty for the whole document.
        hint: The next step.
        warning: The object was read all the same.
    """

    code: Code
    message: str
    source: str
    line: int | None = None
    column: int | None = None
    path: str = ""
    hint: str | None = None
    warning: bool = False

    @property
    def where(self) -> str:
        """``source:line:column``, as far as it is known."""
        return self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"

    def __str__(self) -> str:
        path = f"{self.path}: " if self.path else ""
        severity = "warning: " if self.warning else ""
        return f"{self.where}: {severity}{path}{self.message}"
