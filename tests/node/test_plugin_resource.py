"""GPUs that a device plugin gives away by number: which ones, what containers get, how they are."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from draht.api.errors import DrahtError
from draht.driver.claims.prepared import Places
from draht.driver.framework import Health
from draht.driver.vendors.plugin_devices import SPEC_FILE
from draht.driver.vendors.plugin_split import Split
from draht.hardware.inventory import Inventory
from draht.hardware.simulated import from_profile
from draht.node.metrics import Metrics
from draht.node.plugin_resource import PluginResource
from fake_kubelet import FakeKubelet, Resource, eventually

RESOURCE = "nvidia.com/gpu"
MACHINE = from_profile("l4-x4")
IDS = [gpu.id for gpu in MACHINE.gpus()]


class Machine:
    """A provider of the profile, until it is told to fail."""

    def __init__(self) -> None:
        self.error: DrahtError | None = None
        self.healths: list[Health] = []

    def inventory(self) -> Inventory:
        """The machine."""
        if self.error is not None:
            raise self.error
        return MACHINE

    def watch(self) -> Sequence[Health]:
        """How its devices are."""
        return self.healths


Test = Callable[[Resource, Machine, PluginResource], Coroutine[Any, Any, None]]


def serve(root: Path, test: Test, *, which: str = "all") -> Metrics:
    """Run a test beside a resource that a kubelet has registered; returns what was counted."""
    metrics = Metrics(tuple)

    async def main() -> None:
        machine = Machine()
        places = Places(cdi_directory=root / "cdi", metadata_directory=root / "m", files_directory=root / "files")
        resource = PluginResource(
            "nvidia", machine, which=Split.parse(which), watch=machine.watch, places=places, seconds=0.02
        )
        assert resource.unready() == [f"{RESOURCE}: not started yet"]
        async with FakeKubelet(root) as kubelet:
            task = asyncio.create_task(resource.serve(root, metrics))
            try:
                await test(await kubelet.resource(RESOURCE), machine, resource)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        assert not (root / "device-plugins" / "draht-nvidia.com-gpu.sock").exists()

    asyncio.run(main())
    return metrics


def test_all_gpus_are_listed_by_uuid_with_their_numa_nodes(root: Path) -> None:
    """As the kubelet is to choose among them."""

    async def test(listed: Resource, _machine: Machine, resource: PluginResource) -> None:
        await listed.until(dict.fromkeys(IDS, "Healthy"))
        assert listed.topology == {gpu.id: [gpu.numa_node] for gpu in MACHINE.gpus()}
        assert listed.prefers
        await eventually(lambda: resource.unready() == [])

    serve(root, test)


def test_only_the_chosen_gpus_are_the_device_plugins(root: Path) -> None:
    """The others are DRA's."""

    async def test(listed: Resource, _machine: Machine, _resource: PluginResource) -> None:
        await listed.until({IDS[1]: "Healthy", IDS[3]: "Healthy"})
        with pytest.raises(grpc.aio.AioRpcError):
            await listed.allocate([IDS[0]])

    serve(root, test, which="1,3")


def test_containers_get_cdi_names_of_a_spec_that_is_there_and_variables(root: Path) -> None:
    """Every name resolves in the spec; what the container sees is said to be simulated."""

    async def test(listed: Resource, _machine: Machine, _resource: PluginResource) -> None:
        one, two = await listed.allocate([IDS[0]], [IDS[1], IDS[2]])
        spec = json.loads((root / "cdi" / SPEC_FILE).read_text())
        known = {f"{spec['kind']}={device['name']}" for device in spec["devices"]}
        assert {device.name for device in two.cdi_devices} <= known
        assert len(one.cdi_devices) == 2  # the GPU, and what a container gets once
        assert len(two.cdi_devices) == 3
        assert IDS[0] in " ".join(one.envs.values())
        assert IDS[1] not in " ".join(one.envs.values())
        assert any("simulated" in name.lower() for name in one.envs)

    counted = 'draht_dra_requests_total{driver="nvidia.com/gpu",error="",operation="allocate"} 1.0'
    assert counted in serve(root, test).text().decode()


def test_a_spec_that_somebody_removes_is_written_again(root: Path) -> None:
    """Containers could not be started without it."""

    async def test(_listed: Resource, _machine: Machine, _resource: PluginResource) -> None:
        spec = root / "cdi" / SPEC_FILE
        await eventually(spec.exists)
        spec.unlink()
        await eventually(spec.exists)

    serve(root, test)


def test_an_ill_gpu_is_listed_as_such_until_it_recovers(root: Path) -> None:
    """By the name under which it would be published; what is unknown isn't taken for ill."""

    async def test(listed: Resource, machine: Machine, _resource: PluginResource) -> None:
        await listed.until(dict.fromkeys(IDS, "Healthy"))
        machine.healths = [Health(device="gpu-2", state="Unhealthy"), Health(device="gpu-3", state="Unknown")]
        await listed.until({**dict.fromkeys(IDS, "Healthy"), IDS[2]: "Unhealthy"})
        machine.healths = []
        await listed.until(dict.fromkeys(IDS, "Healthy"))

    serve(root, test)


def test_a_machine_that_cant_be_looked_at_keeps_what_was_known(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The trouble is told once and in ``/readyz``; allocations go on."""

    async def test(listed: Resource, machine: Machine, resource: PluginResource) -> None:
        await listed.until(dict.fromkeys(IDS, "Healthy"))
        machine.error = DrahtError("the bus is gone")
        await eventually(lambda: resource.unready() == [f"{RESOURCE}: the bus is gone"])
        await asyncio.sleep(0.1)
        assert (await listed.allocate([IDS[0]]))[0].cdi_devices
        machine.error = None
        await eventually(lambda: resource.unready() == [])

    with caplog.at_level(logging.WARNING, logger="draht"):
        serve(root, test)
    assert sum(record.getMessage() == "the bus is gone" for record in caplog.records) == 1


def test_gpus_near_each_other_are_preferred(root: Path) -> None:
    """A container's GPUs are of one NUMA node where there are enough."""

    async def test(listed: Resource, _machine: Machine, _resource: PluginResource) -> None:
        await listed.until(dict.fromkeys(IDS, "Healthy"))
        nodes = {gpu.id: gpu.numa_node for gpu in MACHINE.gpus()}
        chosen = await listed.preferred(IDS, [], 2)
        assert len(chosen) == 2
        assert len({nodes[each] for each in chosen}) == 1
        assert IDS[3] in await listed.preferred(IDS, [IDS[3]], 2)

    serve(root, test)
