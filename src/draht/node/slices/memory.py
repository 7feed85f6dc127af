"""The slices on the server as far as they are known: what a watch has shown, and what was written since.

Owns own writes until the watch shows them. A watch lags; who plans by it alone creates a slice a second time. Versions
are compared as numbers, which Kubernetes permits since 1.35 and every server has meant before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from draht.api.resource import ResourceSlice

__all__ = ["SliceMemory"]


@dataclass(frozen=True, slots=True)
class _Written:
    obj: ResourceSlice
    at: float


class SliceMemory:
    """Own writes, and the last answer to a direct question.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._written: dict[str, _Written] = {}
        self._gone: set[str] = set()
        self._listed: tuple[ResourceSlice, ...] = ()
        self._listed_version = -1

    def wrote(self, obj: ResourceSlice) -> None:
        """A slice as the server has it after an own write."""
        self._written[obj.metadata.uid] = _Written(obj, self._clock())

    def removed(self, obj: ResourceSlice) -> None:
        """A slice that isn't there any more."""
        self._written.pop(obj.metadata.uid, None)
        self._gone.add(obj.metadata.uid)

    def listed(self, items: Iterable[ResourceSlice], version: str) -> None:
        """What the server answered when it was asked directly."""
        self._listed, self._listed_version = tuple(items), _number(version)

    def view(self, stored: Iterable[ResourceSlice], version: str) -> tuple[ResourceSlice, ...]:
        """All slices that are there, by all that is known.

        Args:
            stored: What the watch has shown.
            version: How far it is.
        """
        reached = _number(version)
        if self._listed_version > reached:
            stored, reached = self._listed, self._listed_version
        elif self._listed_version >= 0:
            self._listed, self._listed_version = (), -1
        known = {each.metadata.uid: each for each in stored}
        self._gone &= known.keys()
        for uid, written in list(self._written.items()):
            seen = known.get(uid)
            shown = reached if seen is None else _number(seen.metadata.resource_version)
            if shown < _number(written.obj.metadata.resource_version):
                known[uid] = written.obj
            else:
                # The watch has come past it: it shows this write or a later one, or somebody has deleted the slice.
                del self._written[uid]
        return tuple(each for uid, each in known.items() if uid not in self._gone)

    def oldest(self) -> float | None:
        """When the oldest write was done that no watch has shown yet; None if there is none."""
        return min((written.at for written in self._written.values()), default=None)


def _number(version: str) -> int:
    return int(version) if version.isascii() and version.isdecimal() else 0
