from __future__ import annotations

from collections import Counter
from importlib.resources import files

import pytest

from draht.api.quantity import Quantity
from draht.api.resource import Device, ResourceSlice
from draht.driver.slices import Published, publish
from draht.hardware import profiles
from draht.hardware.simulated import SimulatedProvider, from_profile


def published(profile: str, *, partitions: bool = False, shares: bool = False) -> Published:
    """What a shipped profile publishes."""
    return publish(from_profile(profile), node_name="node-1", partitions=partitions, shares=shares)


def devices(slices: tuple[ResourceSlice, ...], driver: str) -> dict[str, Device]:
    """The devices of a driver by name."""
    return {device.name: device for each in slices if each.spec.driver == driver for device in each.spec.devices}


@pytest.mark.parametrize("partitions", [False, True])
@pytest.mark.parametrize("profile", profiles.names())
def test_every_device_of_every_profile_is_found_again(profile: str, partitions: bool) -> None:
    """What is published leads back to one device of the inventory, or to a partition of one, with the same units."""
    inventory = from_profile(profile)
    found = published(profile, partitions=partitions)
    names = {(each.spec.driver, device.name) for each in found.slices for device in each.spec.devices}
    assert names == set(found.devices)
    units = frozenset().union(*(device.units for device in found.devices.values()))
    assert units >= frozenset().union(
        *(device.units for device in inventory.devices if device.kind in {"mig", "nic", "vf"})
    )


@pytest.mark.parametrize("partitions", [False, True])
@pytest.mark.parametrize("profile", profiles.names())
def test_slices_keep_the_limits_of_the_api(profile: str, partitions: bool) -> None:
    """Devices per slice, counter sets per slice, attributes per device; every pool says how many slices it has."""
    found = published(profile, partitions=partitions).slices
    pools = Counter(each.spec.driver for each in found)
    for each in found:
        counted = any(device.consumes_counters for device in each.spec.devices)
        assert len(each.spec.devices) <= (64 if counted else 128)
        assert len(each.spec.shared_counters) <= 8
        assert each.spec.pool.resource_slice_count == pools[each.spec.driver]
        assert not (each.spec.devices and each.spec.shared_counters)
        for device in each.spec.devices:
            assert len(device.attributes) + len(device.capacity) <= 32


def test_a_gpu_has_the_names_of_nvidias_driver() -> None:
    """Attributes and capacity of an H100 as that driver publishes them, and a mark that it is simulated."""
    gpu = devices(published("dgx-h100").slices, "gpu.nvidia.com")["gpu-0"]
    texts = {name: value.string or value.version for name, value in gpu.attributes.items()}
    assert texts["productName"] == "NVIDIA H100 80GB HBM3"
    assert texts["cudaComputeCapability"] == "9.0.0"
    assert texts["driverVersion"] == "550.90.7"
    assert texts["resource.kubernetes.io/pcieRoot"] == "pci0000:15"
    assert gpu.capacity["memory"].value == "81559Mi"
    assert gpu.attributes["draht.dev/simulated"].bool_ is True


def test_a_gpu_and_its_partitions_never_exceed_the_counters_they_share() -> None:
    """The whole GPU takes every counter whole; no placement takes more than there is."""
    slices = published("dgx-h100", partitions=True).slices
    sets = {each.name: each.counters for part in slices for each in part.spec.shared_counters}
    found = devices(slices, "gpu.nvidia.com")
    assert len(found) == 8 * 26
    for device in found.values():
        (taken,) = device.consumes_counters
        available = sets[taken.counter_set]
        for name, counter in taken.counters.items():
            assert Quantity(str(counter.value)) <= Quantity(str(available[name].value))
        if device.attributes["type"].string == "gpu":
            assert taken.counters == available


def test_partitions_that_exist_are_devices_and_their_gpu_is_none() -> None:
    """A GPU in MIG mode can't be given as a whole; its instances have memory slices of their own."""
    text = files("draht.hardware.profiles").joinpath("dgx-a100-80.yaml").read_text()
    instances = "mig: [{profile: 3g.40gb, start: 4}, {profile: 1g.10gb, start: 0}]"
    text = text.replace("model: a100-sxm4-80}", f"model: a100-sxm4-80, {instances}}}", 1)
    inventory = SimulatedProvider(profiles.parse(text.encode(), source="test")).inventory()
    found = devices(publish(inventory, node_name="n", partitions=True).slices, "gpu.nvidia.com")
    assert [name for name in found if "gpu-0" in name] == ["gpu-0-mig-3g40gb-9-4", "gpu-0-mig-1g10gb-19-0"]
    assert {f"memorySlice{number}" for number in range(4, 8)} <= set(found["gpu-0-mig-3g40gb-9-4"].capacity)
    assert "gpu-1" in found


def test_a_shared_gpu_gives_memory_in_steps() -> None:
    """Several claims may take parts of the memory; who asks for none gets all of it."""
    gpu = devices(published("l4-x4", shares=True).slices, "gpu.nvidia.com")["gpu-0"]
    policy = gpu.capacity["memory"].request_policy
    assert gpu.allow_multiple_allocations is True
    assert policy is not None
    assert policy.default == gpu.capacity["memory"].value
