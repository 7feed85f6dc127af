"""Scored: the hook for scores that somebody else computes, such as how much an allocation fragments a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from draht.allocator.policy import View

__all__ = ["Scored"]


@final
class Scored:
    """Devices and nodes in the order of scores, lowest first; equal scores in upstream's order."""

    def __init__(
        self, device: Callable[[View, int], float] | None = None, node: Callable[[View], float] | None = None
    ) -> None:
        """Take scores from outside.

        Args:
            device: The score of taking the device at a position, in the state before; None for upstream's order.
            node: The score of allocating on the node at all; None for the order of nodes.
        """
        self._device = device
        self._node = node

    def order(self, view: View) -> Sequence[int]:
        """All positions, the preferred ones first."""
        score = self._device
        if score is None:
            return range(view.size)
        return sorted(range(view.size), key=lambda position: (score(view, position), position))

    def rank(self, view: View) -> float | None:
        """The score of the node."""
        return None if self._node is None else self._node(view)
