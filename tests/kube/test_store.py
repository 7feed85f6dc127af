"""The store and the queue of changes, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draht.kube import Change, Store, Subscription

Object = dict[str, Any]


def obj(name: str, version: int, uid: str = "u", **labels: str) -> Object:
    """A dictionary as a server would send it."""
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version), "labels": labels}}


def colours(one: Object) -> list[str]:
    """An index with any number of keys for an object."""
    return list(one["metadata"]["labels"].get("colours", "").split())


def test_an_index_follows_its_objects() -> None:
    """Changed and removed objects leave no trace under their old keys."""
    store = Store({"colour": colours})
    store.put(("", "a"), obj("a", 1, colours="red blue"))
    store.put(("", "b"), obj("b", 2, colours="red"))
    assert {one["metadata"]["name"] for one in store.by("colour", "red")} == {"a", "b"}
    store.put(("", "a"), obj("a", 3, colours="green"))
    assert [one["metadata"]["name"] for one in store.by("colour", "red")] == ["b"]
    assert store.by("colour", "blue") == ()
    store.remove(("", "b"))
    assert store.by("colour", "red") == ()
    assert (len(store), ("", "a") in store) == (1, True)
    with pytest.raises(KeyError):
        store.by("shape", "round")


def test_the_same_version_is_no_change() -> None:
    """What is there already is told by uid and version; another uid is another object."""
    store: Store[Object] = Store()
    assert store.put(("", "a"), obj("a", 1)) is not None
    assert store.put(("", "a"), obj("a", 1)) is None
    change = store.put(("", "a"), obj("a", 1, uid="other"))
    assert change is not None
    assert change.kind == "modified"
    assert store.remove(("", "b")) is None


Steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["write", "delete", "replace", "read", "read"])), max_size=40
)


@given(Steps)
def test_a_reader_of_any_pace_replays_the_store(steps: list[tuple[str, str]]) -> None:
    """Whatever is written between two reads, each change fits the one before it, and the end is the store."""

    async def main() -> None:
        store: Store[Object] = Store()
        store.put(("", "a"), obj("a", 1, uid="first"))
        subscription = Subscription(((("", "a"), store.all()[0]),))
        copy: dict[Any, Object] = {}
        version = 1
        for name, step in steps:
            key = ("", name)
            version += 1
            change = None
            if step == "read":
                if len(subscription):
                    replay(copy, await anext(subscription))
            elif step == "delete":
                change = store.remove(key)
            else:
                before = store.get("", name)
                uid = str(version) if before is None or step == "replace" else before["metadata"]["uid"]
                change = store.put(key, obj(name, version, uid))
            if change is not None:
                subscription.push(change)
            assert len(subscription) <= len(store) + len(copy) + 2
        subscription.close()
        async for change in subscription:
            replay(copy, change)
        assert sorted(copy.values(), key=str) == sorted(store.all(), key=str)

    asyncio.run(main())


def replay(copy: dict[Any, Object], change: Change[Object]) -> None:
    """Apply a change to a copy, and check that it fits."""
    before = copy.get(change.key)
    assert change.old == before
    if change.new is None:
        assert change.kind == "deleted"
        del copy[change.key]
        return
    assert change.new != before
    if before is not None:
        assert change.new["metadata"]["uid"] == before["metadata"]["uid"]
    copy[change.key] = change.new


def test_what_came_and_went_unread_is_never_told() -> None:
    """An object that a reader never heard of needs no obituary."""

    async def main() -> None:
        subscription: Subscription[Object] = Subscription(())
        subscription.push(Change(("", "a"), None, obj("a", 1)))
        subscription.push(Change(("", "a"), obj("a", 1), None))
        assert len(subscription) == 0
        subscription.close()
        assert [change async for change in subscription] == []

    asyncio.run(main())


def test_a_waiting_reader_is_woken() -> None:
    """A change reaches a reader that already waits, and closing ends its wait."""

    async def main() -> None:
        subscription: Subscription[Object] = Subscription(())
        waiting = asyncio.ensure_future(anext(subscription))
        await asyncio.sleep(0)
        subscription.push(Change(("", "a"), None, obj("a", 1)))
        assert (await waiting).kind == "added"
        ending = asyncio.ensure_future(anext(subscription, None))
        await asyncio.sleep(0)
        subscription.close()
        assert await ending is None

    asyncio.run(main())
