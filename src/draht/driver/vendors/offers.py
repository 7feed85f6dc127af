"""What a machine's inventory offers, driver by driver: the devices, what they share, and which hardware each one is.

Owns the grouping: which devices of an inventory belong to which driver, which of them are published (a GPU or its
partitions), what stays together in one slice, and the way back from a published name to the inventory. What a vendor's
device looks like is in `draht.driver.vendors.nvidia`, `draht.driver.vendors.amd` and `draht.driver.vendors.network`;
how an offer becomes ResourceSlices is in `draht.driver.slices`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from draht.api.resource import CapacityRequestPolicy, CapacityRequestPolicyRange, CounterSet, DeviceCapacity
from draht.api.resource import Device as WireDevice
from draht.driver.framework import Offer, Offered, Pool
from draht.driver.vendors import amd, network, nvidia
from draht.hardware.inventory import Device, Inventory

__all__ = ["DRIVERS", "MachineOffer", "offer"]

DRIVERS: Final = (nvidia.DRIVER, amd.DRIVER, network.DRIVER)
"""The drivers whose devices an inventory can have, in the order in which they are published."""

_OTHER_USERS: Final = frozenset({"nouveau", "pci-stub", "vfio-pci", "xen-pciback"})
"""Kernel drivers under which a GPU isn't there for containers."""

_Entry = tuple[WireDevice, Device]


@dataclass(frozen=True, slots=True)
class MachineOffer:
    """What one driver offers on a machine.

    Attributes:
        offer: One pool, which has the node's name; no pool if the machine has nothing for the driver.
        devices: Name of a published device → the device of the inventory, or the partition that would be created.
    """

    offer: Offer
    devices: Mapping[str, Device]


def offer(
    inventory: Inventory,
    driver: str,
    *,
    partitions: bool = False,
    shares: bool = False,
    without: Collection[str] = (),
    paths: Callable[[Device], tuple[str, ...]] | None = None,
) -> MachineOffer:
    """What a driver offers on a machine.

    Args:
        inventory: The machine.
        driver: One of `DRIVERS`.
        partitions: Offer every MIG placement of a GPU that has no instances yet, beside the whole GPU; both consume the
            counters of the GPU (KEP-4815).
        shares: Let several claims share a GPU, each with an amount of its memory (KEP-5075).
        without: Ids of devices that somebody else gives away; neither they nor their instances are offered.
        paths: The host paths without which a device can't be prepared.

    Raises:
        KeyError: No such driver.
    """
    if driver not in DRIVERS:
        raise KeyError(driver)
    groups: list[list[_Entry]] = []
    counter_sets: list[CounterSet] = []
    for device in inventory.devices:
        if device.id in without or device.attributes.get("driver") in _OTHER_USERS:
            continue
        if driver == nvidia.DRIVER and device.kind == "gpu" and device.vendor == "nvidia":
            group, sets = _nvidia(device, inventory, partitions=partitions, shares=shares)
            group = [entry for entry in group if entry[1].id not in without]
            counter_sets += sets
        elif driver == amd.DRIVER and device.kind == "gpu" and device.vendor == "amd":
            group = [(amd.gpu(device, inventory), device)]
        elif driver == network.DRIVER and device.kind in {"nic", "vf"}:
            group = [(network.nic(device, inventory), device)]
        else:
            continue
        if group:
            groups.append(group)
    if not groups:
        return MachineOffer(Offer(), {})
    pool = Pool(
        groups=tuple(
            tuple(
                Offered(device=wire, units=device.units, paths=paths(device) if paths else ()) for wire, device in group
            )
            for group in groups
        ),
        counter_sets=tuple(counter_sets),
    )
    return MachineOffer(Offer(pools=(pool,)), {wire.name: device for group in groups for wire, device in group})


def _nvidia(
    device: Device, inventory: Inventory, *, partitions: bool, shares: bool
) -> tuple[list[_Entry], list[CounterSet]]:
    whole = nvidia.gpu(device, inventory)
    instances = inventory.instances(device)
    if instances:
        # A GPU in MIG mode can't be given as a whole; its instances are the devices.
        return [(nvidia.instance(each, device, inventory), each) for each in instances], []
    possible = list(nvidia.placements(device)) if partitions else []
    if possible:
        group = [(_consuming(nvidia.instance(each, device, inventory), each, device), each) for each in possible]
        return [*group, (_consuming(whole, device, None), device)], [nvidia.counter_set(device)]
    return [(_shared(whole) if shares else whole, device)], []


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
