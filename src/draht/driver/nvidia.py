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

__all__ = ["DRIVER", "counter_set", "device_name", "gpu", "instance", "placements"]

DRIVER: Final = "gpu.nvidia.com"
SIMULATED: Final = "draht.dev/simulated"
"""Attribute of devices that stand for a machine profile."""


def device_name(device: Device) -> str:
    """``gpu-0``, or ``gpu-0-mig-1g10gb-19-3`` with the profile's id and the first memory slice."""
    if device.kind != "mig":
        return f"gpu-{_minor(device)}"
    profile, start = str(device.attributes["profile"]), device.attributes["placement"]
    known = next((entry for table in mig.TABLES.values() for entry in table if entry.name == profile), None)
    number = known.id if known else 0
    return f"gpu-{_minor(device)}-mig-{re.sub('[^a-z0-9]+', '-', profile.replace('.', ''))}-{number}-{start}"


def gpu(device: Device, inventory: Inventory) -> WireDevice:
    """A whole GPU, without counters."""
    return WireDevice(
        name=device_name(device),
        attributes={"type": _text("gpu"), **_identity(device), **_common(device, inventory)},
        capacity=_capacity(device.memory_bytes, _whole(device)),
    )


def instance(device: Device, parent: Device, inventory: Inventory) -> WireDevice:
    """A MIG instance: one that exists, or with ``uuid`` None a placement that would be created."""
    profile = mig.profile(_table(parent), str(device.attributes["profile"]))
    attributes = {
        "type": _text("mig"),
        **_identity(device),
        "parentUUID": _text(parent.uuid or parent.id),
        "profile": _text(str(device.attributes["profile"])),
        **_common(parent, inventory),
    }
    capacity = _capacity(device.memory_bytes, profile.multiprocessors if profile else None)
    if device.uuid and profile:
        start = int(device.attributes["placement"])
        slices = range(start, start + profile.memory_slices)
        capacity |= {f"memorySlice{slice_}": DeviceCapacity(value="1") for slice_ in slices}
    return WireDevice(name=device_name(device), attributes=attributes, capacity=capacity)


def placements(device: Device) -> Iterator[Device]:
    """Every instance that could be created on a GPU, the smallest profiles first; none where its table isn't known."""
    for entry in mig.TABLES.get(_table(device), ()):
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
    if parent is None:
        return DeviceCounterConsumption(counter_set=name, counters=_counters(owner, 0, mig.MEMORY_SLICES))
    entry = mig.profile(_table(owner), str(device.attributes["profile"]))
    assert entry is not None, "a placement comes from its table"
    counters = dict(_counters(owner, int(device.attributes["placement"]), entry.memory_slices))
    for counter, amount in (
        ("memory", None if entry.memory_mib is None else f"{entry.memory_mib}Mi"),
        ("multiprocessors", None if entry.multiprocessors is None else str(entry.multiprocessors)),
        # One instance only may have the media extensions: they come with the single optical flow accelerator.
        ("ofa-engines", "1" if entry.name.endswith("+me") else None),
    ):
        counters.pop(counter, None)
        if amount is not None and counter in _counters(owner, 0, 0):
            counters[counter] = Counter(value=amount)
    return DeviceCounterConsumption(counter_set=name, counters=counters)


def _counters(device: Device, start: int, size: int) -> Mapping[str, Counter]:
    counters = {}
    if device.memory_bytes is not None:
        counters["memory"] = Counter(value=f"{device.memory_bytes >> 20}Mi")
    if (whole := _whole(device)) is not None:
        counters["multiprocessors"] = Counter(value=str(whole))
        counters["ofa-engines"] = Counter(value="1")
    counters |= {f"memory-slice-{slice_}": Counter(value="1") for slice_ in range(start, start + size)}
    return counters


def _capacity(memory_bytes: int | None, multiprocessors: int | None) -> dict[str, DeviceCapacity]:
    capacity = {}
    if memory_bytes is not None:
        capacity["memory"] = DeviceCapacity(value=f"{memory_bytes >> 20}Mi")
    if multiprocessors is not None:
        capacity["multiprocessors"] = DeviceCapacity(value=str(multiprocessors))
    return capacity


def _identity(device: Device) -> dict[str, DeviceAttribute]:
    return {"uuid": _text(device.uuid)} if device.uuid else {}


def _common(device: Device, inventory: Inventory) -> dict[str, DeviceAttribute]:
    """What a GPU and its partitions have in common."""
    known = {
        "productName": device.product,
        "brand": "Nvidia",
        "architecture": device.architecture,
        "resource.kubernetes.io/pciBusID": device.pci_address,
        "resource.kubernetes.io/pcieRoot": device.pcie_root,
    }
    attributes = {name: _text(value) for name, value in known.items() if value}
    versions = {
        "cudaComputeCapability": device.compute_capability,
        "driverVersion": inventory.driver_version,
        "cudaDriverVersion": inventory.cuda_version,
    }
    attributes |= {name: DeviceAttribute(version=_padded(value)) for name, value in versions.items() if value}
    if device.numa_node is not None:
        attributes["resource.kubernetes.io/numaNode"] = DeviceAttribute(int_=device.numa_node)
    if device.simulated:
        attributes[SIMULATED] = DeviceAttribute(bool_=True)
    return attributes


def _padded(version: str) -> str:
    """Three numbers without leading zeros: ``9.0`` → ``9.0.0``, ``580.105.08`` → ``580.105.8``."""
    numbers = [str(int(part)) for part in version.split(".")[:3]]
    return ".".join(numbers + ["0"] * (3 - len(numbers)))


def _text(value: str) -> DeviceAttribute:
    return DeviceAttribute(string=value)


def _table(device: Device) -> str:
    """The MIG table of a model; empty where the catalogue doesn't know the model or it can't be partitioned."""
    return _tables().get(device.product, "") if device.mig_capable else ""


@cache
def _tables() -> Mapping[str, str]:
    return {model.product: model.mig for model in profiles.catalogue().values() if model.mig}


def _whole(device: Device) -> int | None:
    """Multiprocessors of the whole GPU, where its partitions are known."""
    table = mig.TABLES.get(_table(device), ())
    return table[-1].multiprocessors if table else None


def _minor(device: Device) -> object:
    return device.attributes.get("minor", device.index or 0)


def _minor_attribute(device: Device) -> dict[str, str | int | bool]:
    minor = device.attributes.get("minor")
    return {} if minor is None else {"minor": minor}
