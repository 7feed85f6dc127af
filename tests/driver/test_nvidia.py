from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from draht.api.quantity import Quantity
from draht.driver.vendors import nvidia, offers
from draht.hardware import mig, profiles
from draht.hardware.inventory import Device, Inventory
from draht.hardware.simulated import SimulatedProvider, from_profile

TABLES = {"dgx-a100-80": "a100-80", "dgx-h100": "h100-80", "hgx-h200": "h200-141", "hgx-b200": "b200-180"}


def with_instances(profile: str, slot: str, instances: str) -> Inventory:
    """A shipped profile with MIG instances on one of its GPUs."""
    text = files("draht.hardware.profiles").joinpath(f"{profile}.yaml").read_text()
    assert slot in text
    text = text.replace(slot, f"{slot}, mig: [{instances}]", 1)
    return SimulatedProvider(profiles.parse(text.encode(), source="test")).inventory()


def real(**fields: object) -> tuple[Device, Inventory]:
    """An NVIDIA GPU of a real machine, as little as is known of it."""
    gpu = Device(id="GPU-1", kind="gpu", vendor="nvidia", index=0, attributes={"minor": 3})
    return gpu, Inventory(machine="host", source="sysfs+cdi", devices=(gpu,), **fields)  # type: ignore[arg-type]  # few fields


def layouts(table: mig.Table, taken: frozenset[int], given: dict[str, int], first: int = 0) -> Iterator[dict[str, int]]:
    """Every set of instances that may exist at once, as profile → number."""
    yield given
    places = [(entry, start) for entry in table for start in entry.starts]
    for at in range(first, len(places)):
        entry, start = places[at]
        slices = frozenset(range(start, start + entry.memory_slices))
        if not slices & taken and given.get(entry.name, 0) < entry.most:
            below = {**given, entry.name: given.get(entry.name, 0) + 1}
            yield from layouts(table, taken | slices, below, at + 1)


@pytest.mark.parametrize(("profile", "table"), TABLES.items())
def test_every_layout_that_may_exist_fits_into_the_counters(profile: str, table: str) -> None:
    """No engine runs out before the memory slices do, however a GPU is cut."""
    gpu = from_profile(profile).gpus()[0]
    available = {name: Quantity(str(counter.value)) for name, counter in nvidia.counter_set(gpu).counters.items()}
    taken = {str(each.attributes["profile"]): nvidia.consumption(each, gpu).counters for each in nvidia.placements(gpu)}
    for layout in {tuple(sorted(each.items())) for each in layouts(mig.TABLES[table], frozenset(), {})}:
        for counter, whole in available.items():
            if counter.startswith("memory-slice-"):
                continue
            used = sum(
                (
                    Quantity(str(taken[name][counter].value)) * number
                    for name, number in layout
                    if counter in taken[name]
                ),
                start=Quantity("0"),
            )
            assert used <= whole, (layout, counter)


def test_one_instance_only_has_the_media_extensions() -> None:
    """They come with the single optical flow accelerator."""
    gpu = from_profile("dgx-h100").gpus()[0]
    assert nvidia.counter_set(gpu).counters["ofa-engines"].value == "1"
    for placement in nvidia.placements(gpu):
        taken = nvidia.consumption(placement, gpu).counters["ofa-engines"].value
        assert taken == ("1" if placement.attributes["profile"] in {"1g.10gb+me", "7g.80gb"} else "0")


def test_engines_are_capacity_where_the_table_knows_them() -> None:
    """Of a whole H100, of an instance, and not of a GPU that can't be cut."""
    gpu = from_profile("dgx-h100").gpus()[0]
    whole = nvidia.gpu(gpu, from_profile("dgx-h100")).capacity
    assert {name: whole[name].value for name in whole} == {
        "memory": "81559Mi",
        "multiprocessors": "132",
        "copyEngines": "8",
        "decoders": "7",
        "encoders": "0",
        "jpegEngines": "7",
        "ofaEngines": "1",
    }
    l4 = from_profile("l4-x4")
    assert set(nvidia.gpu(l4.gpus()[0], l4).capacity) == {"memory"}


def test_an_instance_is_named_after_the_minor_number_of_its_gpu() -> None:
    """Not after the index, which another tool counts in another order."""
    inventory = with_instances("mixed-x6", "model: a100-pcie-80, minor: 0", "{profile: 1g.10gb, start: 3}")
    found = offers.offer(inventory, nvidia.DRIVER)
    (name,) = (name for name in found.devices if "mig" in name)
    assert name == "gpu-0-mig-1g10gb-19-3"
    assert "gpu-0" not in found.devices


def test_an_instance_whose_profile_isnt_known_is_published_under_its_uuid() -> None:
    """A CDI spec tells the UUID of an instance and its GPU, and no more."""
    gpu, inventory = real()
    instance = Device(
        id="MIG-0aB1", uuid="MIG-0aB1", kind="mig", vendor="nvidia", parent=gpu.id, units=frozenset({"GPU-1#MIG-0aB1"})
    )
    inventory = Inventory(machine="host", source="cdi", devices=(gpu, instance))
    (offered,) = offers.offer(inventory, nvidia.DRIVER).offer.devices().values()
    assert offered.device.name == "gpu-3-mig-mig-0ab1"
    assert "profile" not in offered.device.attributes
    assert offered.device.attributes["parentUUID"].string == "GPU-1"


def test_what_isnt_known_is_left_out() -> None:
    """No empty strings, no made-up numbers; a version that isn't one doesn't stop the others."""
    gpu, inventory = real(driver_version="570.133.20", cuda_version="unknown")
    attributes = nvidia.gpu(gpu, inventory).attributes
    assert set(attributes) == {"type", "brand", "driverVersion"}
    assert attributes["driverVersion"].version == "570.133.20"


def test_long_texts_are_cut_to_what_an_api_server_takes() -> None:
    """At 64 bytes, between characters."""
    gpu = Device(id="x", kind="gpu", vendor="nvidia", product="é" * 40)
    inventory = Inventory(machine="host", source="cdi", devices=(gpu,))
    text = nvidia.gpu(gpu, inventory).attributes["productName"].string
    assert text == "é" * 32


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"attributes": {"minor": 3}, "index": 0}, "gpu-3"),
        ({"index": 1, "device_nodes": ("/run/nvidia/driver/dev/nvidia5", "/dev/dri/card0")}, "gpu-5"),
        ({"index": 1}, "gpu-1"),
        ({"uuid": "GPU-0aB1"}, "gpu-gpu-0ab1"),
        ({}, "gpu-vendor-com-gpu-" + "x" * 44),
    ],
)
def test_a_gpu_has_a_name_of_its_own_however_little_is_known(fields: dict[str, Any], name: str) -> None:
    """Two GPUs of one name would make the whole pool unusable."""
    gpu = Device(id="vendor.com/gpu=" + "X" * 80, kind="gpu", vendor="nvidia", **fields)
    assert nvidia.device_name(gpu) == name


@pytest.mark.parametrize(("kernel", "there"), [("nvidia", True), ("vfio-pci", False), ("nouveau", False)])
def test_a_gpu_that_the_kernel_gave_to_another_driver_isnt_offered(kernel: str, there: bool) -> None:
    """One that is passed through to a virtual machine is no GPU for containers."""
    gpu = Device(id="x", kind="gpu", vendor="nvidia", index=0, attributes={"driver": kernel})
    inventory = Inventory(machine="host", source="sysfs", devices=(gpu,))
    assert bool(offers.offer(inventory, nvidia.DRIVER).devices) == there
