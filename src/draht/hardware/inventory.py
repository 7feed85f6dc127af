"""The inventory of one machine as a value: devices, PCIe tree, NUMA nodes, links.

Owns the vocabulary that everything above reads, so that a simulated machine and a real one are the same thing to a
reader. Why units: whether two offers mean the same silicon can't be told from device nodes (a MIG instance opens its
parent's node; WSL and Jetson have one node for everything), so each device carries the *exclusive units* it occupies,
and two devices conflict exactly when these sets intersect.

It reads nothing from a machine and decides nothing; distances are computed by `draht.hardware.topology`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

from draht.hardware import topology
from draht.hardware.topology import CPU, Bridge, Link, NUMANode, RootComplex

__all__ = ["CPU", "Bridge", "Device", "Inventory", "Kind", "Link", "NUMANode", "Problem", "Provider", "RootComplex"]

Kind = Literal["gpu", "mig", "accelerator", "nic", "vf", "nvswitch", "other"]
"""What a device is: a whole GPU, a MIG instance of one, another accelerator (Gaudi, NPU), a network function, an SR-IOV
virtual function, an NVSwitch, or something a CDI spec offers that draht can't name."""


class Device(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One device, or one instance of a partitioned device.

    Attributes:
        id: The vendor's UUID, else the PCI address, else (a device known only from a CDI spec that names neither) the
            qualified CDI name. Never the path of a device node.
        index: The number the vendor's tool gives the device; of a MIG instance, the number of its parent.
        uuid: The vendor's UUID, ``GPU-…`` or ``MIG-…`` with NVIDIA.
        pci_address: Extended BDF in lower case with a four-digit domain (``0000:1b:00.0``), longer domains as they are;
            of a MIG instance, the address of its parent.
        pcie_root: ``pci<domain>:<bus>`` as in the standard attribute ``resource.kubernetes.io/pcieRoot`` (KEP-4381), or
            None where it can't be resolved (VMBus, five-digit domains).
        pcie_parent: Address of the bridge directly above, or the root's name.
        numa_node: The node whose memory is closest, or None where the firmware doesn't say.
        memory_bytes: Memory of the device.
        compute_capability: ``9.0`` for NVIDIA.
        architecture: ``Hopper``, ``gfx942`` …
        mig_capable: The GPU can be partitioned; says nothing about whether it is.
        parent: Id of the GPU of a MIG instance or of the physical function of a virtual one.
        units: The exclusive units it occupies; two devices conflict exactly when their units intersect. A GPU has the
            units of all its instances, and siblings have none in common.
        cdi_names: Qualified names under which CDI specs offer exactly this device, the best one to ask for first.
        device_nodes: Host paths of the nodes that belong to it. Information for people; not an identity.
        simulated: It comes from a profile and doesn't exist.
        attributes: Everything else worth showing: ``vendorID``, ``deviceID``, ``minor``, ``interface``, ``rdma`` …
    """

    id: str
    kind: Kind
    index: int | None = None
    vendor: str = ""
    product: str = ""
    architecture: str = ""
    compute_capability: str = ""
    uuid: str | None = None
    pci_address: str | None = None
    pcie_root: str | None = None
    pcie_parent: str | None = None
    numa_node: int | None = None
    memory_bytes: int | None = None
    mig_capable: bool = False
    parent: str | None = None
    units: frozenset[str] = frozenset()
    cdi_names: tuple[str, ...] = ()
    device_nodes: tuple[str, ...] = ()
    simulated: bool = False
    attributes: Mapping[str, str | int | bool] = {}

    def __hash__(self) -> int:
        return hash(self.id)

    def conflicts(self, other: Device) -> bool:
        """Whether the two can't be given to two holders at once."""
        return not self.units.isdisjoint(other.units)


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that couldn't be read; what could be read stands beside it in the inventory.

    Attributes:
        where: File, directory or field the sentence is about.
        message: One sentence without a trailing full stop.
        hint: The next step, or empty.
    """

    where: str
    message: str
    hint: str = ""


class Inventory(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What one machine has.

    Attributes:
        machine: Name of the profile, or of the host.
        source: Which provider said so: ``profile dgx-h100``, ``sysfs``, ``cdi``, ``sysfs+cdi``.
        simulated: It comes from a profile: no such machine was looked at.
        devices: Stable order: GPUs by index, each followed by its instances, then accelerators, NVSwitches, network
            functions each followed by its virtual functions, then the rest.
        memory_bytes: Main memory.
        aliases: CDI names that mean several devices (``nvidia.com/gpu=all``) → ids of these devices.
        problems: What couldn't be read.
    """

    machine: str
    source: str
    simulated: bool = False
    description: str = ""
    devices: tuple[Device, ...] = ()
    cpu: CPU | None = None
    memory_bytes: int | None = None
    numa_nodes: tuple[NUMANode, ...] = ()
    roots: tuple[RootComplex, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    links: tuple[Link, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = {}
    driver_version: str | None = None
    cuda_version: str | None = None
    problems: tuple[Problem, ...] = ()

    def gpus(self) -> tuple[Device, ...]:
        """The whole GPUs, partitioned ones included."""
        return tuple(device for device in self.devices if device.kind == "gpu")

    def instances(self, gpu: Device | None = None) -> tuple[Device, ...]:
        """The MIG instances, of all GPUs or of one."""
        return tuple(
            device for device in self.devices if device.kind == "mig" and (gpu is None or device.parent == gpu.id)
        )

    def nics(self) -> tuple[Device, ...]:
        """The physical network functions."""
        return tuple(device for device in self.devices if device.kind == "nic")

    def device(self, id: str) -> Device | None:  # noqa: A002 — the identity, as everywhere in this package
        """The device with this id, or None."""
        return next((device for device in self.devices if device.id == id), None)

    def distance(self, a: Device | str, b: Device | str) -> str:
        """How far apart two devices are, in the words of ``nvidia-smi topo -m``.

        ``X`` the same device, ``NV#`` that many NVLinks (``XGMI`` with AMD), ``PIX`` at most one PCIe switch between
        them, ``PXB`` several, ``PHB`` through the host bridge they share, ``NODE`` through the host bridges of one NUMA
        node, ``SYS`` between NUMA nodes.

        Raises:
            KeyError: An id that isn't in this inventory.
        """
        return topology.distance(self, self._find(a), self._find(b))

    def nearest_nics(self, gpu: Device | str) -> tuple[tuple[Device, ...], str | None]:
        """The physical network functions closest to a device, and how far they are; nothing and None without NICs."""
        ranked = [(topology.rank(self.distance(gpu, nic)), nic) for nic in self.nics()]
        if not ranked:
            return (), None
        best = min(rank for rank, _ in ranked)
        nearest = tuple(nic for rank, nic in ranked if rank == best)
        return nearest, self.distance(gpu, nearest[0])

    def to_builtins(self) -> dict[str, Any]:
        """Dictionaries, lists and strings with the JSON names, in an order that never changes."""
        plain: dict[str, Any] = msgspec.to_builtins(self, order="deterministic")
        return plain

    def _find(self, device: Device | str) -> Device:
        if isinstance(device, Device):
            return device
        found = self.device(device)
        if found is None:
            raise KeyError(device)
        return found


class Provider(Protocol):
    """A source of inventories. It never raises for what a machine lacks or hides: that becomes a `Problem`."""

    def inventory(self) -> Inventory:
        """Look at the machine now."""
        ...
