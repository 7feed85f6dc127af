"""The PCIe tree, NUMA nodes and GPU links of a machine, and how far apart two devices are in it.

Distances are the ones of ``nvidia-smi topo -m``, so that a person can compare them with that tool. They are computed
from the tree alone and therefore are the same for a real and a simulated machine. Where the tree isn't known (virtual
machines often hide it) root and NUMA node decide, and what isn't known counts as far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

__all__ = ["CPU", "DISTANCES", "Bridge", "Link", "NUMANode", "RootComplex", "distance", "path", "rank"]

DISTANCES = {
    "X": "the same device",
    "NV#": "a bonded set of # NVLinks",
    "XGMI": "AMD Infinity Fabric links",
    "PIX": "at most one PCIe switch",
    "PXB": "several PCIe switches, not the host bridge",
    "PHB": "the PCIe host bridge they share",
    "NODE": "host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes",
}
"""Distance → what lies between the two devices, nearest first."""


class CPU(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The processors: model name, instruction set, and the number of sockets, cores and hardware threads in all."""

    model: str = ""
    architecture: str = ""
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None


class NUMANode(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A NUMA node.

    Attributes:
        id: Number in ``/sys/devices/system/node``.
        cpus: Hardware threads in the kernel's list format, ``0-55,112-167``.
        memory_bytes: Its memory.
        distances: Its row of the SLIT table, 10 for itself; empty if not known.
    """

    id: int
    cpus: str = ""
    memory_bytes: int | None = None
    distances: tuple[int, ...] = ()


class RootComplex(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A PCIe root: ``pci0000:15`` (domain and bus) and the NUMA node it hangs on."""

    name: str
    numa_node: int | None = None


class Bridge(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A PCI bridge function: a root port, or one port of a switch.

    Attributes:
        parent: Address of the bridge above, or the root's name.
        port: Its role. A switch is one ``upstream`` bridge with ``downstream`` ones below; ``bridge`` where not known.
    """

    address: str
    parent: str
    root: str
    port: Literal["root", "upstream", "downstream", "bridge"] = "bridge"


class Link(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Links between two GPUs, given by id; it holds in both directions.

    Attributes:
        count: Number of links that work together.
        via: ``nvswitch`` if switches stand between the two, empty for a direct cable.
        version: Generation, ``4`` for NVLink 4.
    """

    kind: Literal["nvlink", "xgmi"]
    a: str
    b: str
    count: int
    via: str = ""
    version: str = ""


class _Device(Protocol):
    """What is needed of a device; `draht.hardware.inventory.Device` has it."""

    @property
    def id(self) -> str: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def pcie_root(self) -> str | None: ...
    @property
    def pcie_parent(self) -> str | None: ...
    @property
    def numa_node(self) -> int | None: ...


class _Machine(Protocol):
    """What is needed of an inventory."""

    @property
    def bridges(self) -> Sequence[Bridge]: ...
    @property
    def links(self) -> Sequence[Link]: ...
    @property
    def numa_nodes(self) -> Sequence[NUMANode]: ...


def path(machine: _Machine, device: _Device) -> tuple[str, ...]:
    """Addresses of the bridges above a device from the root port down to the one that it hangs on."""
    bridges = {bridge.address: bridge for bridge in machine.bridges}
    above: list[str] = []
    here = device.pcie_parent
    # The length bound ends the walk in a tree that bites its tail; providers refuse such a tree, JSON needn't.
    while here in bridges and len(above) <= len(bridges):
        above.append(here)
        here = bridges[here].parent
    return tuple(reversed(above))


def distance(machine: _Machine, a: _Device, b: _Device) -> str:
    """How far apart two devices are; see `draht.hardware.inventory.Inventory.distance`.

    Of two devices below one bridge, the one is ``PIX`` when at most one more bridge (the port of a switch) stands above
    each of them, otherwise ``PXB``: the rule of NCCL 2.4's ``pciPathDistance``, made symmetric.
    """
    silicon_a, silicon_b = (device.parent if device.kind == "mig" and device.parent else device.id for device in (a, b))
    if silicon_a == silicon_b:
        return "X"
    for link in machine.links:
        if {link.a, link.b} == {silicon_a, silicon_b}:
            return f"NV{link.count}" if link.kind == "nvlink" else "XGMI"
    if a.pcie_root is not None and a.pcie_root == b.pcie_root:
        path_a, path_b = path(machine, a), path(machine, b)
        shared = 0
        for one, other in zip(path_a, path_b, strict=False):
            if one != other:
                break
            shared += 1
        if shared == 0:
            return "PHB"
        return "PIX" if max(len(path_a), len(path_b)) - shared <= 1 else "PXB"
    if a.numa_node == b.numa_node and (a.numa_node is not None or len(machine.numa_nodes) <= 1):
        return "NODE"
    return "SYS"


def rank(distance: str) -> int:
    """Position of a distance from near to far; more NVLinks are nearer than fewer."""
    order = list(DISTANCES)
    if distance.startswith("NV"):
        return 1000 * order.index("NV#") - int(distance[2:])
    return 1000 * order.index(distance)
