"""Topology-compact: devices of one request close together, without breaking larger groups than necessary.

Close means a common value of a topology attribute. The finest level counts first: a PCIe root before a NUMA node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draht.allocator.constraint import elements

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from draht.allocator.policy import View

__all__ = ["TopologyCompact"]

LEVELS: Final = ("pcieRoot", "numaNode", "numa", "socket")
"""Bare names of topology attributes from fine to coarse; any domain, ``resource.kubernetes.io`` among them."""


class TopologyCompact:
    """Devices of the smallest group that holds the whole request first, then of groups around it."""

    def order(self, view: View) -> Sequence[int]:
        """All positions, the preferred ones first."""
        free = view.candidates
        wanted = max(1, view.wanted)
        levels = [groups for groups in (self._groups(view, name) for name in LEVELS) if groups is not None]
        # The finest level at which the whole request finds room, then from coarse to fine.
        suited = next((g for g in levels if any((mask & free).bit_count() >= wanted for mask in g)), None)
        levels = [*([] if suited is None else [suited]), *reversed(levels)]

        def key(position: int) -> tuple[object, ...]:
            parts: list[object] = [not free >> position & 1]
            for groups in levels:
                mask = groups[position]
                size = (mask & free).bit_count()
                # The smallest group that suffices; where none does, the largest.
                parts += [size < wanted, size if size >= wanted else -size, mask & -mask]
            return (*parts, position)

        return sorted(range(view.size), key=key)

    def rank(self, view: View) -> float | None:
        """Nodes in their order."""
        del view
        return None

    @staticmethod
    def _groups(view: View, name: str) -> Sequence[int] | None:
        """For each position the mask of devices with the same value; None where hardly any device has one."""
        values: list[Hashable] = []
        for position in range(view.size):
            device = view.device(position)
            found: Hashable = None
            for key, attribute in device.attributes.items():
                if key.rpartition("/")[2] == name:
                    found = elements(attribute, lists=False) or None
            values.append(found)
        if all(value is None for value in values):
            return None
        masks: dict[Hashable, int] = {}
        for position, value in enumerate(values):
            if value is not None:
                masks[value] = masks.get(value, 0) | 1 << position
        return [1 << position if value is None else masks[value] for position, value in enumerate(values)]
