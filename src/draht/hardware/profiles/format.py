"""The fields of a machine profile and of the catalogue of models, as they stand in YAML.

Owns the shape only; `draht.hardware.profiles.check` says which values belong together and `docs/profiles.md` explains
the format to the person who writes one. Memory is in MiB because that is what ``nvidia-smi`` prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Literal

import msgspec

from draht.hardware.pci import sort_key
from draht.hardware.topology import CPU

__all__ = [
    "NUMA",
    "SLOT_KEYS",
    "SRIOV",
    "Driver",
    "Instance",
    "LinkSet",
    "Model",
    "PCIIds",
    "Place",
    "Profile",
    "Root",
    "Slot",
    "numbered",
    "places",
]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A misspelt key is an error, never silently ignored."""


class PCIIds(
    _Strict,
    frozen=True,
    rename={"class_": "class", "subsystem_vendor": "subsystemVendor", "subsystem_device": "subsystemDevice"},
):
    """Identification registers of a PCI function, hexadecimal with ``0x`` as sysfs prints them."""

    vendor: str
    device: str
    class_: str
    subsystem_vendor: str = ""
    subsystem_device: str = ""


class Model(_Strict, frozen=True):
    """A product: everything that is the same for each piece of it.

    Attributes:
        architecture: NVIDIA's name of the generation, or the ISA (``gfx942``) with AMD.
        uuid: How its UUID looks: ``nvidia`` ``GPU-`` and a UUID, ``amd`` ``GPU-`` and 16 hexadecimal digits.
        mig: Name of its table in `draht.hardware.mig`, empty if it can't be partitioned.
        rdma: The function has an RDMA device.
        link_layer: What the port speaks.
        gbps: Speed of the port in gigabits per second.
    """

    kind: Literal["gpu", "accelerator", "nic", "vf", "nvswitch"]
    vendor: str
    product: str
    pci: PCIIds
    architecture: str = ""
    compute_capability: str = ""
    memory_mib: int | None = msgspec.field(default=None, name="memoryMiB")
    uuid: Literal["nvidia", "amd", ""] = ""
    mig: str = ""
    rdma: bool = False
    link_layer: Literal["infiniband", "ethernet", ""] = ""
    gbps: int | None = None
    sources: tuple[str, ...] = ()


class NUMA(_Strict, frozen=True):
    """A NUMA node; see `draht.hardware.topology.NUMANode`."""

    id: int
    cpus: str = ""
    memory_mib: int | None = msgspec.field(default=None, name="memoryMiB")
    distances: tuple[int, ...] = ()


class Instance(_Strict, frozen=True):
    """A MIG instance that exists on a GPU: profile name and first memory slice."""

    profile: str
    start: int


class SRIOV(_Strict, frozen=True):
    """Virtual functions of a network function: how many it may have and which exist."""

    model: str
    total: int
    functions: tuple[str, ...] = ()


class Slot(_Strict, frozen=True):
    """A place in the PCIe tree: exactly one of the keys in `SLOT_KEYS` says what is there.

    Attributes:
        root_port: A port of the root complex.
        switch: The upstream port of a switch; its downstream ports are below it.
        downstream_port: A downstream port of a switch.
        bridge: A bridge whose role isn't stated.
        device: An endpoint, which has a ``model``.
        index: Number given by the vendor's tool; default: the position by PCI address among the GPUs of that vendor.
        minor: Number of the device node; default: the index.
        rdma: Name of the RDMA device.
        interface: Name of the network interface.
        mig: Instances the GPU is partitioned into.
    """

    root_port: str | None = None
    switch: str | None = None
    downstream_port: str | None = None
    bridge: str | None = None
    device: str | None = None
    below: tuple[Slot, ...] = ()
    model: str = ""
    index: int | None = None
    minor: int | None = None
    rdma: str = ""
    interface: str = ""
    mig: tuple[Instance, ...] = ()
    sriov: SRIOV | None = None


SLOT_KEYS = ("rootPort", "switch", "downstreamPort", "bridge", "device")
"""The keys of a slot of which exactly one is given."""


class Root(_Strict, frozen=True):
    """A PCIe root complex and what is below it."""

    root: str
    numa_node: int | None = None
    below: tuple[Slot, ...] = ()


class LinkSet(_Strict, frozen=True):
    """Equal links between GPUs: between the given pairs of indices, or between every two of them if none are given."""

    kind: Literal["nvlink", "xgmi"]
    count: int
    between: tuple[tuple[int, ...], ...] = ()
    version: str = ""
    via: Literal["nvswitch", ""] = ""


class Driver(_Strict, frozen=True):
    """Version of the GPU driver, and the CUDA version that it supports at most (``12.4``)."""

    version: str
    cuda: str = ""


class Profile(_Strict, frozen=True):
    """A machine as it is written down.

    Attributes:
        synthetic: Always true: a profile is a description, not a recording. It has to be said.
        sources: Where its facts come from, and which of them are assumptions.
        models: Products that the shipped catalogue doesn't have; an entry here wins over one there.
    """

    name: str
    description: str
    synthetic: bool
    sources: tuple[str, ...]
    cpu: CPU
    memory_mib: int = msgspec.field(name="memoryMiB")
    numa: tuple[NUMA, ...]
    pcie: tuple[Root, ...]
    driver: Driver | None = None
    models: Mapping[str, Model] = {}
    links: tuple[LinkSet, ...] = ()


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A slot with what stands above it.

    Attributes:
        slot: The slot.
        path: Where it is in the profile: ``("pcie", 0, "below", 1)``.
        root: The root it is below.
        above: Keys and addresses of the bridges above it, the root port first.
    """

    slot: Slot
    path: tuple[str | int, ...]
    root: Root
    above: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """Which of `SLOT_KEYS` it has, or empty: a slot that was checked has one."""
        return next((key for key in SLOT_KEYS if self._value(key) is not None), "")

    @property
    def keys(self) -> tuple[str, ...]:
        """All of `SLOT_KEYS` that it has; exactly one in a slot that was checked."""
        return tuple(key for key in SLOT_KEYS if self._value(key) is not None)

    @property
    def address(self) -> str:
        """PCI address of what is there."""
        return self._value(self.key) or ""

    def _value(self, key: str) -> str | None:
        slot = self.slot
        values = (slot.root_port, slot.switch, slot.downstream_port, slot.bridge, slot.device)
        return dict(zip(SLOT_KEYS, values, strict=True)).get(key)


def places(profile: Profile) -> Iterator[Place]:
    """Every slot of a profile, each before those below it."""
    for number, root in enumerate(profile.pcie):
        yield from _below(root, root.below, ("pcie", number), ())


def numbered(found: Iterable[Place]) -> list[tuple[int, Place]]:
    """The GPUs of one vendor, or its accelerators, by number: as given, else by PCI address among the free numbers."""
    ordered = sorted(found, key=lambda place: sort_key(place.address))
    taken = {place.slot.index for place in ordered if place.slot.index is not None}
    free = (number for number in count() if number not in taken)
    pairs = [(next(free) if place.slot.index is None else place.slot.index, place) for place in ordered]
    return sorted(pairs, key=lambda pair: pair[0])


def _below(
    root: Root, slots: tuple[Slot, ...], path: tuple[str | int, ...], above: tuple[tuple[str, str], ...]
) -> Iterator[Place]:
    for number, slot in enumerate(slots):
        place = Place(slot=slot, path=(*path, "below", number), root=root, above=above)
        yield place
        yield from _below(root, slot.below, place.path, (*above, (place.key, place.address)))
