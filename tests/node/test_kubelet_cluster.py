"""The real kubelet finds draht's plugins, asks them, and finds them again after either of them was restarted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.node import Node
from cluster.pods import pod
from draht.api.resource import Device, ResourceClaim
from draht.driver.framework import Health, Offer, Offered
from draht.node.errors import DriverRegisteredError
from draht.node.kubelet.device_plugin import DevicePlugin
from draht.node.kubelet.device_service import ContainerDevices, PluginDevice
from draht.node.kubelet.dra_service import DRAService
from draht.node.kubelet.health_service import HealthService
from draht.node.kubelet.pod_resources import PodResources
from draht.node.kubelet.registration import KubeletPlugin
from fake_preparer import FakePreparer, Prepared, PreparedDevice, the_claim

pytestmark = pytest.mark.cluster

DRIVER = "kubelet-test.draht.dev"
RESOURCE = "kubelet-test.draht.dev/thing"
FIRST = "0b5cf4bf-6b2c-4ba2-9e3f-0a6f7c5d0001"
SECOND = "0b5cf4bf-6b2c-4ba2-9e3f-0a6f7c5d0002"
FOREVER = "while :; do sleep 1; done"


@dataclass
class CdiLess(FakePreparer):
    """Prepares the device of the slice below, without anything for the container engine."""

    pool: str = ""

    def prepare(self, claim: ResourceClaim) -> Prepared:
        """Count the call, and answer as the slice says."""
        super().prepare(claim)
        return Prepared(claim.metadata.uid, (PreparedDevice(("thing",), self.pool, "thing-0", ()),))


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Node]:
    """A node on which these tests leave nothing."""
    node = cluster.node(cluster.node_names[0])
    yield node
    cluster.kubectl("delete", "pods", "--all", "--grace-period=1", "--timeout=60s")
    cluster.kubectl("delete", "resourceclaims", "--all", "--timeout=30s")


@pytest.fixture
def run(cluster: Cluster, node: Node) -> Callable[..., Awaitable[str]]:
    """The kubectl command, beside plugins that are served by this process."""

    async def kubectl(*arguments: str) -> str:
        return await asyncio.to_thread(cluster.kubectl, *arguments)

    return kubectl


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is the case in the cluster."""
    async with asyncio.timeout(60):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.2)


def with_claim(name: str, node: Node) -> tuple[dict[str, Any], ...]:
    """A pod with a claim for the one device of the node."""
    request = {"name": "thing", "exactly": {"deviceClassName": DRIVER}}
    return (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [request]}},
        },
        pod(
            name,
            FOREVER,
            resourceClaims=[{"name": "thing", "resourceClaimName": name}],
            container={"resources": {"claims": [{"name": "thing"}]}},
            nodeSelector={"kubernetes.io/hostname": node.name},
        ),
    )


def device(cluster: Cluster, node: Node) -> None:
    """Publish the device, and its class; the kubelet deletes slices when it starts."""
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "kubelet-test"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node.name,
                "pool": {"name": node.name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "thing-0"}],
            },
        },
    )


@asynccontextmanager
async def plugin(
    node: Node, preparer: FakePreparer, run: Callable[..., Awaitable[str]], *, instance: str = ""
) -> AsyncIterator[tuple[KubeletPlugin, HealthService]]:
    """A DRA plugin that the kubelet has taken."""

    async def fetch(namespace: str, name: str) -> ResourceClaim | None:
        claim = json.loads(await run("get", "resourceclaim", name, f"--namespace={namespace}", "--output=json"))
        return the_claim(claim["metadata"]["uid"], namespace=namespace, name=name)

    health = HealthService(node.name)
    health.set(Offer.of([Offered(device=Device(name="thing-0"))]), ())
    service: DRAService[Prepared] = DRAService(DRIVER, preparer, fetch)
    ours = KubeletPlugin(service, health=health, kubelet=node.kubelet_root, instance=instance, interval=0.2)
    async with ours:
        async with asyncio.timeout(30):
            await ours.wait_until_registered()
        yield ours, health


def test_a_claim_is_prepared_its_health_shown_and_it_is_undone(
    cluster: Cluster, node: Node, run: Callable[..., Awaitable[str]]
) -> None:
    """From the pod's start to its end, with the kubelet restarted in between."""

    async def main() -> None:
        preparer = CdiLess(pool=node.name)
        async with plugin(node, preparer, run) as (ours, health):
            await asyncio.to_thread(device, cluster, node)
            await asyncio.to_thread(cluster.apply, *with_claim("claimed", node))
            await run("wait", "pod/claimed", "--for=condition=Ready", "--timeout=60s")
            (uid,) = preparer.prepared

            async with PodResources(node.kubelet_root / "pod-resources" / "kubelet.sock") as kubelet:
                found = await kubelet.get("default", "claimed")
                assert found is not None
                (claimed,) = found.containers[0].claimed
                assert (claimed.claim_name, claimed.driver, claimed.device) == ("claimed", DRIVER, "thing-0")
                assert await kubelet.get("default", "nobody") is None
                assert "claimed" in {each.name for each in await kubelet.list()}

            async def shown(state: str, message: str) -> bool:
                status = json.loads(await run("get", "pod", "claimed", "--output=json"))["status"]
                resources = status["containerStatuses"][0].get("allocatedResourcesStatus", [])
                states = [entry for each in resources for entry in each.get("resources", [])]
                return any(each["health"] == state and each.get("message", "") == message for each in states)

            await until(partial(shown, "Healthy", ""))
            offer = Offer.of([Offered(device=Device(name="thing-0"))])
            health.set(offer, [Health(device="thing-0", state="Unhealthy", message="XID 79")])
            await until(partial(shown, "Unhealthy", "XID 79"))

            await asyncio.to_thread(partial(node.restart_kubelet, kill=True))
            await run("delete", "pod", "claimed", "--grace-period=1", "--timeout=60s")
            await until(lambda: _is(preparer.calls["unprepare", uid] > 0))
            assert preparer.prepared == {}
            assert ours.registered

    asyncio.run(main())


async def _is(condition: bool) -> bool:
    return condition


def test_sockets_that_are_wiped_and_instances_that_overlap(
    cluster: Cluster, node: Node, run: Callable[..., Awaitable[str]]
) -> None:
    """The kubelet registers a plugin whose sockets were removed, and gives calls to the newer of two instances."""

    async def main() -> None:
        old, new = CdiLess(pool=node.name), CdiLess(pool=node.name)
        async with plugin(node, new, run, instance=SECOND) as (second, _):
            async with plugin(node, old, run, instance=FIRST) as (first, _):
                socket = second._registration.path
                socket.unlink()
                await until(lambda: _is(socket.exists() and second.registered))
                await asyncio.to_thread(device, cluster, node)
                await asyncio.to_thread(cluster.apply, *with_claim("overlap", node))
                await run("wait", "pod/overlap", "--for=condition=Ready", "--timeout=60s")
                assert first.registered
                assert (len(old.prepared), len(new.prepared)) == (0, 1)
            await run("delete", "pod", "overlap", "--grace-period=1", "--timeout=60s")
            await until(lambda: _is(not new.prepared))
            with pytest.raises(DriverRegisteredError):
                async with plugin(node, old, run, instance=SECOND):
                    pass

    asyncio.run(main())


def allocate(ids: Sequence[str]) -> ContainerDevices:
    """A variable with the ids."""
    return ContainerDevices(environment={"THINGS": ",".join(ids)})


def test_an_extended_resource_survives_the_kubelets_restart(
    cluster: Cluster, node: Node, run: Callable[..., Awaitable[str]]
) -> None:
    """The node shows what is healthy, a pod gets what it asks for, and a killed kubelet finds the plugin again."""
    things = [PluginDevice(id="thing-0", numa_nodes=(0,)), PluginDevice(id="thing-1")]

    async def allocatable(count: str) -> bool:
        status = json.loads(await run("get", "node", node.name, "--output=json"))["status"]
        return bool(status["allocatable"].get(RESOURCE) == count)

    async def starts(name: str) -> str:
        limits = {"resources": {"limits": {RESOURCE: "1"}}}
        selected = {"kubernetes.io/hostname": node.name}
        await asyncio.to_thread(cluster.apply, pod(name, FOREVER, container=limits, nodeSelector=selected))
        await run("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=60s")
        return await run("exec", name, "--", "sh", "-c", "echo $THINGS")

    async def main() -> None:
        ours = DevicePlugin(
            RESOURCE,
            allocate,
            prefer=lambda available, _must, size: sorted(available)[-size:],
            kubelet=node.kubelet_root,
        )
        ours.set(things)
        async with ours:
            await until(partial(allocatable, "2"))
            assert await starts("things-a") == "thing-1\n"
            async with PodResources(node.kubelet_root / "pod-resources" / "kubelet.sock") as kubelet:
                found = await kubelet.get("default", "things-a")
                assert found is not None
                assert found.containers[0].devices == ((RESOURCE, "thing-1"),)
            await asyncio.to_thread(partial(node.restart_kubelet, kill=True))
            await until(lambda: _is(ours.registered))
            await until(partial(allocatable, "2"))
            assert await starts("things-b") == "thing-0\n"
            ours.set([things[0], PluginDevice(id="thing-1", healthy=False)])
            await until(partial(allocatable, "1"))

    asyncio.run(main())
