"""The ResourceSlices of a machine: its inventory in the words of Kubernetes.

Owns pools, slice names and the split into slices; what a vendor's device looks like is in `draht.driver.nvidia`,
`draht.driver.amd` and `draht.driver.network`. `publish` also remembers which device of the inventory each published
device is, because an allocation names the published one and a container gets the real one.

It doesn't talk to a server: the node agent writes what this makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from draht.api.meta import ObjectMeta
from draht.api.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    CounterSet,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from draht.api.resource import Device as WireDevice
from draht.driver import amd, network, nvidia
from draht.hardware.inventory import Device, Inventory

__all__ = ["Published", "publish"]

PLAIN_LIMIT: Final = 128
"""Devices per slice (``ResourceSliceMaxDevices``)."""
ADVANCED_LIMIT: Final = 64
"""Devices per slice once one of them has counters, taints or list attributes."""
COUNTER_SETS: Final = 8
"""Counter sets per slice (``ResourceSliceMaxCounterSets``)."""


@dataclass(frozen=True, slots=True)
class Published:
    """What a machine offers.

    Args:
        slices: The ResourceSlices, one pool per driver; the pool has the node's name.
        devices: (driver, device name) → the device of the inventory, or the partition that would be created.
    """

    slices: tuple[ResourceSlice, ...]
    devices: Mapping[tuple[str, str], Device]


def publish(
    inventory: Inventory, *, node_name: str, partitions: bool = False, shares: bool = False, generation: int = 1
) -> Published:
    """The slices of a machine.

    Args:
        inventory: The machine.
        node_name: The node that has it.
        partitions: Offer every MIG placement of a GPU that has no instances yet, beside the whole GPU; both consume the
            counters of the GPU (KEP-4815).
        shares: Let several claims share a GPU, each with an amount of its memory (KEP-5075).
        generation: Generation of the pools.
    """
    devices: dict[tuple[str, str], Device] = {}
    slices: list[ResourceSlice] = []
    for driver, groups, counter_sets in _pools(inventory, devices, partitions=partitions, shares=shares):
        parts: list[tuple[Sequence[WireDevice], Sequence[CounterSet]]] = [
            ((), counter_sets[at : at + COUNTER_SETS]) for at in range(0, len(counter_sets), COUNTER_SETS)
        ]
        parts += [(part, ()) for part in _split(groups)]
        for index, (part, sets) in enumerate(parts):
            slices.append(
                ResourceSlice(
                    metadata=ObjectMeta(name=f"{index:05x}-{driver}-{node_name}"),
                    spec=ResourceSliceSpec(
                        driver=driver,
                        pool=ResourcePool(name=node_name, generation=generation, resource_slice_count=len(parts)),
                        node_name=node_name,
                        devices=tuple(part),
                        shared_counters=tuple(sets),
                    ),
                )
            )
    return Published(tuple(slices), devices)


def _pools(
    inventory: Inventory, devices: dict[tuple[str, str], Device], *, partitions: bool, shares: bool
) -> Iterator[tuple[str, list[list[WireDevice]], list[CounterSet]]]:
    """For each driver that has something here: groups of devices that stay together, and counter sets."""
    groups: list[list[WireDevice]] = []
    counter_sets: list[CounterSet] = []
    for device in inventory.gpus():
        if device.vendor != "nvidia":
            continue
        whole = nvidia.gpu(device, inventory)
        instances = inventory.instances(device)
        possible = list(nvidia.placements(device)) if partitions and not instances else []
        if instances:
            # A GPU in MIG mode can't be given as a whole; its instances are the devices.
            group = [nvidia.instance(each, device, inventory) for each in instances]
            known = list(instances)
        elif possible:
            counter_sets.append(nvidia.counter_set(device))
            group = [_consuming(nvidia.instance(each, device, inventory), each, device) for each in possible]
            group.append(_consuming(whole, device, None))
            known = [*possible, device]
        else:
            group, known = [_shared(whole) if shares else whole], [device]
        groups.append(group)
        devices.update({(nvidia.DRIVER, wire.name): each for wire, each in zip(group, known, strict=True)})
    if groups:
        yield nvidia.DRIVER, groups, counter_sets
    groups = []
    for device in inventory.gpus():
        if device.vendor == "amd":
            groups.append([amd.gpu(device, inventory)])
            devices[amd.DRIVER, groups[-1][0].name] = device
    if groups:
        yield amd.DRIVER, groups, []
    groups = []
    for device in inventory.devices:
        if device.kind in {"nic", "vf"}:
            groups.append([network.nic(device, inventory)])
            devices[network.DRIVER, groups[-1][0].name] = device
    if groups:
        yield network.DRIVER, groups, []


def _consuming(wire: WireDevice, device: Device, parent: Device | None) -> WireDevice:
    return msgspec.structs.replace(wire, consumes_counters=(nvidia.consumption(device, parent),))


def _shared(wire: WireDevice) -> WireDevice:
    """The GPU with memory that several claims may take parts of, in steps of 1 Mi; who asks for none gets all."""
    memory = wire.capacity.get("memory")
    if memory is None:
        return wire
    least = "1Mi"
    policy = CapacityRequestPolicy(
        default=memory.value, valid_range=CapacityRequestPolicyRange(min=least, step=least, max=memory.value)
    )
    capacity = {**wire.capacity, "memory": DeviceCapacity(value=memory.value, request_policy=policy)}
    return msgspec.structs.replace(wire, capacity=capacity, allow_multiple_allocations=True)


def _split(groups: list[list[WireDevice]]) -> Iterator[list[WireDevice]]:
    """Slices of whole groups: with counters one GPU per slice, otherwise as many devices as a slice holds."""
    part: list[WireDevice] = []
    for group in groups:
        advanced = any(device.consumes_counters for device in group)
        limit = ADVANCED_LIMIT if advanced else PLAIN_LIMIT
        if part and (advanced or len(part) + len(group) > limit):
            yield part
            part = []
        part += group
    if part:
        yield part
