"""The ResourceSlices of what a driver offers: pools, names, and which device goes into which slice.

Owns the split into slices and how they are named; what a machine offers is in `draht.driver.vendors.offers`, which
devices the API's rules leave out in `draht.driver.pool_check`. `publish` also remembers which device of the inventory
each published device is, because an allocation names the published one and a container gets the real one.

It doesn't talk to a server: `draht.node.slices.publisher` writes what this makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from draht.api.meta import ObjectMeta
from draht.api.resource import CounterSet, ResourcePool, ResourceSlice, ResourceSliceSpec
from draht.api.resource import Device as WireDevice
from draht.driver.framework import Offered, Pool
from draht.driver.vendors import offers
from draht.hardware.inventory import Device, Inventory
from draht.validation.limits import COUNTER_SETS, DEVICES, DEVICES_WITH_ADVANCED_FEATURES

__all__ = ["Published", "is_local", "name_prefix", "pool_name", "pool_slices", "publish"]

_Part = tuple[Sequence[WireDevice], Sequence[CounterSet]]

_INDEX_DIGITS: Final = 5
"""Hexadecimal digits, so that slices sort by name as they are numbered; since 1.36 their order decides first fit."""


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
    for driver in offers.DRIVERS:
        found = offers.offer(inventory, driver, partitions=partitions, shares=shares)
        devices |= {(driver, name): device for name, device in found.devices.items()}
        for pool in found.offer.pools:
            specs = pool_slices(driver, pool, node_name=node_name, generation=generation, taintable=False)
            slices += [
                ResourceSlice(metadata=ObjectMeta(name=name_prefix(index, driver) + node_name), spec=spec)
                for index, spec in enumerate(specs)
            ]
    return Published(tuple(slices), devices)


def name_prefix(index: int, driver: str) -> str:
    """How the name of a pool's slice begins; the owner's name follows. Source: Kubernetes 1.36."""
    return f"{index:0{_INDEX_DIGITS}x}-{driver}-"


def pool_name(pool: Pool, node_name: str) -> str:
    """The name a pool is published under."""
    return pool.name or node_name


def is_local(pool: Pool) -> bool:
    """Whether the pool's devices can be used from the node only that offers them."""
    return not pool.all_nodes and pool.node_selector is None


def pool_slices(
    driver: str, pool: Pool, *, node_name: str, generation: int = 1, taintable: bool = True, combined: bool = False
) -> tuple[ResourceSliceSpec, ...]:
    """The slices of one pool, in their order; a pool without anything is one empty slice.

    Args:
        driver: Name of the driver.
        pool: The pool.
        node_name: The node that offers it.
        generation: Generation of the pool.
        taintable: Fill slices only so far that a taint can be put on any device later: 64 devices instead of 128. With
            fuller slices the first taint would move devices between slices, and nobody could allocate meanwhile.
        combined: Put counter sets into the slices whose devices consume them, as Kubernetes before 1.35 needs it;
            since then they are in slices of their own, which come first.
    """
    parts = list(_combined(pool, taintable) if combined else _apart(pool, taintable)) or [((), ())]
    return tuple(
        ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool_name(pool, node_name), generation=generation, resource_slice_count=len(parts)),
            node_name=node_name if is_local(pool) else None,
            all_nodes=True if pool.all_nodes else None,
            node_selector=pool.node_selector,
            devices=tuple(devices),
            shared_counters=tuple(sets),
        )
        for devices, sets in parts
    )


def _apart(pool: Pool, taintable: bool) -> Iterator[_Part]:
    sets = pool.counter_sets
    for at in range(0, len(sets), COUNTER_SETS):
        yield (), sets[at : at + COUNTER_SETS]
    for devices in _split(pool.groups, taintable):
        yield devices, ()


def _combined(pool: Pool, taintable: bool) -> Iterator[_Part]:
    for devices in _split(pool.groups, taintable):
        consumed = {each.counter_set for device in devices for each in device.consumes_counters}
        yield devices, [each for each in pool.counter_sets if each.name in consumed]


def _split(groups: Sequence[Sequence[Offered]], taintable: bool) -> Iterator[list[WireDevice]]:
    """Slices of whole groups: those with counters one by one, of the others as many devices as a slice holds."""
    part: list[WireDevice] = []
    room = DEVICES
    for group in groups:
        devices = [offered.device for offered in group]
        counted = any(device.consumes_counters for device in devices)
        limit = DEVICES_WITH_ADVANCED_FEATURES if taintable or any(map(_is_advanced, devices)) else DEVICES
        if part and (counted or len(part) + len(devices) > min(limit, room)):
            yield part
            part, room = [], DEVICES
        # A group that no slice can hold is taken apart: counters reach across the slices of a pool.
        while len(devices) > limit:
            yield devices[:limit]
            devices = devices[limit:]
        part += devices
        room = 0 if counted else min(limit, room)
    if part:
        yield part


def _is_advanced(device: WireDevice) -> bool:
    """Whether a slice with this device holds fewer (``ResourceSliceMaxDevicesWithTaintsOrConsumesCounters``)."""
    lists = any(each.ints or each.bools or each.strings or each.versions for each in device.attributes.values())
    return bool(device.taints or device.consumes_counters or lists)
