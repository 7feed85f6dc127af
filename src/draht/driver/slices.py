"""The ResourceSlices of a machine: its inventory in the words of Kubernetes.

Owns slice names and the split into slices; what a machine offers is in `draht.driver.offers`. `publish` also remembers
which device of the inventory each published device is, because an allocation names the published one and a container
gets the real one.

It doesn't talk to a server: the node agent writes what this makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from draht.api.meta import ObjectMeta
from draht.api.resource import CounterSet, ResourcePool, ResourceSlice, ResourceSliceSpec
from draht.api.resource import Device as WireDevice
from draht.driver import offers
from draht.driver.framework import Offered, Pool
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
    for driver in offers.DRIVERS:
        found = offers.offer(inventory, driver, partitions=partitions, shares=shares)
        devices |= {(driver, name): device for name, device in found.devices.items()}
        for pool in found.offer.pools:
            slices += _slices(driver, pool, node_name=node_name, generation=generation)
    return Published(tuple(slices), devices)


def _slices(driver: str, pool: Pool, *, node_name: str, generation: int) -> Iterator[ResourceSlice]:
    """The slices of one pool: counter sets first, because since Kubernetes 1.35 they go alone."""
    parts: list[tuple[Sequence[WireDevice], Sequence[CounterSet]]] = [
        ((), pool.counter_sets[at : at + COUNTER_SETS]) for at in range(0, len(pool.counter_sets), COUNTER_SETS)
    ]
    parts += [(part, ()) for part in _split(pool.groups)]
    for index, (part, sets) in enumerate(parts):
        yield ResourceSlice(
            metadata=ObjectMeta(name=f"{index:05x}-{driver}-{node_name}"),
            spec=ResourceSliceSpec(
                driver=driver,
                pool=ResourcePool(name=node_name, generation=generation, resource_slice_count=len(parts)),
                node_name=node_name,
                devices=tuple(part),
                shared_counters=tuple(sets),
            ),
        )


def _split(groups: Sequence[Sequence[Offered]]) -> Iterator[list[WireDevice]]:
    """Slices of whole groups: with counters one GPU per slice, otherwise as many devices as a slice holds."""
    part: list[WireDevice] = []
    for group in groups:
        advanced = any(offered.device.consumes_counters for offered in group)
        limit = ADVANCED_LIMIT if advanced else PLAIN_LIMIT
        if part and (advanced or len(part) + len(group) > limit):
            yield part
            part = []
        part += [offered.device for offered in group]
    if part:
        yield part
