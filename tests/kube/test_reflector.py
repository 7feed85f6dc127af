"""A store that follows a server through everything that can break between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from cutting_proxy import cutting_proxy
from draht.api.resource import ResourceSlice
from draht.kube import (
    SLICES,
    AnswerError,
    Backoff,
    Change,
    Client,
    Config,
    ForbiddenError,
    GoneError,
    Reflector,
    StatusError,
    UnreachableError,
    transport,
)
from fake_apiserver import FakeApiServer, Fault, slice_of

SOON = Backoff(initial=0.01, maximum=0.05)


@asynccontextmanager
async def following(address: str, **options: Any) -> AsyncIterator[Reflector[ResourceSlice]]:
    """A running reflector of slices that waits little."""
    options.setdefault("backoff", SOON)
    async with Client(Config(address), source=random.Random(1), backoff=SOON) as client:
        reflector = Reflector(client, SLICES, **options)
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def until(condition: Callable[[], object], *, seconds: float = 20) -> None:
    """Wait for a condition; a test that waits in vain fails here."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in a server that knows nothing of the test
            await asyncio.sleep(0.005)


def same(reflector: Reflector[ResourceSlice], server: FakeApiServer) -> bool:
    """Whether the store is what the server has."""
    here = {(one.metadata.name, one.metadata.uid, one.metadata.resource_version) for one in reflector.store.all()}
    there = {
        (name, obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])
        for (plural, _, name), obj in server.objects.items()
        if plural == "resourceslices"
    }
    return here == there


class Copy:
    """What a reader of changes knows, with every change checked against it.

    Args:
        reflector: Where the changes come from.
    """

    def __init__(self, reflector: Reflector[ResourceSlice]) -> None:
        self.subscription = reflector.subscribe()
        self.objects: dict[Any, ResourceSlice] = {}
        self.told: list[tuple[str, str]] = []

    def take(self, change: Change[ResourceSlice]) -> None:
        """Apply a change that has to fit what is known."""
        before = self.objects.get(change.key)
        assert change.old == before, "a change was lost or told twice"
        if change.new is None:
            del self.objects[change.key]
        else:
            assert before is None or before.metadata.resource_version != change.new.metadata.resource_version
            assert before is None or before.metadata.uid == change.new.metadata.uid
            self.objects[change.key] = change.new
        self.told.append((change.kind, change.key[1]))

    async def follow(self) -> None:
        """Read until cancelled."""
        async for change in self.subscription:
            self.take(change)

    async def rest(self) -> None:
        """Read what waits."""
        self.subscription.close()
        await self.follow()


def run(test: Callable[[FakeApiServer], Awaitable[None]]) -> None:
    """Run a test with a server that has two slices."""

    async def main() -> None:
        async with FakeApiServer() as server:
            server.put("resourceslices", slice_of("a"))
            server.put("resourceslices", slice_of("b"))
            await test(server)

    asyncio.run(main())


def test_the_store_is_the_server_and_changes_tell_the_way() -> None:
    """After the first list, every write is told once and in order."""

    async def test(server: FakeApiServer) -> None:
        indexers = {"label": lambda one: one.metadata.labels.values()}
        async with following(server.address, indexers=indexers) as reflector:
            await reflector.synced()
            copy = Copy(reflector)
            task = asyncio.create_task(copy.follow())
            await until(lambda: len(copy.told) == 2)
            for action in (
                lambda: server.put("resourceslices", slice_of("c", x="red")),
                lambda: server.put("resourceslices", slice_of("a", x="red")),
                lambda: server.remove("resourceslices", "b"),
                lambda: server.put("resourceslices", slice_of("c")),
            ):
                action()
                await until(lambda: same(reflector, server) and not len(copy.subscription))
            assert [one.metadata.name for one in reflector.store.by("label", "red")] == ["a"]
            assert copy.told[2:] == [("added", "c"), ("modified", "a"), ("deleted", "b"), ("modified", "c")]
            assert reflector.store.get("", "b") is None
            assert reflector.store.resource_version == str(server.version)
            assert (reflector.counters.lists, reflector.counters.watches, reflector.problem) == (1, 1, None)
            task.cancel()

    run(test)


STREAM = [
    Fault("gone", "watch"),
    Fault("error", "watch"),
    Fault("garbage", "watch"),
    Fault("cut", "watch"),
    Fault("half", "watch"),
    Fault("reset", "watch"),
    Fault("close", "watch"),
    Fault("end", "watch"),
    Fault("silent", "watch"),
    Fault("drip", "watch"),
    Fault("status", "watch", code=410),
    Fault("status", "watch", code=429, headers={"Retry-After": "1"}),
    Fault("status", "watch", code=500),
    Fault("body", "watch", code=200, body=b"<html>log in</html>"),
    Fault("body", "watch", code=502, body=b"<html>Bad Gateway</html>"),
    Fault("body", "watch", code=200, body=b'{"type":"ADDED"'),
    Fault("line", "watch", body=b'{"type":"ADDED","object":{}}\n'),
    Fault("line", "watch", body=b'{"type":"ADDED","object":null}\n'),
    Fault("line", "watch", body=b'{"type":"DANCED","object":{"metadata":{"resourceVersion":"9"}}}\n'),
    Fault("line", "watch", body=b'{"type":"BOOKMARK","object":{"metadata":{}}}\n'),
    Fault("line", "watch", body=b'{"type":"ERROR","object":"what"}\n'),
    Fault("line", "watch", body=b'{"type":7}\n[]\nnull\n'),
    Fault("line", "watch", body=b"\xff\xfe\x00\n"),
    Fault("line", "watch", body=b"[" * 100_000 + b"\n"),
    Fault("line", "watch", body=b"x" * (3 << 20)),
]


@pytest.mark.parametrize("fault", STREAM, ids=lambda fault: f"{fault.what}-{fault.code}-{fault.body[:30]!r}")
@pytest.mark.parametrize("after", [0, 1])
def test_a_broken_watch_is_taken_up_again(fault: Fault, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes instead of an event, what is written before and after arrives, once."""
    monkeypatch.setattr(transport, "MAX_LINE", 1 << 20)

    async def test(server: FakeApiServer) -> None:
        broken = Fault(fault.what, "watch", 1, fault.code, fault.headers, fault.body, after)
        server.faults = [broken]
        async with following(server.address, inactivity=0.3) as reflector:
            await reflector.synced()
            copy = Copy(reflector)
            server.put("resourceslices", slice_of("c"))
            server.remove("resourceslices", "a")
            await until(lambda: not server.faults and same(reflector, server))
            server.put("resourceslices", slice_of("d"))
            await until(lambda: same(reflector, server))
            await until(lambda: reflector.problem is None)
            await copy.rest()
            assert {name for _, name in copy.objects} == {"b", "c", "d"}

    run(test)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Fault("status", "list", code=403), ForbiddenError),
        (Fault("status", "list", code=500), StatusError),
        (Fault("body", "list", code=200, body=b"{}"), AnswerError),
        (Fault("reset", "list"), UnreachableError),
        (Fault("truncate", "list"), UnreachableError),
        (Fault("status", "watch", code=410), GoneError),
        (Fault("status", "watch", code=403), ForbiddenError),
        (Fault("status", "discover", code=503), StatusError),
    ],
    ids=lambda value: getattr(value, "what", ""),
)
def test_trouble_is_a_problem_and_never_an_end(fault: Fault, problem: type[Exception]) -> None:
    """What doesn't work is told as long as it doesn't, and tried again."""

    async def test(server: FakeApiServer) -> None:
        server.faults = [Fault(fault.what, fault.verb, 10**6, fault.code, body=fault.body)]
        async with following(server.address) as reflector:
            await until(lambda: isinstance(reflector.problem, problem))
            await until(lambda: reflector.counters.failures > 3)
            assert reflector.is_synced == (fault.verb == "watch")
            server.faults = []
            await until(lambda: reflector.problem is None and same(reflector, server) and reflector.is_synced)

    run(test)


def test_differences_after_a_relist_are_changes() -> None:
    """Objects that came, went, changed or were replaced while nobody watched are told as such, the others not."""

    async def test(server: FakeApiServer) -> None:
        for name in ("kept", "changed", "replaced", "gone"):
            server.put("resourceslices", slice_of(name))
        async with following(server.address) as reflector:
            await reflector.synced()
            copy = Copy(reflector)
            task = asyncio.create_task(copy.follow())
            await until(lambda: len(copy.told) == 6)
            server.faults = [Fault("reset", "any", times=10**6)]
            server.cut()
            await until(lambda: reflector.problem is not None)
            server.put("resourceslices", slice_of("changed", x="y"))
            server.remove("resourceslices", "gone")
            server.remove("resourceslices", "replaced")
            server.put("resourceslices", slice_of("replaced"))
            server.put("resourceslices", slice_of("new"))
            server.compact()
            server.faults = []
            await until(lambda: same(reflector, server) and not len(copy.subscription))
            assert sorted(copy.told[6:]) == [
                ("added", "new"),
                ("added", "replaced"),
                ("deleted", "gone"),
                ("deleted", "replaced"),
                ("modified", "changed"),
            ]
            assert reflector.counters.relists == 1
            task.cancel()

    run(test)


def test_a_server_that_never_lets_a_watch_go_on_is_listed_again() -> None:
    """A version from before a restore of the server's data is refused for ever, and not always with 410."""

    async def test(server: FakeApiServer) -> None:
        async with following(server.address) as reflector:
            await reflector.synced()
            server.faults = [Fault("status", "watch", times=5, code=504)]
            server.cut()
            await until(lambda: reflector.counters.relists == 1)
            await until(lambda: same(reflector, server))

    run(test)


def test_a_server_that_was_set_back_is_listed_again() -> None:
    """After a restore from a backup, a server takes a version that it hasn't reached, and says nothing."""

    async def test(server: FakeApiServer) -> None:
        async with following(server.address, inactivity=0.1) as reflector:
            await reflector.synced()
            server.version = 50
            server.history.clear()
            server.objects.clear()
            server.put("resourceslices", slice_of("from the backup"))
            server.cut()
            await until(lambda: same(reflector, server))
            assert reflector.counters.relists >= 1

    run(test)


def test_bookmarks_carry_a_quiet_watch_over_a_compaction() -> None:
    """With a bookmark, a watch goes on where without one it would have to list again."""

    async def test(server: FakeApiServer) -> None:
        async with following(server.address) as reflector:
            await reflector.synced()
            await until(lambda: reflector.counters.watches == 1)
            for number in range(5):
                server.put("pods", {"metadata": {"name": f"p{number}"}})
            server.bookmark("resourceslices")
            await until(lambda: reflector.counters.bookmarks == 1)
            assert reflector.store.resource_version == str(server.version)
            server.compact()
            server.cut()
            await until(lambda: reflector.counters.watches == 2)
            assert reflector.counters.relists == 0

    run(test)


def test_a_silent_connection_is_noticed() -> None:
    """A peer that vanished without a word holds up the store no longer than the inactivity."""

    async def test(server: FakeApiServer) -> None:
        server.faults = [Fault("silent", "watch")]
        async with following(server.address, inactivity=0.2) as reflector:
            await reflector.synced()
            await until(lambda: not server.faults)
            server.put("resourceslices", slice_of("c"))
            await until(lambda: same(reflector, server))

    run(test)


def test_an_object_that_can_not_be_read_is_named_and_comes_back() -> None:
    """It isn't in the store as long as it can't be read, and holds up nothing."""

    async def test(server: FakeApiServer) -> None:
        async with following(server.address) as reflector:
            await reflector.synced()
            copy = Copy(reflector)
            bad = slice_of("a")
            bad["spec"]["driver"] = 7
            server.put("resourceslices", bad)
            server.put("resourceslices", slice_of("c"))
            await until(lambda: reflector.store.get("", "c"))
            assert list(reflector.unreadable) == [("", "a")]
            assert reflector.store.get("", "a") is None
            server.cut()
            server.put("resourceslices", slice_of("d"))
            server.compact()
            await until(lambda: reflector.counters.relists == 1)
            assert list(reflector.unreadable) == [("", "a")]
            server.put("resourceslices", slice_of("a"))
            await until(lambda: same(reflector, server))
            assert not reflector.unreadable
            await copy.rest()
            assert len(copy.objects) == 4

    run(test)


def test_a_server_that_ends_every_watch_at_once_is_not_flooded() -> None:
    """Watches that end without a word are begun again with growing delays."""
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(0.001)

    async def test(server: FakeApiServer) -> None:
        server.faults = [Fault("body", "watch", times=10**6, code=200)]
        async with Client(Config(server.address), sleep=note) as client:
            reflector = Reflector(client, SLICES, backoff=Backoff(initial=1, factor=2, maximum=8, jitter=0))
            task = asyncio.create_task(reflector.run())
            await until(lambda: len(waited) >= 5)
            task.cancel()
        assert waited[:5] == [1, 2, 4, 8, 8]

    run(test)


def test_a_subscription_that_nobody_holds_ends() -> None:
    """A reader that forgets to close costs nothing for long."""

    async def test(server: FakeApiServer) -> None:
        async with following(server.address) as reflector:
            await reflector.synced()
            reflector.subscribe()
            assert len(reflector._subscriptions) == 0

    run(test)


def test_a_stopped_reflector_goes_on_where_it_was() -> None:
    """Running again takes the watch up, and doesn't list."""

    async def test(server: FakeApiServer) -> None:
        async with Client(Config(server.address)) as client:
            reflector = Reflector(client, SLICES)
            for name in ("c", "d"):
                task = asyncio.create_task(reflector.run())
                await reflector.synced()
                server.put("resourceslices", slice_of(name))
                await until(lambda: same(reflector, server))
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                server.put("resourceslices", slice_of("between"))
            assert reflector.counters.lists == 1

    run(test)


@pytest.mark.parametrize("seed", range(12))
def test_after_any_trouble_the_store_is_the_server(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random writes beside random faults, compactions, cuts and restarts: equal in the end, nothing lost or doubled.

    A prompt reader and one that only reads at the end check each change against what they know.
    """
    monkeypatch.setattr(transport, "MAX_LINE", 1 << 20)
    source = random.Random(seed)
    print(f"seed {seed}")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(FakeApiServer())
            address, cut = await stack.enter_async_context(cutting_proxy_of(server))
            reflector = await stack.enter_async_context(following(address, inactivity=0.3, limit=3))
            await reflector.synced()
            slow, prompt = Copy(reflector), Copy(reflector)
            reading = asyncio.create_task(prompt.follow())
            for _ in range(150):
                await disturb(server, source, cut)
                for _ in range(source.randrange(4)):
                    write(server, source)
                await asyncio.sleep(source.choice((0, 0, 0.002, 0.01)))
                if reading.done():
                    break
            server.faults = []
            server.put("resourceslices", slice_of("last"))
            await until(lambda: same(reflector, server))
            await until(lambda: not len(prompt.subscription) or reading.done())
            await slow.rest()
            prompt.subscription.close()
            await reading
            expected = {(one.metadata.name, one.metadata.resource_version) for one in reflector.store.all()}
            for copy in (slow, prompt):
                known = copy.objects.values()
                assert {(one.metadata.name, one.metadata.resource_version) for one in known} == expected
            assert reflector.counters.failures > 0

    asyncio.run(main())


def write(server: FakeApiServer, source: random.Random) -> None:
    """One write of somebody else."""
    name = source.choice("abcdefgh")
    if ("resourceslices", "", name) in server.objects and source.random() < 0.4:
        server.remove("resourceslices", name)
        if source.random() < 0.5:
            server.put("resourceslices", slice_of(name))
    else:
        server.put("resourceslices", slice_of(name, x=str(source.random())))


async def disturb(server: FakeApiServer, source: random.Random, cut: Callable[[], None]) -> None:
    """Perhaps something goes wrong."""
    match source.randrange(12):
        case 0:
            fault = source.choice(STREAM)
            after = source.randrange(3)
            server.faults.append(Fault(fault.what, "watch", 1, fault.code, fault.headers, fault.body, after))
        case 1:
            what = source.choice(("status", "reset", "truncate", "close", "noise"))
            server.faults.append(Fault(what, "list", source.randrange(1, 4), source.choice((410, 429, 500, 503))))
        case 2:
            server.compact()
        case 3:
            cut()
        case 4:
            server.cut()
        case 5 if source.random() < 0.3:
            server.refusing = True
            server.cut()
            await asyncio.sleep(0.02)
            server.refusing = False
        case 6:
            server.bookmark("resourceslices")
        case _:
            pass


@asynccontextmanager
async def cutting_proxy_of(server: FakeApiServer) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """The address of a proxy in front of a server."""
    async with cutting_proxy(server.port) as (port, cut):
        yield f"http://localhost:{port}", cut
