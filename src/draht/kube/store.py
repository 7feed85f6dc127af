"""Objects of one kind in memory, found by name and by index.

Owns the objects and their indexes, and says what each write changed. It knows no server: the reflector writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from draht.kube.codec import Key
from draht.kube.kinds import identify

__all__ = ["Change", "ChangeKind", "Store"]

T = TypeVar("T")

ChangeKind = Literal["added", "modified", "deleted"]


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What happened to one object.

    Attributes:
        key: Which object.
        old: As it was last told; None if it is new.
        new: As it is now; None if it is gone.
    """

    key: Key
    old: T | None
    new: T | None

    @property
    def kind(self) -> ChangeKind:
        """``added``, ``modified`` or ``deleted``."""
        if self.old is None:
            return "added"
        return "deleted" if self.new is None else "modified"

    @property
    def object(self) -> T:
        """The object as it is now, or as it last was."""
        found = self.new if self.new is not None else self.old
        assert found is not None
        return found


class Store(Generic[T]):
    """The objects a server has, as far as they are known here.

    Args:
        indexers: Name of an index → the keys under which it has an object.
    """

    def __init__(self, indexers: Mapping[str, Callable[[T], Iterable[str]]] | None = None) -> None:
        self._indexers = dict(indexers or {})
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, dict[str, dict[Key, T]]] = {name: {} for name in self._indexers}
        self.resource_version = ""

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def get(self, namespace: str, name: str) -> T | None:
        """One object; the namespace is empty for kinds that lie in none."""
        return self._objects.get((namespace, name))

    def all(self) -> tuple[T, ...]:
        """All objects, in no order that means anything."""
        return tuple(self._objects.values())

    def keys(self) -> frozenset[Key]:
        """The keys of all objects."""
        return frozenset(self._objects)

    def by(self, index: str, key: str) -> tuple[T, ...]:
        """The objects that an index has under a key.

        Raises:
            KeyError: There is no such index.
        """
        return tuple(self._indexes[index].get(key, {}).values())

    def put(self, key: Key, obj: T) -> Change[T] | None:
        """Take an object in; None if it is there already in this version."""
        old = self._objects.get(key)
        if old is not None and identify(old)[2:] == identify(obj)[2:]:
            return None
        self._leave(key, old)
        self._objects[key] = obj
        for name, indexer in self._indexers.items():
            for value in indexer(obj):
                self._indexes[name].setdefault(value, {})[key] = obj
        return Change(key, old, obj)

    def remove(self, key: Key) -> Change[T] | None:
        """Let an object go; None if it wasn't there."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        self._leave(key, old)
        return Change(key, old, None)

    def _leave(self, key: Key, old: T | None) -> None:
        if old is None:
            return
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(old):
                entries = index.get(value)
                if entries is not None:
                    entries.pop(key, None)
                    if not entries:
                        del index[value]
