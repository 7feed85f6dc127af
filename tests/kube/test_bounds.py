"""Nothing that a server does takes the client more time, memory or attempts than its bounds say."""

from __future__ import annotations

import asyncio

import pytest

from draht.kube import SLICES, AnswerError, Client, StatusError, TooManyRequestsError, UnreachableError, transport
from fake_apiserver import FakeApiServer, Fault, slice_of
from kube_session import connected, run


def test_nobody_waits_for_half_an_hour() -> None:
    """A long Retry-After is the caller's to wait for, and told."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault("status", "list", times=9, code=429, headers={"Retry-After": "1800"})]
        with pytest.raises(TooManyRequestsError) as raised:
            await client.list(SLICES)
        assert raised.value.retry_after == 1800
        assert len(server.faults) == 1
        assert server.faults[0].times == 8

    run(test)


def test_attempts_are_bounded() -> None:
    """A server that always says 503 is asked a few times only."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault("status", "list", times=99, code=503)]
        with pytest.raises(StatusError):
            await client.list(SLICES)
        assert server.faults[0].times == 99 - transport.ATTEMPTS

    run(test)


@pytest.mark.parametrize("what", ["hang", "drip"])
def test_an_answer_that_takes_too_long_is_given_up(what: str) -> None:
    """Silence and a byte now and then end at the same bound."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault(what, times=99)]
        with pytest.raises(UnreachableError, match="no answer in time"):
            await client.list(SLICES)

    async def main() -> None:
        async with FakeApiServer() as server:
            async with connected(server) as client:
                await client.list(SLICES)  # finds the version in time
            async with connected(server, timeout=0.2) as client:
                await test(server, client)

    asyncio.run(main())


def test_a_body_beyond_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless answer doesn't fill the memory."""
    monkeypatch.setattr(transport, "MAX_BODY", 1 << 20)

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault("body", "list", times=9, code=200, body=b" " * (3 << 20))]
        with pytest.raises(AnswerError, match="more than 1 MiB"):
            await client.list(SLICES)

    run(test)


def test_an_event_beyond_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without an end doesn't fill the memory."""
    monkeypatch.setattr(transport, "MAX_LINE", 1 << 20)

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault("line", "watch", body=b"x" * (3 << 20))]
        watch = client.watch(SLICES, resource_version=str(server.version))
        with pytest.raises(AnswerError, match="an event has more than 1 MiB"):
            _ = [event async for event in watch]

    run(test)


def test_a_long_watch_of_small_events_is_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is on one event, not on all of them."""
    monkeypatch.setattr(transport, "MAX_LINE", 1 << 16)

    async def test(server: FakeApiServer, client: Client) -> None:
        start = str(server.version)
        for number in range(30):
            server.put("resourceslices", slice_of(f"s{number}", x="y" * 10_000))
        watch = client.watch(SLICES, resource_version=start)
        seen = [await anext(watch) for _ in range(31)]
        await watch.aclose()
        assert seen[-1].key == ("", "s29")

    run(test)
