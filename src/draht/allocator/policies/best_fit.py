"""Best fit: the smallest device or partition that suffices, where others are in use already.

Keeps large devices, whole GPUs and idle nodes free for those who need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from draht.allocator.policies.size import neighbours, sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draht.allocator.policy import View

__all__ = ["BestFit"]


class BestFit:
    """Small devices first, among equals the one beside most used ones; nodes with the fewest free candidates first."""

    def order(self, view: View) -> Sequence[int]:
        """All positions, the preferred ones first."""
        size, near = sizes(view), neighbours(view)
        return sorted(range(view.size), key=lambda position: (size[position], -near[position], position))

    def rank(self, view: View) -> float | None:
        """The number of candidates that are free."""
        return float(view.candidates.bit_count())
