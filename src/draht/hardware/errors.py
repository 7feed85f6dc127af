"""The errors of this package; the package's docstring draws the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence

from draht.api.errors import DrahtError

MOST_SHOWN = 100
"""Problems printed, and looked at closely; nobody mends more in one go, and a hostile file has a million."""

__all__ = ["MOST_SHOWN", "HardwareError", "ProfileError", "UnknownProfileError"]


class HardwareError(DrahtError):
    """Something about machines or profiles."""


class UnknownProfileError(HardwareError):
    """No profile of that name is shipped, and no file is there either."""


class ProfileError(HardwareError):
    """A profile or catalogue that can't be used.

    Attributes:
        problems: Every problem found, one line each: file and field path, the first `MOST_SHOWN` with line and column.
    """

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        shown = [f"  {problem}" for problem in self.problems[:MOST_SHOWN]]
        if count > MOST_SHOWN:
            shown.append(f"  and {count - MOST_SHOWN} more")
        lines = "\n".join(shown)
        super().__init__(
            f"{count} problem{'s' if count != 1 else ''} in a machine profile\n{lines}",
            where=source,
            hint="docs/profiles.md describes the format; start from a shipped profile",
        )
