"""Noticing changes in spec directories, for programs that run on.

Owns a loop around `Cache.refresh`. It polls: looking at a thousand files takes about 5 ms, while inotify would need a
watch per directory, another for directories that don't exist yet, and a scan all the same because events get lost. The
caller decides how to wait, so a test or an event loop needs no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from draht.cdi.cache import Cache

__all__ = ["changes"]


def changes(cache: Cache, wait: Callable[[float], bool], *, interval: float = 1.0) -> Iterator[Cache]:
    """Yield the cache each time it has changed.

    Args:
        cache: What to refresh.
        wait: Waits for the seconds it is given and says whether to stop; `threading.Event.wait` is one.
        interval: Seconds between two looks.
    """
    while not wait(interval):
        if cache.refresh():
            yield cache
