"""Changes on their way to one reader, at the reader's pace.

Owns the queue between a reflector and a reader. Changes of one object that wait are joined into one, so the queue never
holds more than one entry for each object that the reader or the store knows, however slow the reader is. What a reader
gets is always a whole story: replayed from the beginning, it gives the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Generic, TypeVar

from draht.kube.codec import Key
from draht.kube.kinds import identify
from draht.kube.store import Change

__all__ = ["Subscription"]

T = TypeVar("T")


class Subscription(Generic[T]):
    """An iterator of changes that begins with every object of the store as added.

    An object that was deleted and made again while the reader was away is told as deleted and added, because it is
    another one (its uid differs).

    Args:
        present: The objects that are there already.
    """

    def __init__(self, present: Iterable[tuple[Key, T]]) -> None:
        self._waiting: dict[Key, Change[T]] = {key: Change(key, None, obj) for key, obj in present}
        self._second: Change[T] | None = None
        self._closed = False
        self._news = asyncio.Event()
        if self._waiting:
            self._news.set()

    def __aiter__(self) -> Subscription[T]:
        return self

    async def __anext__(self) -> Change[T]:
        while True:
            if self._second is not None:
                second, self._second = self._second, None
                return second
            if self._waiting:
                key = next(iter(self._waiting))
                return self._split(self._waiting.pop(key))
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    def __len__(self) -> int:
        """How many objects have changes that wait."""
        return len(self._waiting) + (self._second is not None)

    def close(self) -> None:
        """End the iteration once what waits has been read; later changes aren't kept."""
        self._closed = True
        self._news.set()

    @property
    def closed(self) -> bool:
        """Whether no more changes are taken."""
        return self._closed

    def push(self, change: Change[T]) -> None:
        """Add a change; for the reflector."""
        before = self._waiting.get(change.key)
        old = before.old if before is not None else change.old
        if old is None and change.new is None:
            self._waiting.pop(change.key, None)  # the reader never knew of it
        else:
            self._waiting[change.key] = Change(change.key, old, change.new)
            self._news.set()

    def _split(self, change: Change[T]) -> Change[T]:
        if change.old is None or change.new is None or identify(change.old)[2] == identify(change.new)[2]:
            return change
        self._second = Change(change.key, None, change.new)
        return Change(change.key, change.old, None)
