"""An extended resource at the kubelet: its list, its allocations, and its way back after the kubelet was restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from draht.api.errors import DrahtError
from draht.node.kubelet.device_plugin import DevicePlugin, socket_names
from draht.node.kubelet.device_service import ContainerDevices, PluginDevice
from fake_kubelet import FakeKubelet, eventually

RESOURCE = "nvidia.com/gpu"
GPUS = tuple(PluginDevice(id=f"GPU-{number}", numa_nodes=(number // 2,)) for number in range(4))
HEALTHY = {gpu.id: "Healthy" for gpu in GPUS}


def allocate(ids: Sequence[str]) -> ContainerDevices:
    """A CDI name and a variable for each container."""
    return ContainerDevices(
        cdi_device_ids=tuple(f"nvidia.com/gpu={each}" for each in ids),
        environment={"GPUS": ",".join(ids)},
        annotations={"example.com/gpus": str(len(ids))},
    )


def device_plugin(root: Path, **options: Any) -> DevicePlugin:
    """A plugin that looks at its sockets often."""
    given = {"allocate": allocate, "interval": 0.02, "grace": 0.2, **options}
    return DevicePlugin(RESOURCE, given.pop("allocate"), kubelet=root, **given)


def run(root: Path, test: Callable[[FakeKubelet, DevicePlugin], Awaitable[None]], **options: Any) -> None:
    """Run a test with a kubelet and a plugin of four devices."""

    async def main() -> None:
        ours = device_plugin(root, **options)
        ours.set(GPUS)
        async with FakeKubelet(root) as kubelet, ours:
            await test(kubelet, ours)

    asyncio.run(main())


def test_devices_are_listed_with_health_and_numa_nodes(root: Path) -> None:
    """The kubelet sees every device, and every change of one at once."""

    async def test(kubelet: FakeKubelet, ours: DevicePlugin) -> None:
        resource = await kubelet.resource(RESOURCE)
        await resource.until(HEALTHY)
        assert resource.topology == {"GPU-0": [0], "GPU-1": [0], "GPU-2": [1], "GPU-3": [1]}
        assert not resource.prefers
        assert ours.problem is None
        assert ours.registered
        ours.set([PluginDevice(id="GPU-0", healthy=False), *GPUS[1:]])
        await resource.until({**HEALTHY, "GPU-0": "Unhealthy"})
        assert resource.topology["GPU-0"] == []
        ours.set(GPUS)
        await resource.until(HEALTHY)
        ours.set(GPUS[:1])
        await resource.until({"GPU-0": "Healthy"})

    run(root, test)


def test_the_same_list_again_is_no_message(root: Path) -> None:
    """The kubelet isn't woken for nothing."""

    async def test(kubelet: FakeKubelet, ours: DevicePlugin) -> None:
        resource = await kubelet.resource(RESOURCE)
        await resource.until(HEALTHY)
        for _ in range(5):
            ours.set(GPUS)
        ours.set(GPUS[:1])
        await resource.until({"GPU-0": "Healthy"})
        assert resource.lists == [HEALTHY, {"GPU-0": "Healthy"}]

    run(root, test)


def test_an_allocation_names_cdi_devices(root: Path) -> None:
    """Each container of the call gets its own answer, in the order of the call."""

    async def test(kubelet: FakeKubelet, _ours: DevicePlugin) -> None:
        first, second = await (await kubelet.resource(RESOURCE)).allocate(["GPU-2", "GPU-0"], ["GPU-1"])
        assert [each.name for each in first.cdi_devices] == ["nvidia.com/gpu=GPU-2", "nvidia.com/gpu=GPU-0"]
        assert dict(first.envs) == {"GPUS": "GPU-2,GPU-0"}
        assert dict(second.envs) == {"GPUS": "GPU-1"}
        assert dict(second.annotations) == {"example.com/gpus": "1"}

    run(root, test)


@pytest.mark.parametrize(
    ("containers", "words"),
    [
        (
            [["GPU-9"]],
            "nvidia.com/gpu: no such device: GPU-9; the devices are GPU-0, GPU-1, GPU-2, GPU-3; delete the pod",
        ),
        ([["GPU-0", "GPU-0"]], "nvidia.com/gpu: asked for more than once: GPU-0"),
        ([["GPU-0"], ["GPU-0"]], "nvidia.com/gpu: asked for more than once: GPU-0"),
    ],
)
def test_ids_that_cant_be_given_are_a_sentence(root: Path, containers: list[list[str]], words: str) -> None:
    """The kubelet keeps ids over its restarts, and may ask for a device that is long gone."""

    async def test(kubelet: FakeKubelet, _ours: DevicePlugin) -> None:
        resource = await kubelet.resource(RESOURCE)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await resource.allocate(*containers)
        assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert str(refused.value.details()).startswith(words)
        assert await resource.allocate(["GPU-0"])

    run(root, test)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DrahtError("the claim team/a has it", where="GPU-0", hint="wait"), "GPU-0: the claim team/a has it; wait"),
        (KeyError("minor"), "KeyError: 'minor' (unexpected; see the log of draht node)"),
    ],
)
def test_an_allocation_that_fails_says_why(root: Path, error: Exception, words: str) -> None:
    """A refusal is a sentence, a bug is one too, and the plugin goes on."""

    def failing(_ids: Sequence[str]) -> ContainerDevices:
        raise error

    async def test(kubelet: FakeKubelet, ours: DevicePlugin) -> None:
        resource = await kubelet.resource(RESOURCE)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await resource.allocate(["GPU-0"])
        assert refused.value.details() == words
        assert ours.registered

    run(root, test, allocate=failing)


def broken(_available: Sequence[str], _must: Sequence[str], _size: int) -> Sequence[str]:
    """Something that can't choose."""
    raise ValueError("no topology")


@pytest.mark.parametrize(
    ("prefer", "best"),
    [
        (lambda available, _must, size: list(reversed(available))[:size], ["GPU-3", "GPU-2"]),
        (broken, ["GPU-1", "GPU-0"]),
        (lambda _available, _must, _size: ["GPU-0", "GPU-8"], ["GPU-1", "GPU-0"]),
        (lambda _available, _must, _size: ["GPU-0", "GPU-2"], ["GPU-1", "GPU-0"]),
        (lambda _available, must, _size: must, ["GPU-1", "GPU-0"]),
        (lambda _available, _must, _size: ["GPU-1", "GPU-1"], ["GPU-1", "GPU-0"]),
    ],
)
def test_a_preference_that_doesnt_fit_never_keeps_a_pod_from_starting(
    root: Path, prefer: Callable[[Sequence[str], Sequence[str], int], Sequence[str]], best: list[str]
) -> None:
    """What chooses may fail or answer nonsense; then the kubelet's own order is the answer."""

    async def test(kubelet: FakeKubelet, _ours: DevicePlugin) -> None:
        resource = await kubelet.resource(RESOURCE)
        assert resource.prefers
        must = [] if best[0] == "GPU-3" else ["GPU-1"]
        assert await resource.preferred(["GPU-0", "GPU-1", "GPU-2", "GPU-3"], must, 2) == best

    run(root, test, prefer=prefer)


def test_a_kubelet_that_restarts_is_told_again(root: Path) -> None:
    """It empties the directory and forgets everybody; the plugin makes its socket again and registers."""

    async def test(kubelet: FakeKubelet, ours: DevicePlugin) -> None:
        await (await kubelet.resource(RESOURCE)).until(HEALTHY)
        for restarts in range(1, 4):
            await kubelet.restart()
            await (await kubelet.resource(RESOURCE)).until(HEALTHY)
            await eventually(lambda: ours.registered)
            assert kubelet.registrations == [RESOURCE] * (restarts + 1)
        assert await kubelet.resources[RESOURCE].allocate(["GPU-0"])

    run(root, test)


def test_a_directory_that_is_wiped_is_filled_again(root: Path) -> None:
    """The own socket is made again, and the kubelet is told, although it didn't restart."""

    async def test(kubelet: FakeKubelet, ours: DevicePlugin) -> None:
        await (await kubelet.resource(RESOURCE)).until(HEALTHY)
        (root / "device-plugins" / socket_names(RESOURCE)[0]).unlink()
        await eventually(lambda: kubelet.registrations == [RESOURCE] * 2)
        await kubelet.resources[RESOURCE].until(HEALTHY)
        assert ours.problem is None

    run(root, test)


def test_a_kubelet_that_lost_the_stream_is_told_again(root: Path) -> None:
    """Without a stream the kubelet takes all devices for unhealthy, and doesn't come back by itself."""

    async def test(kubelet: FakeKubelet, _ours: DevicePlugin) -> None:
        resource = await kubelet.resource(RESOURCE)
        await resource.until(HEALTHY)
        resource.stream.cancel()
        await eventually(lambda: kubelet.registrations == [RESOURCE] * 2)
        await kubelet.resources[RESOURCE].until(HEALTHY)

    run(root, test)


def test_a_plugin_waits_for_the_kubelet(root: Path) -> None:
    """Started first, it says what it waits for and registers as soon as the kubelet is there."""

    async def main() -> None:
        ours = device_plugin(root)
        ours.set(GPUS)
        async with ours:
            await eventually(lambda: "there is no kubelet at" in (ours.problem or ""))
            assert not ours.registered
            async with FakeKubelet(root) as kubelet:
                await (await kubelet.resource(RESOURCE)).until(HEALTHY)
                await eventually(lambda: ours.problem is None)
            await eventually(lambda: not ours.registered)

    asyncio.run(main())


def test_a_refusal_is_shown_and_tried_again(root: Path) -> None:
    """The kubelet's words are the problem until it takes the plugin."""

    async def main() -> None:
        async with (
            FakeKubelet(root, refuse={RESOURCE: "invalid resource name"}) as kubelet,
            device_plugin(root) as ours,
        ):
            await eventually(lambda: ours.problem == "the plugin can't be registered: invalid resource name")
            assert not ours.registered
            kubelet.refuse.clear()
            await eventually(lambda: ours.registered)

    asyncio.run(main())


def test_devices_that_the_kubelet_wouldnt_take_are_left_out(root: Path) -> None:
    """One bad id doesn't hide the others, and is named."""

    async def test(kubelet: FakeKubelet, ours: DevicePlugin) -> None:
        resource = await kubelet.resource(RESOURCE)
        ours.set([PluginDevice(id="x" * 64), PluginDevice(id=""), GPUS[0], PluginDevice(id="GPU-0", healthy=False)])
        await resource.until({"GPU-0": "Healthy"})
        assert ours.problem == (
            f"the id '{'x' * 64}' has 64 characters, of 1 to 63; the id '' has 0 characters, of 1 to 63; "
            "two devices have the id GPU-0; the first one counts"
        )
        ours.set(GPUS)
        assert ours.problem is None

    run(root, test)


def test_a_stopped_plugin_leaves_nothing(root: Path) -> None:
    """Its socket is gone, its stream has ended, and the kubelet knows at once."""

    async def main() -> None:
        async with FakeKubelet(root) as kubelet:
            ours = device_plugin(root)
            ours.set(GPUS)
            await ours.start()
            resource = await kubelet.resource(RESOURCE)
            await resource.until(HEALTHY)
            await ours.stop()
            await resource.until({})
            assert [path.name for path in (root / "device-plugins").iterdir()] == ["kubelet.sock"]

    asyncio.run(main())
