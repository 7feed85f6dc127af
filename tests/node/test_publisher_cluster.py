"""The publisher against a real API server, with the gates that are on by default."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from cluster.cluster import Cluster
from draht.api.core import Node
from draht.api.meta import ObjectMeta
from draht.api.resource import (
    Device,
    DeviceAttribute,
    DeviceTaint,
    NodeAllocatableMapping,
    NodeAllocatableResource,
    ResourceSlice,
)
from draht.driver.framework import Health, Offer, Offered, Pool
from draht.driver.vendors import offers
from draht.hardware.simulated import from_profile
from draht.kube import NODES, SLICES, Client, Config
from draht.kube.discovery import Discovery
from draht.node.slices.publisher import Publisher
from fake_slice_server import AT_ONCE, many, offer, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DRIVER = "gpu.nvidia.com"


@pytest.fixture(scope="module")
def plane(cluster_needs: None) -> Iterator[Cluster]:
    """A control plane of its own, because its API server is killed."""
    running = Cluster.up(f"p{os.getpid()}", nodes=0)
    yield running
    running.down()


@contextlib.asynccontextmanager
async def node(cluster: Cluster, name: str) -> AsyncIterator[Client]:
    """A Node object and a client of an administrator; slices go with the node."""
    async with Client(Config.load(kubeconfig=cluster.kubeconfig)) as client:
        await client.create(NODES, Node(metadata=ObjectMeta(name=name)))
        yield client
        await client.delete(NODES, name)


@contextlib.asynccontextmanager
async def publishing(client: Client, name: str) -> AsyncIterator[Publisher]:
    """A publisher that runs for a node."""
    publisher = Publisher(client, DRIVER, name, delays=replace(AT_ONCE, doubt=600))
    running = asyncio.create_task(publisher.run())
    try:
        yield publisher
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def slices(client: Client, name: str) -> list[ResourceSlice]:
    """The slices of a node, by name."""
    listed = await client.list(SLICES, field_selector=f"spec.nodeName={name}")
    return sorted(listed.items, key=lambda each: each.metadata.name)


async def settled(publisher: Publisher) -> None:
    """Wait until the server has what was set."""
    await until(lambda: publisher.synced, "settled")


def texts(publisher: Publisher) -> str:
    """All that is said about the publisher's problems."""
    return "\n".join(f"{problem}; {problem.hint}" for problem in publisher.problems)


@pytest.mark.parametrize("count", [0, 1, 8, 200])
def test_devices_are_on_the_server_as_they_were_set(plane: Cluster, count: int) -> None:
    """None, one, a machine's and many: complete pools, and a second run of the agent writes nothing."""

    async def test() -> None:
        async with node(plane, f"many-{count}") as client:
            name = f"many-{count}"
            wanted = offer(*many(count)) if count else Offer(pools=(Pool(),))
            async with publishing(client, name) as publisher:
                publisher.set(wanted)
                await settled(publisher)
                found = await slices(client, name)
                assert [device.name for each in found for device in each.spec.devices] == many(count)
                assert {each.spec.pool.resource_slice_count for each in found} == {len(found)}
                assert len(found) == max(1, -(-count // 64))
            async with publishing(client, name) as publisher:
                publisher.set(wanted)
                await settled(publisher)
                assert sum(publisher.counters.values()) == 0
                assert publisher.problems == ()

    asyncio.run(test())


@pytest.mark.parametrize("profile", ["dgx-h100", "dgx-a100-80"])
def test_partitions_of_a_machine_are_taken_as_they_are(plane: Cluster, profile: str) -> None:
    """Every attribute, capacity and counter of a simulated DGX with MIG survives the server."""

    async def test() -> None:
        machine = offers.offer(from_profile(profile), DRIVER, partitions=True, shares=True).offer
        async with node(plane, profile) as client, publishing(client, profile) as publisher:
            publisher.set(machine)
            await settled(publisher)
            assert publisher.problems == ()
            found = await slices(client, profile)
            assert len(found) == 9
            assert len(found[0].spec.shared_counters) == 8
            assert sum(len(each.spec.devices) for each in found) == 8 * 26

    asyncio.run(test())


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_older_versions_carry_the_same(plane: Cluster, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions through an older API are the same devices; a refusal names its device all the same."""

    async def only_older(_: Discovery, group: str) -> tuple[str, ...]:
        return (version,)

    monkeypatch.setattr(Discovery, "served", only_older)

    def names() -> list[str]:
        said = plane.kubectl("get", "resourceslices.v1.resource.k8s.io", "--output=json")
        items = [item for item in json.loads(said)["items"] if item["spec"].get("nodeName") == version]
        return [device["name"] for item in items for device in item["spec"].get("devices", ())]

    async def test() -> None:
        machine = offers.offer(from_profile("dgx-h100"), DRIVER, partitions=True).offer
        listed = Offered(device=Device(name="listed", attributes={"nodes": DeviceAttribute(ints=(0, 1))}))
        async with node(plane, version) as client, publishing(client, version) as publisher:
            publisher.set(machine)
            await settled(publisher)
            assert publisher.problems == ()
            assert publisher.counters["update"] == 0
            assert sorted(names()) == sorted(device for _, device in machine.devices())
            (pool,) = machine.pools
            publisher.set(Offer(pools=(replace(pool, groups=(*pool.groups, (listed,))),)))
            await settled(publisher)
            assert f"device {version}/listed" in texts(publisher)
            assert "DRAListTypeAttributes" in texts(publisher)
            assert sorted(names()) == sorted(device for _, device in machine.devices())

    asyncio.run(test())


def test_what_others_do_to_slices_is_repaired(plane: Cluster) -> None:
    """An edit, a deletion, the kubelet's wipe of all, and a stranger's slice in the pool."""

    async def test() -> None:
        async with node(plane, "repair") as client, publishing(client, "repair") as publisher:
            publisher.set(offer(*many(130)))
            await settled(publisher)

            async def whole() -> bool:
                found = await slices(client, "repair")
                live = [each for each in found if each.spec.pool.generation == found[-1].spec.pool.generation]
                names = [device.name for each in live for device in each.spec.devices]
                return names == many(130) and len(found) == 3

            first, second, _ = await slices(client, "repair")
            await client.patch(SLICES, first.metadata.name, [{"op": "remove", "path": "/spec/devices/0"}], type="json")
            await _until(whole)
            await client.delete(SLICES, second.metadata.name)
            await _until(whole)
            for each in await slices(client, "repair"):
                await client.delete(SLICES, each.metadata.name)
            await _until(whole)
            pool = {"name": "repair", "generation": 99, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": "repair", "pool": pool}
            await client.create(SLICES, {"metadata": {"name": "stranger"}, "spec": spec})
            await _until(whole)
            await settled(publisher)
            assert {each.spec.pool.generation for each in await slices(client, "repair")} == {100}
            assert publisher.counters["repairs"] >= 4

    asyncio.run(test())


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 - the server tells nobody but the publisher
            await asyncio.sleep(0.05)


def test_a_server_that_is_killed_in_the_middle_gets_the_rest_when_it_is_back(plane: Cluster) -> None:
    """200 devices in four slices, and the server goes away while they are changed; one generation in the end."""

    async def test() -> None:
        async with node(plane, "killed") as client, publishing(client, "killed") as publisher:
            publisher.set(offer(*many(200)))
            await settled(publisher)
            publisher.set(offer(*many(200, "new")))
            await asyncio.sleep(0.01)
            await asyncio.to_thread(plane.stop_apiserver, kill=True)
            publisher.set(offer(*many(190, "newer")))
            await until(lambda: publisher.problems)
            await asyncio.to_thread(plane.start_apiserver)
            await settled(publisher)
            await until(lambda: not publisher.problems)
            found = await slices(client, "killed")
            assert len(found) == 3
            assert [device.name for each in found for device in each.spec.devices] == many(190, "newer")
            assert len({each.spec.pool.generation for each in found}) == 1

    asyncio.run(test())


def test_a_list_attribute_is_refused_by_default_and_the_gate_is_named(plane: Cluster) -> None:
    """DRAListTypeAttributes is off in 1.37: the server empties the attribute and refuses it; the rest is published."""

    async def test() -> None:
        listed = Device(name="listed", attributes={"nodes": DeviceAttribute(ints=(0, 1))})
        plain = offer(*many(3)).pools[0]
        wanted = Offer(pools=(Pool(groups=(*plain.groups, (Offered(device=listed),))),))
        async with node(plane, "lists") as client, publishing(client, "lists") as publisher:
            publisher.set(wanted)
            await settled(publisher)
            (found,) = await slices(client, "lists")
            assert [device.name for device in found.spec.devices] == many(3)
            assert "device lists/listed" in texts(publisher)
            assert "DRAListTypeAttributes" in texts(publisher)

    asyncio.run(test())


def test_fields_that_the_server_drops_are_named_and_written_once(plane: Cluster) -> None:
    """DRANodeAllocatableResources is off in 1.37: the field is gone, the device is there."""

    async def test() -> None:
        memory = NodeAllocatableResource(mapping=NodeAllocatableMapping(device_multiplier="1Gi"))
        device = Device(name="hungry", node_allocatable_resources={"memory": memory})
        async with node(plane, "drops") as client, publishing(client, "drops") as publisher:
            publisher.set(Offer(pools=(Pool(groups=((Offered(device=device),),)),)))
            await settled(publisher)
            assert [each.spec.devices[0].name for each in await slices(client, "drops")] == ["hungry"]
            assert "spec.devices.nodeAllocatableResources" in texts(publisher)
            assert "DRANodeAllocatableResources" in texts(publisher)
            publisher.set(Offer())
            await settled(publisher)
            assert (publisher.counters["create"], publisher.counters["update"]) == (1, 0)

    asyncio.run(test())


def test_a_taint_gets_its_time_from_the_server_and_keeps_it(plane: Cluster) -> None:
    """Health comes and goes by changes of one slice, without a new generation."""

    async def test() -> None:
        taint = DeviceTaint(key="gpu.nvidia.com/unhealthy", value="xid-79", effect="NoExecute")
        bad = Health(device="gpu-1", state="Unhealthy", taint=taint)
        async with node(plane, "taints") as client, publishing(client, "taints") as publisher:
            publisher.set(offer(*many(8)), [bad])
            await settled(publisher)
            (first,) = await slices(client, "taints")
            (found,) = first.spec.devices[1].taints
            assert found.time_added is not None
            publisher.set(offer(*many(9)), [bad])
            await settled(publisher)
            (second,) = await slices(client, "taints")
            assert second.spec.devices[1].taints == (found,)
            publisher.set(offer(*many(9)))
            await settled(publisher)
            (third,) = await slices(client, "taints")
            assert not third.spec.devices[1].taints
            assert third.spec.pool.generation == 1

    asyncio.run(test())


def test_slices_that_a_starting_kubelet_wipes_come_back(cluster: Cluster) -> None:
    """A real kubelet removes all slices of its node when it starts; the agent may be running all the time."""

    async def test() -> None:
        name = cluster.node_names[0]
        async with Client(Config.load(kubeconfig=cluster.kubeconfig)) as client, publishing(client, name) as publisher:
            publisher.set(offer(*many(70)))
            await settled(publisher)
            before = {each.metadata.uid for each in await slices(client, name)}
            await asyncio.to_thread(cluster.node(name).restart_kubelet)

            async def renewed() -> bool:
                found = await slices(client, name)
                return len(found) == 2 and not before & {each.metadata.uid for each in found}

            await _until(renewed)
            await settled(publisher)
            assert publisher.problems == ()
            publisher.set(Offer())
            await settled(publisher)

    asyncio.run(test())
