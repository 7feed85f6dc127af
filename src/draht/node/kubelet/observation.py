"""What services say about each claim and allocation to whoever counts.

`draht.node.metrics.Metrics` is one; tests bring their own. Nothing is counted by default.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["Observer", "Unobserved"]


class Observer(Protocol):
    """Who counts; called from the event loop's thread."""

    def observe(self, driver: str, operation: str, seconds: float, error: str = "") -> None:
        """One is done; ``error`` is the name of the error's class, empty for success."""
        ...

    def under_way(self, driver: str, operation: str) -> AbstractContextManager[None]:
        """One is under way while the block lasts."""
        ...


class Unobserved:
    """Nobody counts."""

    def observe(self, driver: str, operation: str, seconds: float, error: str = "") -> None:
        """Forget it."""

    def under_way(self, driver: str, operation: str) -> AbstractContextManager[None]:  # noqa: ARG002 - see Observer
        """Nothing happens around the block."""
        return nullcontext()
