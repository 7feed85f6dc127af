from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import msgspec

from draht.api.meta import OwnerReference
from draht.api.resource import DeviceTaint
from draht.driver.framework import Health, Offer, Offered, Pool
from draht.kube import Backoff
from draht.node.slices.publisher import Delays
from fake_apiserver import Fault, Object
from fake_slice_server import AT_ONCE, DRIVER, NODE, SliceServer, many, offer, publishing, run, settled, until


def test_devices_are_published_with_names_owner_and_counts_of_upstream() -> None:
    """The name begins with the slice's position, the node owns it, and the pool says how many slices it has."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(70)))
            await settled(publisher)
            first, second = server.slices()
            assert first.metadata.name.startswith(f"00000-{DRIVER}-{NODE}-")
            assert second.metadata.name.startswith(f"00001-{DRIVER}-{NODE}-")
            uid = server.objects["nodes", "", NODE]["metadata"]["uid"]
            assert first.metadata.owner_references == (
                OwnerReference(api_version="v1", kind="Node", name=NODE, uid=uid, controller=True),
            )
            assert [len(each.spec.devices) for each in (first, second)] == [64, 6]
            assert first.spec.pool.resource_slice_count == second.spec.pool.resource_slice_count == 2
            assert publisher.counters["create"] == 2
            assert publisher.problems == ()

    run(test)


def test_nothing_is_written_for_what_is_there_already() -> None:
    """The same offer again, and a second run of the agent: not one write."""

    async def test() -> None:
        async with SliceServer() as server:
            for _ in range(2):
                async with publishing(server) as publisher:
                    publisher.set(offer(*many(70)))
                    await settled(publisher)
                    publisher.set(offer(*many(70)))
                    await settled(publisher)
            assert server.writes() == ["create", "create"]

    run(test)


def test_a_pool_without_devices_is_one_empty_slice() -> None:
    """So that readers can tell that nothing is there from that nothing is known; without the pool, none is left."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(Offer(pools=(Pool(),)))
            await settled(publisher)
            assert server.names_of_devices() == [[]]
            publisher.set(Offer())
            await settled(publisher)
            assert server.slices() == []

    run(test)


def test_a_changed_device_is_one_write_and_no_new_generation() -> None:
    """The other slices aren't touched."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(70)))
            await settled(publisher)
            publisher.set(offer(*many(69), "other"))
            await settled(publisher)
            assert server.writes() == ["create", "create", "update"]
            assert {each.spec.pool.generation for each in server.slices()} == {1}
            assert server.names_of_devices()[1][-1] == "other"

    run(test)


def test_generations_go_on_from_the_server_after_a_restart() -> None:
    """A new run of the agent changes the number of slices: the generation is the next after the one that is there."""

    async def test() -> None:
        async with SliceServer() as server:
            for count in (70, 140, 10):
                async with publishing(server) as publisher:
                    publisher.set(offer(*many(count)))
                    await settled(publisher)
            assert [each.spec.pool.generation for each in server.slices()] == [3]

    run(test)


def test_a_foreign_change_is_repaired_in_place() -> None:
    """Somebody takes a device out; it comes back, the generation stays, and it is counted."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(3)))
            await settled(publisher)
            server.change(0, lambda obj: obj["spec"]["devices"].pop())
            await until(lambda: server.names_of_devices() == [many(3)])
            await settled(publisher)
            assert publisher.counters["repairs"] == 1
            assert [each.spec.pool.generation for each in server.slices()] == [1]

    run(test)


def test_slices_that_were_wiped_come_back_with_the_next_generation() -> None:
    """As the kubelet does at its start: all slices of the node go at once."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(130)))
            await settled(publisher)
            for _ in range(3):
                server.take(0)
            await until(lambda: len(server.slices()) == 3)
            await settled(publisher)
            assert server.devices() == sorted(many(130))
            assert len({each.spec.pool.generation for each in server.slices()}) == 1

    run(test)


def test_a_slice_of_a_stranger_in_the_pool_goes() -> None:
    """Even one with a higher generation, which hides the pool."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(3)))
            await settled(publisher)
            spec = {
                "driver": DRIVER,
                "nodeName": NODE,
                "pool": {"name": NODE, "generation": 7, "resourceSliceCount": 1},
            }
            server.put("resourceslices", {"metadata": {"name": "stranger"}, "spec": spec})
            await until(lambda: server.names_of_devices() == [many(3)])
            await settled(publisher)
            assert [each.spec.pool.generation for each in server.slices()] == [8]

    run(test)


def test_a_watch_that_lags_makes_no_twins() -> None:
    """The store shows none of the own writes; two more changes are made on top of what was written."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            await until(server.watched)
            # What is written from now on, no watch shows.
            server._tell = lambda *_: None  # type: ignore[method-assign]  # a watch that is stuck
            for count in (3, 70, 5):
                publisher.set(offer(*many(count)))
                await settled(publisher)
            assert server.names_of_devices() == [many(5)]
            assert publisher.counters["failed"] == 0

    run(test)


def test_a_write_without_an_answer_is_looked_up_before_it_is_repeated() -> None:
    """The connection breaks after the slice was created; there is one slice in the end."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            await until(server.watched)
            server._tell = lambda *_: None  # type: ignore[method-assign]  # only a direct question can tell
            server.faults.append(Fault("done-and-reset", verb="create"))
            publisher.set(offer(*many(3)))
            await settled(publisher)
            assert server.names_of_devices() == [many(3)]

    run(test)


def test_a_watch_that_is_stuck_is_passed_by_asking() -> None:
    """Own writes that no watch shows are asked about after a while; a slice that is gone meanwhile comes back."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server, replace(AT_ONCE, lag=0.05)) as publisher:
            await until(server.watched)
            server._tell = lambda *_: None  # type: ignore[method-assign]  # a watch that is stuck
            publisher.set(offer(*many(3)))
            await settled(publisher)
            server.take(0)
            await until(lambda: server.names_of_devices() == [many(3)])

    run(test)


def test_refusals_of_every_kind_are_visible_and_end() -> None:
    """403, 409, 429 and 500: each is a problem or a short wait; when they stop, the slices are there."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            seen: set[str] = set()
            for code, reason in (
                (403, "Forbidden"),
                (409, "Conflict"),
                (429, "TooManyRequests"),
                (500, "InternalError"),
            ):
                body = f'{{"kind":"Status","code":{code},"reason":"{reason}","message":"{reason} for a while"}}'
                server.faults.append(Fault("status", verb="create", code=code, body=body.encode(), times=25))
                before = publisher.counters["failed"]
                publisher.set(offer(*many(3, reason.lower())))
                await until(lambda: publisher.problems or publisher.synced)
                seen |= {str(problem) for problem in publisher.problems}
                assert publisher.counters["failed"] > before
                await settled(publisher)
                assert publisher.problems == ()
                publisher.set(Offer())
                await settled(publisher)
            assert len(seen) == 4, seen

    run(test)


def test_a_conflict_behind_a_stuck_watch_is_looked_up() -> None:
    """Somebody else has changed the slice and the watch doesn't show it: the server is asked."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(3)))
            await settled(publisher)
            server._tell = lambda *_: None  # type: ignore[method-assign]  # a watch that is stuck
            server.change(0, lambda obj: obj["spec"]["devices"].pop())
            publisher.set(offer(*many(4)))
            await settled(publisher)
            assert server.names_of_devices() == [many(4)]

    run(test)


def test_news_dont_shorten_the_wait_after_a_failure() -> None:
    """The watch tells of a hundred changes while a write has to wait; it isn't tried once for each of them."""

    async def test() -> None:
        delays = replace(AT_ONCE, retry=Backoff(initial=60.0, maximum=60.0, jitter=0))
        async with SliceServer() as server, publishing(server, delays) as publisher:
            publisher.set(offer(*many(3)))
            await settled(publisher)
            server.faults.append(Fault("status", verb="update", code=403, times=1000))
            publisher.set(offer(*many(4)))
            await until(lambda: publisher.problems)
            for number in range(100):
                server.change(0, partial(_label, number))
                await asyncio.sleep(0.001)
            assert publisher.counters["failed"] == 1
            publisher.set(offer(*many(5)))
            await until(lambda: publisher.counters["failed"] == 2, "what is set anew is tried at once")

    run(test)


def _label(number: int, obj: Object) -> None:
    obj["metadata"]["labels"] = {"n": str(number)}


def test_a_server_that_is_away_is_waited_for() -> None:
    """What is set meanwhile is published when it is back; the problem says that it is away, and goes."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(3)))
            await settled(publisher)
            await server.stop()
            publisher.set(offer(*many(5)))
            await until(lambda: publisher.problems)
            assert not publisher.synced
            await server.start()
            await settled(publisher)
            await until(lambda: not publisher.problems)
            assert server.names_of_devices() == [many(5)]

    run(test)


def test_a_server_that_is_away_at_the_start_is_waited_for() -> None:
    """The agent starts before the control plane."""

    async def test() -> None:
        server = SliceServer()
        await server.start()
        await server.stop()
        async with publishing(server) as publisher:
            publisher.set(offer(*many(3)))
            await until(lambda: publisher.problems)
            await server.start()
            try:
                await settled(publisher)
                assert server.names_of_devices() == [many(3)]
            finally:
                await server.stop()

    run(test)


def test_slices_stay_when_the_publisher_ends() -> None:
    """A restart of the agent must not disturb scheduling."""

    async def test() -> None:
        async with SliceServer() as server:
            async with publishing(server) as publisher:
                publisher.set(offer(*many(3)))
                await settled(publisher)
            assert server.names_of_devices() == [many(3)]

    run(test)


def test_a_node_that_the_server_doesnt_know_is_waited_for() -> None:
    """Slices without an owner would never be collected, those of a wrong one at once."""

    async def test() -> None:
        async with SliceServer() as server:
            node = server.objects["nodes", "", NODE]
            server.remove("nodes", NODE)
            async with publishing(server) as publisher:
                publisher.set(offer(*many(3)))
                await until(lambda: publisher.problems)
                (problem,) = publisher.problems
                assert problem.where == f"node {NODE}"
                assert server.slices() == []
                server.put("nodes", {"metadata": {"name": node["metadata"]["name"]}})
                await settled(publisher)
                assert server.names_of_devices() == [many(3)]

    run(test)


def test_a_node_that_was_made_again_owns_the_slices_that_are() -> None:
    """The old node's slices are collected with it; the new ones have the new node's UID."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(3)))
            await settled(publisher)
            server.remove("nodes", NODE)
            server.put("nodes", {"metadata": {"name": NODE}})
            server.take(0)
            await until(lambda: server.slices())
            (made,) = server.slices()
            assert made.metadata.owner_references[0].uid == server.objects["nodes", "", NODE]["metadata"]["uid"]

    run(test)


def test_a_taint_comes_with_bad_health_and_goes_with_it() -> None:
    """Its time is the server's, and it is kept while something else changes."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            taint = DeviceTaint(key="gpu.example.com/unhealthy", value="xid-79", effect="NoExecute")
            bad = [Health(device="gpu-1", state="Unhealthy", taint=taint)]
            publisher.set(offer(*many(3)), bad)
            await settled(publisher)
            server.change(0, lambda obj: _set_time(obj, "2026-02-02T00:00:00Z"))
            publisher.set(offer(*many(4)), bad)
            await settled(publisher)
            (found,) = server.slices()[0].spec.devices[1].taints
            assert found == msgspec.structs.replace(taint, time_added="2026-02-02T00:00:00Z")
            publisher.set(offer(*many(4)))
            await settled(publisher)
            assert not any(device.taints for device in server.slices()[0].spec.devices)
            assert [each.spec.pool.generation for each in server.slices()] == [1]

    run(test)


def _set_time(obj: Object, time: str) -> None:
    obj["spec"]["devices"][1]["taints"][0]["timeAdded"] = time


def test_a_fight_over_a_slice_gets_slower_and_slower() -> None:
    """Somebody undoes every repair; the waits double instead of filling the server with writes."""

    async def test() -> None:
        delays = Delays(repair=Backoff(initial=0.02, maximum=30.0, jitter=0), retry=AT_ONCE.retry)
        async with SliceServer() as server, publishing(server, delays) as publisher:
            publisher.set(offer(*many(2)))
            await settled(publisher)
            waits = []
            for _ in range(5):
                server.change(0, lambda obj: obj["spec"]["devices"].pop())
                await until(lambda: publisher._repair_at is not None)
                assert publisher._repair_at is not None
                waits.append(publisher._repair_at - publisher._client.clock())
                await until(lambda: server.names_of_devices() == [many(2)])
                await settled(publisher)
            assert waits == sorted(waits)
            assert waits[-1] > 8 * waits[0]

    run(test)


def test_of_two_agents_the_one_that_was_started_later_publishes() -> None:
    """During an upgrade both run for a while; the older one doesn't undo what the newer one writes."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server, started=1.0) as old:
            old.set(offer(*many(3)))
            await settled(old)
            async with publishing(server, started=2.0) as new:
                waits: list[float] = []
                for count in (3, 4, 80):
                    new.set(offer(*many(count, "new")))
                    await settled(new)
                    await until(lambda: (old._repair_at or 0) > max(waits, default=0), "it begins to wait anew")
                    assert old._repair_at is not None
                    waits.append(old._repair_at)
                assert server.devices() == sorted(many(80, "new"))
                assert new.counters["repairs"] == old.counters["repairs"] == 0

    run(test)


def test_an_older_agent_takes_over_when_the_newer_one_is_gone() -> None:
    """An upgrade that failed: after a while the slices are again what the agent that still runs offers."""

    async def test() -> None:
        delays = replace(AT_ONCE, handover=0.05)
        async with SliceServer() as server, publishing(server, delays, started=1.0) as old:
            old.set(offer(*many(3)))
            await settled(old)
            async with publishing(server, delays, started=2.0) as new:
                new.set(offer(*many(3, "new")))
                await settled(new)
            await until(lambda: server.names_of_devices() == [many(3)])

    run(test)


def test_pools_for_all_nodes_belong_to_their_node_alone() -> None:
    """One of another node's is a problem and left alone; the own ones go when they aren't offered any more."""

    async def test() -> None:
        network = Offer(pools=(Pool(name="fabric", all_nodes=True, groups=((_device("port-0"),),)),))
        async with SliceServer() as server:
            async with publishing(server) as publisher:
                publisher.set(network)
                await settled(publisher)
                assert [each.spec.all_nodes for each in server.slices()] == [True]
            async with publishing(server) as publisher:
                publisher.set(Offer())
                await settled(publisher)
                assert server.slices() == []
            other = {"metadata": {"name": "other"}, "spec": _fabric_of_another()}
            server.put("resourceslices", other)
            async with publishing(server) as publisher:
                publisher.set(network)
                await settled(publisher)
                assert [each.metadata.name for each in server.slices()] == ["other"]
                (problem,) = publisher.problems
                assert problem.where == "pool fabric"

    run(test)


def _device(name: str) -> Offered:
    return offer(name).pools[0].groups[0][0]


def _fabric_of_another() -> Object:
    return {"driver": DRIVER, "allNodes": True, "pool": {"name": "fabric", "resourceSliceCount": 1}}


def test_changes_in_a_hurry_end_at_the_last_one() -> None:
    """Fifty offers without a pause: the server has the last one, in slices that are all of one generation."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            for count in range(1, 200, 4):
                publisher.set(offer(*many(count)))
                await asyncio.sleep(0)
            await settled(publisher)
            assert server.devices() == sorted(many(197))
            assert len({each.spec.pool.generation for each in server.slices()}) == 1

    run(test)
