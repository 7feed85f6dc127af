"""Compatibility groups: which devices may consume of one counter set at the same time (1.37 alpha).

All devices on a counter set need a group in common; devices without groups go with devices without groups only. Groups
are bits, and "no groups" is a bit of its own, so that the running intersection is one integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["UNGROUPED", "Groups", "fold"]

UNGROUPED: Final = 1
"""The bit of devices that declare no groups."""


class Groups:
    """Numbers the groups of a row's devices; the masks of one instance can be compared."""

    __slots__ = ("_bits",)

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}

    def mask(self, groups: Iterable[str]) -> int:
        """The bits of a device's groups, `UNGROUPED` where there are none."""
        mask = 0
        for group in groups:
            mask |= self._bits.setdefault(group, 2 << len(self._bits))
        return mask or UNGROUPED

    def known(self, groups: Iterable[str]) -> int:
        """The bits of a device that isn't in the row: groups of which no device in the row is have none."""
        listed = tuple(groups)
        if not listed:
            return UNGROUPED
        mask = 0
        for group in listed:
            mask |= self._bits.get(group, 0)
        return mask


def fold(state: int | None, groups: int) -> int:
    """The intersection with one more allocated device, whether or not it was admissible.

    Args:
        state: None before the first device.
        groups: Bits of the device. Devices with and without groups on one set contradict each other, which only a
            changed slice can bring about; the first one then decides, as upstream.
    """
    if state is None:
        return groups
    if state == UNGROUPED or groups == UNGROUPED:
        return state
    return state & groups
