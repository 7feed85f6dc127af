"""What can be wrong with an expression, and how a person is told.

Owns the two errors of the package and the picture with the caret. It doesn't know what is wrong; parser, checker and
the functions say that. The tree::

    DrahtError
    └── CELError
        ├── CompileError        the text can't become a program: syntax, types, limits; holds every `Issue`
        └── EvaluationError     a program met a value it can't go on with; a value of its own, not "false"
            └── AbortError      one that no ``||``, ``&&`` or ``exists`` can hide
                └── LimitError  it would cost more than it may
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from draht.api.errors import DrahtError

__all__ = ["AbortError", "CELError", "CompileError", "ErrorKind", "EvaluationError", "Issue", "LimitError"]

MOST_SHOWN: Final = 20
"""How many issues a picture shows; the others are counted."""
WIDTH: Final = 100
"""How many characters of a line a picture shows."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with an expression.

    Args:
        message: One sentence, lower-case first letter, no full stop.
        line: From 1.
        column: From 1, in code points.
        hint: The next step, where one is known.
    """

    message: str
    line: int
    column: int
    hint: str | None = None


class CELError(DrahtError):
    """Something is wrong with an expression or its evaluation."""


class CompileError(CELError):
    """The expression can't become a program.

    Args:
        expression: The text.
        issues: What is wrong, in the order of the text; at least one.
    """

    def __init__(self, expression: str, issues: tuple[Issue, ...]) -> None:
        self.expression = expression
        self.issues = issues
        first = issues[0]
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        super().__init__(first.message + more, where=f"{first.line}:{first.column}", hint=first.hint)

    def picture(self) -> str:
        """Every issue with its line and a caret under the column, for a terminal."""
        lines = self.expression.split("\n")
        parts = []
        for issue in self.issues[:MOST_SHOWN]:
            shown, column = _window(lines[issue.line - 1], issue.column - 1)
            parts.append(f"{issue.line}:{issue.column}: {issue.message}")
            parts.append(f"  | {shown}".rstrip())
            parts.append(f"  | {' ' * column}^")
            if issue.hint:
                parts.append(f"  hint: {issue.hint}")
        if len(self.issues) > MOST_SHOWN:
            parts.append(f"and {len(self.issues) - MOST_SHOWN} more")
        return "\n".join(parts)


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a line around a column that fits a terminal, and how far to the right the column is in it."""
    start = max(0, min(column - WIDTH // 2, len(line) - WIDTH))
    part = "".join(
        each if each.isprintable() else " " if each in "\t\r" else "·" for each in line[start : start + WIDTH]
    )
    before = "…" if start > 0 else ""
    after = "…" if start + WIDTH < len(line) else ""
    left = before + part[: column - start]
    # East Asian characters and emoji take two cells of a terminal.
    cells = sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in left)
    return before + part + after, cells


ErrorKind = Literal[
    "conversion", "cost-limit", "division", "index", "no-such-key", "no-such-overload", "not-bool", "other", "overflow"
]


class EvaluationError(CELError):
    """Evaluation met something it can't go on with: a missing key, an overflow, a type without an overload.

    Args:
        message: See `DrahtError`; worded as upstream words it where it has words for it.
        kind: What sort of thing it is, for programs.
        where: See `DrahtError`.
        hint: See `DrahtError`.
    """

    def __init__(
        self, message: str, *, kind: ErrorKind = "other", where: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.kind: ErrorKind = kind


class AbortError(EvaluationError):
    """Evaluation ended on the spot: upstream panics here, so nothing around it goes on."""


class LimitError(AbortError):
    """Evaluation would cost more than it may."""

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, kind="cost-limit", where=where, hint=hint)
