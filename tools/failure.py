"""The error of the set-up: one sentence and the next step, never a traceback."""

from __future__ import annotations

__all__ = ["SetupError"]


class SetupError(Exception):
    """Something the set-up needs can't be had.

    Args:
        message: What is missing or failed.
        hint: What to do about it.
    """

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
