"""Spread: devices and nodes with the least company, so that workloads disturb each other least."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draht.allocator.policies.size import neighbours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draht.allocator.policy import View

__all__ = ["Spread"]


class Spread:
    """Devices beside the fewest used ones first; nodes with the most free candidates first."""

    def order(self, view: View) -> Sequence[int]:
        """All positions, the preferred ones first."""
        near = neighbours(view)
        return sorted(range(view.size), key=lambda position: (near[position], position))

    def rank(self, view: View) -> float | None:
        """The number of candidates that are free, negated."""
        return -float(view.candidates.bit_count())
