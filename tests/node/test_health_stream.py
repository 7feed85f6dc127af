"""Health as the kubelet reads it: complete, at once, repeated in time, and honest about what nobody has looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from draht.api.resource import Device
from draht.driver.framework import Health, Offer, Offered, Pool
from draht.node.kubelet.dra_service import DRAService
from draht.node.kubelet.health_service import HealthService
from draht.node.kubelet.registration import KubeletPlugin
from fake_kubelet import FakeKubelet, Plugin
from fake_preparer import ApiServer, FakePreparer, Prepared

DRIVER = "gpu.example.com"


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def offer(*names: str, pool: str = "") -> Offer:
    """Devices of one pool."""
    groups = tuple((Offered(device=Device(name=name)),) for name in names)
    return Offer(pools=(Pool(groups=groups, name=pool),))


def run(root: Path, test: Callable[[HealthService, Plugin, Clock], Awaitable[None]], *, timeout: float = 30.0) -> None:
    """Run a test with a plugin that the kubelet has registered."""

    async def main() -> None:
        clock = Clock()
        health = HealthService("node-0", timeout=timeout, clock=clock)
        service: DRAService[Prepared] = DRAService(DRIVER, FakePreparer(), ApiServer().fetch)
        ours = KubeletPlugin(service, health=health, kubelet=root, interval=0.05, grace=0.2)
        async with FakeKubelet(root) as kubelet, ours:
            await test(health, await kubelet.plugin(DRIVER), clock)

    asyncio.run(main())


def states(message: Any) -> dict[str, tuple[str, str]]:
    """pool/device → (state, message)."""
    names = {0: "unknown", 1: "healthy", 2: "unhealthy"}
    return {
        f"{each.device.pool_name}/{each.device.device_name}": (names[each.health], each.message)
        for each in message.devices
    }


async def following(stream: Any) -> Any:
    """The next message, which comes soon."""
    async with asyncio.timeout(20):
        return await anext(stream)


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_both_versions_stream_the_complete_list_at_every_change(root: Path, version: str) -> None:
    """Devices are healthy unless said otherwise; each message has all of them."""

    async def test(health: HealthService, plugin: Plugin, clock: Clock) -> None:
        health.set(offer("gpu-0", "gpu-1"), ())
        stream = plugin.health(version)
        first = await following(stream)
        assert states(first) == {"node-0/gpu-0": ("healthy", ""), "node-0/gpu-1": ("healthy", "")}
        assert {each.health_check_timeout_seconds for each in first.devices} == {30}
        assert {each.last_updated_time for each in first.devices} == {1_000_000}
        clock.now += 5
        health.set(offer("gpu-0", "gpu-1"), [Health(device="gpu-1", state="Unhealthy", message="XID 79")])
        second = await following(stream)
        assert states(second) == {"node-0/gpu-0": ("healthy", ""), "node-0/gpu-1": ("unhealthy", "XID 79")}
        assert {each.last_updated_time for each in second.devices} == {1_000_005}
        health.set(offer("gpu-0"), ())
        assert states(await following(stream)) == {"node-0/gpu-0": ("healthy", "")}
        await stream.aclose()

    run(root, test)


def test_pools_and_devices_that_arent_offered_are_named_in_full(root: Path) -> None:
    """An empty pool is the node's own; a device that fell off the bus is still reported to the pods that have it."""

    async def test(health: HealthService, plugin: Plugin, _clock: Clock) -> None:
        health.set(offer("nic-0", pool="fabric"), [Health(device="gpu-7", state="Unknown", message="gone")])
        stream = plugin.health()
        assert states(await following(stream)) == {
            "fabric/nic-0": ("healthy", ""),
            "node-0/gpu-7": ("unknown", "gone"),
        }
        await stream.aclose()

    run(root, test)


def test_the_list_is_repeated_before_the_kubelet_takes_silence_for_unknown(root: Path) -> None:
    """Nothing changes, and the list comes again all the same."""

    async def test(health: HealthService, plugin: Plugin, _clock: Clock) -> None:
        health.set(offer("gpu-0"), ())
        stream = plugin.health()
        first = await following(stream)
        assert [await following(stream) for _ in range(3)] == [first] * 3
        await stream.aclose()

    run(root, test, timeout=0.3)


def test_a_health_check_that_stands_still_is_said_to(root: Path) -> None:
    """Repeating old news would keep a device healthy for ever in the kubelet's eyes."""

    async def test(health: HealthService, plugin: Plugin, clock: Clock) -> None:
        health.set(offer("gpu-0"), ())
        stream = plugin.health()
        assert states(await following(stream)) == {"node-0/gpu-0": ("healthy", "")}
        clock.now += 7
        silent = states(await following(stream))
        assert silent == {"node-0/gpu-0": ("unknown", "draht hasn't looked at this device for 7 s")}
        health.set(offer("gpu-0"), ())
        while (back := states(await following(stream))) == silent:
            pass
        assert back == {"node-0/gpu-0": ("healthy", "")}
        await stream.aclose()

    run(root, test, timeout=0.6)


def test_several_streams_see_the_same(root: Path) -> None:
    """The kubelet's old stream may still be open when it opens a new one."""

    async def test(health: HealthService, plugin: Plugin, _clock: Clock) -> None:
        health.set(offer("gpu-0"), ())
        streams = [plugin.health("v1"), plugin.health("v1"), plugin.health("v1alpha1")]
        for stream in streams:
            await following(stream)
        health.set(offer("gpu-0"), [Health(device="gpu-0", state="Unhealthy")])
        for stream in streams:
            assert states(await following(stream)) == {"node-0/gpu-0": ("unhealthy", "")}
            await stream.aclose()

    run(root, test)


def test_a_stream_waits_for_the_first_look(root: Path) -> None:
    """Before anybody has looked there is nothing to say, and an empty list would be wrong."""

    async def test(health: HealthService, plugin: Plugin, _clock: Clock) -> None:
        stream = plugin.health()
        waiting = asyncio.ensure_future(following(stream))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        health.set(offer("gpu-0"), ())
        assert states(await waiting) == {"node-0/gpu-0": ("healthy", "")}
        await stream.aclose()

    run(root, test)


@pytest.mark.parametrize("letter", ["x", "ü", "\U0001f600"])
def test_a_long_message_is_cut_between_letters(root: Path, letter: str) -> None:
    """1024 bytes are what a pod's status holds; the kubelet itself would cut through a letter."""

    async def test(health: HealthService, plugin: Plugin, _clock: Clock) -> None:
        health.set(offer("gpu-0"), [Health(device="gpu-0", state="Unhealthy", message=letter * 2000)])
        stream = plugin.health()
        _, message = states(await following(stream))["node-0/gpu-0"]
        assert 1024 - 4 < len(message.encode()) <= 1024
        assert message == letter * (len(message) - 3) + "..."
        await stream.aclose()

    run(root, test)


def test_streams_end_with_the_plugin(root: Path) -> None:
    """A stop doesn't wait for streams, which would never end by themselves."""

    async def main() -> None:
        health = HealthService("node-0")
        health.set(offer("gpu-0"), ())
        service: DRAService[Prepared] = DRAService(DRIVER, FakePreparer(), ApiServer().fetch)
        ours = KubeletPlugin(service, health=health, kubelet=root, interval=0.05, grace=15)
        async with FakeKubelet(root) as kubelet:
            await ours.start()
            stream = (await kubelet.plugin(DRIVER)).health()
            await following(stream)
            async with asyncio.timeout(10):
                await ours.stop()
            await stream.aclose()

    asyncio.run(main())
