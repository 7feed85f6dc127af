from __future__ import annotations

import pytest

from draht.driver.slices import publish
from draht.driver.vendors import offers
from draht.hardware import profiles
from draht.hardware.simulated import from_profile


@pytest.mark.parametrize("profile", profiles.names())
def test_slices_and_offer_name_the_same_devices(profile: str) -> None:
    """What is written to slices is what the drivers offer, in the same order, and leads to the same hardware."""
    inventory = from_profile(profile)
    published = publish(inventory, node_name="n", partitions=True)
    for driver in offers.DRIVERS:
        found = offers.offer(inventory, driver, partitions=True)
        names = [name for _, name in found.offer.devices()]
        assert names == [
            device.name for each in published.slices if each.spec.driver == driver for device in each.spec.devices
        ]
        assert dict(found.devices) == {name: published.devices[driver, name] for name in names}


@pytest.mark.parametrize("profile", profiles.names())
def test_an_offered_device_has_the_units_of_its_hardware(profile: str) -> None:
    """Two offered devices exclude each other exactly when the hardware does."""
    for driver in offers.DRIVERS:
        found = offers.offer(from_profile(profile), driver, partitions=True)
        for (_, name), offered in found.offer.devices().items():
            assert offered.units == found.devices[name].units != frozenset()


def test_a_gpu_that_somebody_else_gives_away_is_not_offered() -> None:
    """Neither the GPU nor its partitions; its counters go as well."""
    inventory = from_profile("dgx-h100")
    first = inventory.gpus()[0]
    found = offers.offer(inventory, "gpu.nvidia.com", partitions=True, without={first.id})
    assert len(found.devices) == 7 * 26
    assert not any(name.startswith("gpu-0") for name in found.devices)
    (pool,) = found.offer.pools
    assert len(pool.counter_sets) == 7


def test_a_machine_without_anything_for_a_driver_offers_no_pool() -> None:
    """An AMD machine has nothing for NVIDIA's driver."""
    assert offers.offer(from_profile("mi300x-x8"), "gpu.nvidia.com").offer.pools == ()


def test_an_unknown_driver_is_refused() -> None:
    """Also on a machine that has nothing."""
    with pytest.raises(KeyError):
        offers.offer(from_profile("t4-x1"), "gpu.example.com")


def test_paths_are_those_that_the_caller_knows() -> None:
    """Where nodes and libraries lie is not the inventory's to say."""
    found = offers.offer(from_profile("t4-x1"), "gpu.nvidia.com", paths=lambda device: (f"/nodes/{device.index}",))
    (offered,) = found.offer.devices().values()
    assert offered.paths == ("/nodes/0",)
