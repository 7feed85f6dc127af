"""A store that follows a server: one list, then a watch that is taken up again for as long as it runs.

Owns the loop of list and watch and what is done when it breaks. What it promises:

- after `Reflector.synced`, the store is what the server had a moment ago; it is never emptied by trouble, only late;
- no change is lost and none is told twice: a watch goes on from the last version that was seen, and where that is too
  old, a new list is compared with the store and the differences are told as changes;
- trouble is never raised: it is `Reflector.problem` until something works again, and tried again with growing delays.

A dead connection that nobody closed is noticed by silence: servers send a bookmark about once a minute, and a watch
without a byte for ``inactivity`` seconds is taken up anew, which costs one request.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from draht.api.reader import ServerError
from draht.kube.backoff import Backoff
from draht.kube.client import Client, Listed
from draht.kube.codec import Event, Key
from draht.kube.errors import AnswerError, GoneError, KubeError, StatusError
from draht.kube.kinds import Kind, identify
from draht.kube.store import Change, Store
from draht.kube.subscription import Subscription

__all__ = ["Counters", "Reflector"]

T = TypeVar("T")

_RESUMES: Final = 5
"""Refusals in a row to go on from a version after which a new list is made: the server may know it no more, as after a
restore from a backup, without saying so."""
_SILENCES: Final = 2
"""Watches in a row without a word after which a new list is made: a server whose data was restored from a backup takes
a version that it hasn't reached, and says nothing until it has (seen on 1.37.2)."""
_SHORT: Final = 1.0
"""Seconds; a watch that ends sooner without a word counts as a failure, so that a broken server isn't flooded."""


@dataclass(slots=True)
class Counters:
    """What a reflector has done, for metrics.

    Attributes:
        lists: Lists that succeeded; all but the first are relists.
        watches: Watches that the server began to answer.
        events: Changes that were received, without bookmarks.
        bookmarks: Bookmarks received.
        failures: Lists and watches that failed.
    """

    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    failures: int = 0

    @property
    def relists(self) -> int:
        """How often the watch couldn't go on, and all was listed again."""
        return max(0, self.lists - 1)

    @property
    def reconnects(self) -> int:
        """How often a watch was begun again."""
        return max(0, self.watches - 1)


class Reflector(Generic[T]):
    """Follows the objects of one kind.

    Args:
        client: A connected client.
        kind: Which kind.
        namespace: None for all namespaces.
        field_selector: As kubectl's ``--field-selector``.
        label_selector: As kubectl's ``-l``.
        indexers: Indexes of the store: name → the keys of an object.
        inactivity: Seconds of silence after which a watch is taken for dead.
        backoff: Delays after failures.
        limit: Objects of one page of a list.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        field_selector: str = "",
        label_selector: str = "",
        indexers: Mapping[str, Callable[[T], Iterable[str]]] = MappingProxyType({}),
        inactivity: float = 90.0,
        backoff: Backoff = Backoff(),  # noqa: B008 - an immutable value
        limit: int = 500,
    ) -> None:
        self.kind = kind
        self.store: Store[T] = Store(indexers)
        self.problem: KubeError | None = None
        self.counters = Counters()
        self._client = client
        self._namespace = namespace
        self._field_selector = field_selector
        self._label_selector = label_selector
        self._inactivity = inactivity
        self._backoff = backoff
        self._limit = limit
        self._unreadable: dict[Key, ServerError] = {}
        self._subscriptions: weakref.WeakSet[Subscription[T]] = weakref.WeakSet()
        self._synced = asyncio.Event()
        self._version: str | None = None
        self._failures = 0
        self._refusals = 0
        self._silences = 0

    @property
    def unreadable(self) -> Mapping[Key, ServerError]:
        """Objects that the server has and that can't be read; they aren't in the store."""
        return MappingProxyType(self._unreadable)

    @property
    def is_synced(self) -> bool:
        """Whether the first list is done."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Wait until the first list is done."""
        await self._synced.wait()

    def subscribe(self) -> Subscription[T]:
        """Changes from now on, after the objects of the store as added.

        A subscription that nobody holds any more ends by itself.
        """
        subscription = Subscription((_key(obj), obj) for obj in self.store.all())
        self._subscriptions.add(subscription)
        return subscription

    async def run(self) -> None:
        """Follow the server until cancelled; goes on where it was when called again."""
        while True:
            try:
                if self._version is None:
                    self._replace(await self._list())
                await self._watch(self._version or "")
            except GoneError as error:
                self._failed(error)
                self._version = None
            except KubeError as error:
                self._failed(error)
                # A refused list doesn't count: there is nothing older to go back to.
                self._refusals += isinstance(error, StatusError | AnswerError) and self._version is not None
                if self._refusals >= _RESUMES or self._silences >= _SILENCES:
                    self._version = None
                    self._refusals = self._silences = 0
            if self._failures:
                await self._client.sleep(self._backoff.delay(self._failures, self._client.random))

    async def _list(self) -> Listed[T]:
        listed = await self._client.list(
            self.kind,
            namespace=self._namespace,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
            limit=self._limit,
        )
        self.counters.lists += 1
        return listed

    async def _watch(self, version: str) -> None:
        """Follow one watch to its end."""
        begun = self._client.clock()
        told = False
        watch = self._client.watch(
            self.kind,
            resource_version=version,
            namespace=self._namespace,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
            silence=self._inactivity,
        )
        try:
            async with aclosing(watch):
                # The first event says that the server has begun; that alone doesn't show that the watch works.
                async for _ in watch:
                    self.counters.watches += 1
                    self.problem = None
                    break
                async for event in watch:
                    self._failures = self._refusals = self._silences = 0
                    self._apply(event)
                    told = True
        finally:
            lasted = self._client.clock() - begun
            if told or lasted >= _SHORT:
                self._failures = 0
            self._silences += not told and lasted >= self._inactivity
        # No failure by itself, but a server that ends every watch at once mustn't be flooded.
        self._failures += not told and lasted < _SHORT

    def _failed(self, error: KubeError) -> None:
        self.problem = error
        self.counters.failures += 1
        self._failures += 1

    def _replace(self, listed: Listed[T]) -> None:
        """Make the store what a list says, and tell the differences."""
        self._unreadable = {one.key: one.problem for one in listed.unreadable}
        present = {_key(obj): obj for obj in listed.items}
        for key in self.store.keys() - present.keys():
            self._tell(self.store.remove(key))
        for key, obj in present.items():
            self._tell(self.store.put(key, obj))
        self._advance(listed.resource_version)
        self.problem = None
        self._synced.set()

    def _apply(self, event: Event[T]) -> None:
        if event.type == "bookmark":
            self.counters.bookmarks += 1
        else:
            self.counters.events += 1
            self._unreadable.pop(event.key, None)
            if event.problem is not None and event.type != "deleted":
                self._unreadable[event.key] = event.problem
            if event.type == "deleted" or event.object is None:
                self._tell(self.store.remove(event.key))
            else:
                self._tell(self.store.put(event.key, event.object))
        self._advance(event.resource_version)

    def _advance(self, version: str) -> None:
        self._version = self.store.resource_version = version

    def _tell(self, change: Change[T] | None) -> None:
        if change is None:
            return
        for subscription in self._subscriptions:
            if not subscription.closed:
                subscription.push(change)


def _key(obj: Any) -> Key:
    namespace, name, _, _ = identify(obj)
    return namespace, name
