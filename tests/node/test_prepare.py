"""Prepare and Unprepare as the kubelet calls them: every claim is answered, in time, and none waits for another."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import grpc
import pytest

from draht.api.errors import DrahtError
from draht.api.resource import ResourceClaim
from draht.node.kubelet.dra_service import DRAService
from draht.node.kubelet.registration import KubeletPlugin
from fake_kubelet import FakeKubelet, claim, eventually
from fake_preparer import ApiServer, FakePreparer, Prepared, the_claim

DRIVER = "gpu.example.com"


class World:
    """A kubelet, a plugin, and what the plugin has behind it."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.preparer = FakePreparer()
        self.server = ApiServer()
        fetch, grace = options.pop("fetch", self.server.fetch), options.pop("grace", 0.2)
        self.service: DRAService[Prepared] = DRAService(DRIVER, self.preparer, fetch, **options)
        self.kubelet = FakeKubelet(root)
        self.plugin = KubeletPlugin(self.service, kubelet=root, interval=0.05, grace=grace)


def run(root: Path, test: Callable[[World], Awaitable[None]], **options: Any) -> None:
    """Run a test in a fresh world."""

    async def main() -> None:
        world = World(root, **options)
        async with world.kubelet, world.plugin:
            await test(world)

    asyncio.run(main())


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_both_versions_answer_alike(root: Path, version: str) -> None:
    """The same claim gets the same devices in both versions; only v1 knows shares."""

    async def test(world: World) -> None:
        world.preparer.shares["a"] = "share-1"
        answer = (await world.kubelet.prepare(DRIVER, claim("a"), version=version))["a"]
        (device,) = answer.devices
        assert not answer.error
        assert (device.pool_name, device.device_name) == ("node-0", "gpu-a")
        assert list(device.request_names) == ["gpu"]
        assert list(device.cdi_device_ids) == ["k8s.test/claim=a-gpu"]
        if version == "v1":
            assert device.share_id == "share-1"
        assert (await world.kubelet.unprepare(DRIVER, claim("a"), version=version))["a"].error == ""
        assert world.preparer.prepared == {}

    run(root, test)


def test_a_device_without_a_share_has_no_share_id(root: Path) -> None:
    """An absent share id stays absent on the wire; an empty one would be another thing."""

    async def test(world: World) -> None:
        (device,) = (await world.kubelet.prepare(DRIVER, claim("a")))["a"].devices
        assert not device.HasField("share_id")

    run(root, test)


def test_a_claim_prepared_twice_answers_the_same(root: Path) -> None:
    """The kubelet asks again after it was restarted."""

    async def test(world: World) -> None:
        first = await world.kubelet.prepare(DRIVER, claim("a"))
        await world.kubelet.restart()
        assert await world.kubelet.prepare(DRIVER, claim("a")) == first

    run(root, test)


def test_every_claim_of_a_large_call_is_answered(root: Path) -> None:
    """200 claims in one call are prepared beside each other; those that fail don't take the others along."""

    async def test(world: World) -> None:
        for number in range(0, 200, 10):
            world.preparer.errors[str(number)] = DrahtError("no", where=f"gpu-{number}", hint="wait")
        answers = await world.kubelet.prepare(DRIVER, *(claim(str(number)) for number in range(200)))
        assert len(answers) == 200
        for uid, answer in answers.items():
            failed = int(uid) % 10 == 0
            assert answer.error == (f"gpu-{uid}: no; wait" if failed else "")
            assert len(answer.devices) == (0 if failed else 1)

    run(root, test)


def test_claims_of_a_call_run_beside_each_other(root: Path) -> None:
    """Each waits for a gate that opens only once all of them are being prepared."""

    async def test(world: World) -> None:
        gate = threading.Event()
        claims = [claim(str(number)) for number in range(20)]
        world.preparer.gates = {each.uid: gate for each in claims}
        call = asyncio.create_task(world.kubelet.prepare(DRIVER, *claims))
        await eventually(lambda: world.preparer.most == 20)
        gate.set()
        assert all(not answer.error for answer in (await call).values())

    run(root, test)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "claim team/claim-a: the claim doesn't exist any more"),
        (
            the_claim("b", name="claim-a"),
            (
                "claim team/claim-a: the claim was deleted and made again: the pod was given a, the API server has b; "
                "delete the pod"
            ),
        ),
        (DrahtError("the API server doesn't answer", hint="try again"), "the API server doesn't answer; try again"),
        (
            RuntimeError("connection lost"),
            "claim team/claim-a: RuntimeError: connection lost (unexpected; see the log of draht node)",
        ),
    ],
)
def test_a_claim_that_cant_be_read_has_its_own_sentence(
    root: Path, found: ResourceClaim | Exception | None, words: str
) -> None:
    """What the API server says about a reference reaches the pod's events; other claims of the call are prepared."""

    async def test(world: World) -> None:
        world.server.claims["claim-a"] = found
        answers = await world.kubelet.prepare(DRIVER, claim("a"), claim("c"))
        assert answers["a"].error == words
        assert not answers["c"].error
        assert ("prepare", "a") not in world.preparer.calls

    run(root, test)


def test_a_bug_in_a_driver_is_an_answer_and_a_traceback_in_the_log(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Exceptions that nobody expected fail their claim only; the log says which pods are concerned."""

    async def test(world: World) -> None:
        world.preparer.errors["a"] = KeyError("minor")
        answers = await world.kubelet.prepare(DRIVER, claim("a"), claim("b"))
        assert answers["a"].error == "claim team/claim-a: KeyError: 'minor' (unexpected; see the log of draht node)"
        assert not answers["b"].error

    with caplog.at_level(logging.INFO, "draht.node"):
        run(root, test)
    records = {(record.__dict__.get("claim_uid"), record.levelname): record for record in caplog.records}
    failed = records["a", "ERROR"]
    assert failed.exc_info is not None
    facts = {name: failed.__dict__[name] for name in ("claim", "pods", "driver", "operation")}
    assert facts == {"claim": "team/claim-a", "pods": ["pod-of-a"], "driver": DRIVER, "operation": "prepare"}
    assert failed.__dict__["request_id"] == records["b", "INFO"].__dict__["request_id"]


def test_a_fetch_that_hangs_costs_only_its_own_claim(root: Path) -> None:
    """The claim is answered with an error before the kubelet gives up, and the others with their devices."""
    server = ApiServer()

    async def fetch(namespace: str, name: str) -> ResourceClaim | None:
        if name == "claim-hangs":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:  # one that doesn't even end when it is told to
                await asyncio.sleep(0.3)
        return await server.fetch(namespace, name)

    async def test(world: World) -> None:
        answers = await world.kubelet.prepare(DRIVER, claim("hangs"), claim("a"))
        assert answers["hangs"].error == (
            "claim team/claim-hangs: the API server hasn't answered with it after 0 s; it is asked for again"
        )
        assert not answers["a"].error

    run(root, test, fetch=fetch, deadline=0.4)


def test_a_nearer_deadline_of_the_caller_counts(root: Path) -> None:
    """The answer is on its way before the caller hangs up, however near its deadline is."""

    async def test(world: World) -> None:
        gate = world.preparer.gates["slow"] = threading.Event()
        try:
            answers = await world.kubelet.prepare(DRIVER, claim("slow"), claim("a"), patience=2.0)
        finally:
            gate.set()
        assert "its devices are still being prepared after" in answers["slow"].error
        assert not answers["a"].error

    run(root, test)


def test_a_claim_that_took_too_long_is_found_by_the_next_call(root: Path) -> None:
    """The thread isn't interrupted; the next call for the same claim joins it instead of starting another one."""

    async def test(world: World) -> None:
        gate = world.preparer.gates["a"] = threading.Event()
        first = await world.kubelet.prepare(DRIVER, claim("a"))
        assert "still being prepared" in first["a"].error
        second = asyncio.create_task(world.kubelet.prepare(DRIVER, claim("a")))
        await asyncio.sleep(0.05)
        gate.set()
        assert not (await second)["a"].error
        assert world.preparer.calls["prepare", "a"] == 1

    run(root, test, deadline=0.3)


def test_a_call_that_the_kubelet_ends_doesnt_end_the_work(root: Path) -> None:
    """A cancelled call leaves the thread running, and its result is there for the next call."""

    async def test(world: World) -> None:
        gate = world.preparer.gates["a"] = threading.Event()
        call = asyncio.create_task(world.kubelet.prepare(DRIVER, claim("a")))
        await eventually(lambda: world.preparer.calls["prepare", "a"] == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        gate.set()
        await eventually(lambda: "a" in world.preparer.prepared)
        assert not (await world.kubelet.prepare(DRIVER, claim("a")))["a"].error

    run(root, test)


def test_unprepare_waits_for_a_prepare_that_is_under_way(root: Path) -> None:
    """A pod that is deleted while it starts: its claim is first prepared to the end, then undone."""

    async def test(world: World) -> None:
        gate = world.preparer.gates["a"] = threading.Event()
        prepare = asyncio.create_task(world.kubelet.prepare(DRIVER, claim("a")))
        await eventually(lambda: world.preparer.calls["prepare", "a"] == 1)
        unprepare = asyncio.create_task(world.kubelet.unprepare(DRIVER, claim("a")))
        await asyncio.sleep(0.1)
        assert world.preparer.calls["unprepare", "a"] == 0
        gate.set()
        assert not (await prepare)["a"].error
        assert not (await unprepare)["a"].error
        assert world.preparer.order == ["prepared a", "unprepared a"]

    run(root, test)


def test_unprepare_doesnt_ask_the_api_server(root: Path) -> None:
    """The claim may be gone by then; a claim that was never prepared is a success."""

    async def test(world: World) -> None:
        world.server.claims["claim-a"] = RuntimeError("not to be asked")
        world.preparer.errors["b"] = DrahtError("the device is busy")
        answers = await world.kubelet.unprepare(DRIVER, claim("a"), claim("b"))
        assert {uid: answer.error for uid, answer in answers.items()} == {"a": "", "b": "the device is busy"}

    run(root, test)


def test_a_call_without_claims_is_answered(root: Path) -> None:
    """Nothing to do is done at once."""

    async def test(world: World) -> None:
        assert await world.kubelet.prepare(DRIVER) == {}
        assert await world.kubelet.unprepare(DRIVER) == {}

    run(root, test)


def test_a_long_error_is_cut(root: Path) -> None:
    """An error is an event's message, and those are short."""

    async def test(world: World) -> None:
        world.preparer.errors["a"] = DrahtError("x" * 100_000)
        error = (await world.kubelet.prepare(DRIVER, claim("a")))["a"].error
        assert len(error) == 2048
        assert error.endswith("x…")

    run(root, test)


def test_a_status_that_cant_be_written_fails_no_claim_and_is_tried_again(root: Path) -> None:
    """The pod starts; the report arrives later, and what is wrong meanwhile is listed."""
    written: list[str] = []
    tries: list[str] = []

    async def report(prepared: Prepared) -> None:
        tries.append(prepared.uid)
        if len(tries) == 1:
            raise DrahtError("the API server says no")
        written.append(prepared.uid)

    async def test(world: World) -> None:
        assert not (await world.kubelet.prepare(DRIVER, claim("a")))["a"].error
        await eventually(lambda: bool(tries))
        assert world.service.problems == {"a": "the API server says no"}
        await eventually(lambda: written == ["a"])
        assert world.service.problems == {}

    run(root, test, report=report)


def test_a_claim_that_is_undone_isnt_reported_any_more(root: Path) -> None:
    """A report that never arrives ends with its claim."""

    async def report(prepared: Prepared) -> None:
        raise DrahtError("the API server says no")

    async def test(world: World) -> None:
        await world.kubelet.prepare(DRIVER, claim("a"))
        await eventually(lambda: bool(world.service.problems))
        await world.kubelet.unprepare(DRIVER, claim("a"))
        assert world.service.problems == {}

    run(root, test, report=report)


def test_each_claim_is_counted_with_its_kind_of_error(root: Path) -> None:
    """Whoever counts learns of every claim once, and of what is under way."""

    class Counts:
        def __init__(self) -> None:
            self.seen: list[tuple[str, str, str]] = []

        def observe(self, driver: str, operation: str, seconds: float, error: str = "") -> None:
            assert seconds >= 0
            self.seen.append((driver, operation, error))

        def under_way(self, driver: str, operation: str) -> AbstractContextManager[None]:
            return nullcontext()

    counts = Counts()

    async def test(world: World) -> None:
        world.preparer.errors["b"] = DrahtError("no")
        world.preparer.errors["c"] = KeyError("no")
        world.server.claims["claim-d"] = None
        await world.kubelet.prepare(DRIVER, *map(claim, "abcd"))
        await world.kubelet.unprepare(DRIVER, claim("a"))

    run(root, test, observer=counts)
    assert sorted(counts.seen) == [
        (DRIVER, "prepare", ""),
        (DRIVER, "prepare", "ClaimGoneError"),
        (DRIVER, "prepare", "DrahtError"),
        (DRIVER, "prepare", "KeyError"),
        (DRIVER, "unprepare", ""),
    ]


def test_a_stop_lets_calls_that_are_under_way_end(root: Path) -> None:
    """Ending the plugin answers what is nearly done; what takes too long doesn't keep it from ending."""

    async def test(world: World) -> None:
        slow, hanging = threading.Event(), threading.Event()
        world.preparer.gates = {"slow": slow, "hangs": hanging}
        calls = [asyncio.create_task(world.kubelet.prepare(DRIVER, claim(uid))) for uid in ("slow", "hangs")]
        await eventually(lambda: world.preparer.most == 2)
        stop = asyncio.create_task(world.plugin.stop())
        await asyncio.sleep(0.05)
        slow.set()
        await stop
        hanging.set()
        assert not (await calls[0])["slow"].error
        with pytest.raises((grpc.RpcError, asyncio.CancelledError)):
            await calls[1]

    run(root, test, grace=1.5)
