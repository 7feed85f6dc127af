"""NVIDIA GPUs as devices of a ResourceSlice, with the names that NVIDIA's own DRA driver uses.

Owns device names, attributes, capacities and counters of ``gpu.nvidia.com``, so that a DeviceClass, a claim or a CEL
expression written for that driver means the same here. Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.5.0-dev
(``cmd/gpu-kubelet-plugin``), NVIDIA MIG User Guide for placements.

Partitions are those that the driver creates on demand: each placement is a device that consumes counters of its GPU,
and the whole GPU is a device that consumes all of them. Instances that exist already are devices of their own.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from draht.api.resource import Counter, CounterSet, DeviceAttribute, DeviceCapacity, DeviceCounterConsumption
from draht.api.resource import Device as WireDevice
from draht.hardware import mig, profiles
from draht.hardware.inventory import Device, Inventory

__all__ = ["DRIVER", "SIMULATED", "counter_set", "device_name", "gpu", "instance", "mig_table", "placements", "text"]

DRIVER: Final = "gpu.nvidia.com"
SIMULATED: Final = "draht.dev/simulated"
"""Attribute of devices that stand for a machine profile."""
_NODE: Final = re.compile(r"/dev/nvidia([0-9]{1,6})$")
_LONGEST_NAME: Final = 63
_LONGEST_VALUE: Final = 64
"""Bytes of a string attribute (``DeviceAttributeMaxValueLength``)."""


def device_name(device: Device, parent: Device | None = None) -> str:
    """``gpu-0``, or ``gpu-0-mig-1g10gb-19-3`` with the profile's id and the first memory slice.

    A real machine without a driver library doesn't say which profile an instance has: its name ends with its UUID.
    """
    if device.kind != "mig":
        return f"gpu-{_minor(device)}"[:_LONGEST_NAME].strip("-")
    start = f"gpu-{_minor(parent or device)}-mig"
    if "profile" not in device.attributes:
        return f"{start}-{_plain(device.uuid or device.id)}"[:_LONGEST_NAME].strip("-")
    profile = str(device.attributes["profile"])
    known = next((entry for table in mig.TABLES.values() for entry in table if entry.name == profile), None)
    return f"{start}-{_plain(profile.replace('.', ''))}-{known.id if known else 0}-{device.attributes['placement']}"


def gpu(device: Device, inventory: Inventory) -> WireDevice:
    """A whole GPU, without counters."""
    table = mig.TABLES.get(mig_table(device), ())
    return WireDevice(
        name=device_name(device),
        attributes={"type": text("gpu"), **_identity(device), **_common(device, inventory)},
        capacity=_capacity(device.memory_bytes, table[-1] if table else None),
    )


def instance(device: Device, parent: Device, inventory: Inventory) -> WireDevice:
    """A MIG instance: one that exists, or with ``uuid`` None a placement that would be created."""
    name = device.attributes.get("profile")
    profile = mig.profile(mig_table(parent), str(name))
    attributes = {
        "type": text("mig"),
        **_identity(device),
        "parentUUID": text(parent.uuid or parent.id),
        **({} if name is None else {"profile": text(str(name))}),
        **_common(parent, inventory),
    }
    capacity = _capacity(device.memory_bytes, profile)
    if device.uuid and profile:
        start = int(device.attributes["placement"])
        slices = range(start, start + profile.memory_slices)
        capacity |= {f"memorySlice{slice_}": DeviceCapacity(value="1") for slice_ in slices}
    return WireDevice(name=device_name(device, parent), attributes=attributes, capacity=capacity)


def placements(device: Device) -> Iterator[Device]:
    """Every instance that could be created on a GPU, the smallest profiles first; none where its table isn't known."""
    for entry in mig.TABLES.get(mig_table(device), ()):
        for start in entry.starts:
            yield Device(
                id=f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{device.id}/{entry.name}/{start}')}",
                kind="mig",
                index=device.index,
                vendor=device.vendor,
                product=f"{device.product} MIG {entry.name}",
                architecture=device.architecture,
                compute_capability=device.compute_capability,
                pci_address=device.pci_address,
                pcie_root=device.pcie_root,
                numa_node=device.numa_node,
                memory_bytes=None if entry.memory_mib is None else entry.memory_mib << 20,
                parent=device.id,
                units=mig.units(device.id, start, entry.memory_slices),
                device_nodes=device.device_nodes[:1],
                simulated=device.simulated,
                attributes={"profile": entry.name, "placement": start, **_minor_attribute(device)},
            )


def counter_set(device: Device) -> CounterSet:
    """What the partitions of a GPU share: its memory, its multiprocessors, and each memory slice once."""
    return CounterSet(name=f"{device_name(device)}-counter-set", counters=_counters(device, 0, mig.MEMORY_SLICES))


def consumption(device: Device, parent: Device | None = None) -> DeviceCounterConsumption:
    """What a placement takes from the counters of its GPU, or what the whole GPU takes: everything."""
    owner = parent or device
    name = f"{device_name(owner)}-counter-set"
    available = _counters(owner, 0, mig.MEMORY_SLICES)
    if parent is None:
        return DeviceCounterConsumption(counter_set=name, counters=available)
    entry = mig.profile(mig_table(owner), str(device.attributes["profile"]))
    assert entry is not None, "a placement comes from its table"
    start = int(device.attributes["placement"])
    taken = {
        **_amounts(None if entry.memory_mib is None else entry.memory_mib << 20, entry),
        **_slices(start, entry.memory_slices),
    }
    counters = {counter: Counter(value=amount) for counter, amount in taken.items() if counter in available}
    return DeviceCounterConsumption(counter_set=name, counters=counters)


def _counters(device: Device, start: int, size: int) -> Mapping[str, Counter]:
    """What a whole GPU has to share; the profile that takes all of it is the last one of its table."""
    table = mig.TABLES.get(mig_table(device), ())
    amounts = {**_amounts(device.memory_bytes, table[-1] if table else None), **_slices(start, size)}
    return {counter: Counter(value=amount) for counter, amount in amounts.items()}


def _amounts(memory_bytes: int | None, profile: mig.MigProfile | None) -> dict[str, str]:
    """Counter → amount, without the memory slices."""
    return {_dashed(name): str(capacity.value) for name, capacity in _capacity(memory_bytes, profile).items()}


def _slices(start: int, size: int) -> dict[str, str]:
    return {f"memory-slice-{slice_}": "1" for slice_ in range(start, start + size)}


def _dashed(name: str) -> str:
    """The name of a capacity as one of a counter: ``copyEngines`` → ``copy-engines``."""
    return re.sub("([A-Z])", lambda found: f"-{found[1].lower()}", name)


def _capacity(memory_bytes: int | None, profile: mig.MigProfile | None) -> dict[str, DeviceCapacity]:
    capacity = {}
    if memory_bytes is not None:
        capacity["memory"] = DeviceCapacity(value=f"{memory_bytes >> 20}Mi")
    if profile is not None:
        numbers = {
            "multiprocessors": profile.multiprocessors,
            "copyEngines": profile.engines.copy,
            "decoders": profile.engines.decoders,
            "encoders": profile.engines.encoders,
            "jpegEngines": profile.engines.jpeg,
            "ofaEngines": profile.engines.ofa,
        }
        capacity |= {name: DeviceCapacity(value=str(number)) for name, number in numbers.items() if number is not None}
    return capacity


def _identity(device: Device) -> dict[str, DeviceAttribute]:
    return {"uuid": text(device.uuid)} if device.uuid else {}


def _common(device: Device, inventory: Inventory) -> dict[str, DeviceAttribute]:
    """What a GPU and its partitions have in common."""
    known = {
        "productName": device.product,
        "brand": "Nvidia",
        "architecture": device.architecture,
        "resource.kubernetes.io/pciBusID": device.pci_address,
        "resource.kubernetes.io/pcieRoot": device.pcie_root,
    }
    attributes = {name: text(value) for name, value in known.items() if value}
    versions = {
        "cudaComputeCapability": device.compute_capability,
        "driverVersion": inventory.driver_version,
        "cudaDriverVersion": inventory.cuda_version,
    }
    padded = {name: _padded(value) for name, value in versions.items() if value}
    attributes |= {name: DeviceAttribute(version=value) for name, value in padded.items() if value}
    if device.numa_node is not None:
        attributes["resource.kubernetes.io/numaNode"] = DeviceAttribute(int_=device.numa_node)
    if device.simulated:
        attributes[SIMULATED] = DeviceAttribute(bool_=True)
    return attributes


def _padded(version: str) -> str:
    """Three numbers without leading zeros: ``9.0`` → ``9.0.0``, ``580.105.08`` → ``580.105.8``; else empty."""
    numbers = version.split(".")[:3]
    if not all(re.fullmatch("[0-9]{1,9}", number) for number in numbers):
        return ""
    return ".".join(str(int(number)) for number in [*numbers, "0", "0"][:3])


def text(value: str) -> DeviceAttribute:
    """A string attribute, cut to what an API server takes."""
    return DeviceAttribute(string=value.encode()[:_LONGEST_VALUE].decode(errors="ignore"))


def _plain(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower())


def mig_table(device: Device) -> str:
    """The MIG table of a model; empty where the catalogue doesn't know the model or it can't be partitioned."""
    return _tables().get(device.product, "") if device.mig_capable else ""


@cache
def _tables() -> Mapping[str, str]:
    return {model.product: model.mig for model in profiles.catalogue().values() if model.mig}


def _minor(device: Device) -> object:
    """The minor number, else the index, else what tells the device apart from all others."""
    if "minor" in device.attributes:
        return device.attributes["minor"]
    numbers = [found[1] for node in device.device_nodes if (found := _NODE.search(node))]
    if numbers:
        return numbers[0]
    return _plain(device.uuid or device.id) if device.index is None else device.index


def _minor_attribute(device: Device) -> dict[str, str | int | bool]:
    minor = device.attributes.get("minor")
    return {} if minor is None else {"minor": minor}
