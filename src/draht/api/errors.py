"""The shape of every error a person may see: one sentence, where it is, and what to do next.

Owns the base class only. Each package derives its own hierarchy from `DrahtError` and draws it in the package's
docstring, so that a caller can catch `draht.cdi.CDIError` without knowing what lies below.
"""

from __future__ import annotations

__all__ = ["DrahtError"]


class DrahtError(Exception):
    """A failure that has an explanation for the person who caused or met it.

    Args:
        message: One sentence without a trailing full stop, lower-case first letter.
        where: The file (``path:line:column``), object or field path the sentence is about, if there is one.
        hint: The next step, as an instruction.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message
