"""The contract of a provider that asks NVIDIA's management library (NVML).

Owns the Protocol only. It is narrow on purpose: what an `Inventory` needs and sysfs can't say (memory, compute
capability, MIG instances, NVLinks, fabric) and nothing about load, events or changes. The implementation wraps
``nvidia-ml-py``; tests and simulated machines give the same Protocol a profile. An implementation must

- make all calls from one thread and give each a deadline: a GPU that fell off the bus can block a call for minutes;
- report a function that an older driver lacks, or that a GPU doesn't support, as None or as nothing, never as an error;
- report one lost GPU as a `Problem` and go on with the others (``nvidia-ctk`` fails as a whole there);
- write PCI addresses as sysfs does: NVML has ``00000000:3B:00.0``, draht ``0000:3b:00.0``;
- keep index and minor apart: device nodes go by minor, tools and CDI names by index;
- use the profile *id* of a MIG instance, which ``nvidia-smi mig -lgip`` shows, not NVML's enumeration of profiles.

With it, a MIG instance gets the units of its placement (`draht.hardware.mig.units`) in place of one unit of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from draht.hardware.inventory import Problem

__all__ = ["NVML", "GPUFacts", "InstanceFacts", "LinkFacts", "SystemFacts"]


class SystemFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of the driver (``550.90.07``) and of CUDA that it supports at most (``12.4``)."""

    driver_version: str
    cuda_version: str | None = None


class InstanceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A MIG device.

    Attributes:
        slot: Its position below the GPU, the second number of the CDI name ``0:1``; gaps are normal.
        uuid: ``MIG-…``.
        profile: ``1g.10gb``; the compute instance's part stands in front where it is smaller (``1c.3g.40gb``).
        profile_id: Id of the GPU instance's profile.
        start: First memory slice.
        size: Number of memory slices.
        memory_bytes: Memory of the instance.
        gpu_instance: Id of the GPU instance; with the parent's minor it finds the capability node.
        compute_instance: Id of the compute instance.
    """

    slot: int
    uuid: str
    profile: str
    profile_id: int
    start: int
    size: int
    memory_bytes: int
    gpu_instance: int
    compute_instance: int


class LinkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One active NVLink of a GPU: its number, its generation and the PCI address of the other end."""

    link: int
    version: int
    remote_pci_address: str
    remote_is_switch: bool


class GPUFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU.

    Attributes:
        compute_capability: Major and minor.
        memory_bytes: All of it, reserved memory included.
        mig_enabled: Current mode; None if it can't be partitioned.
        addressing_mode: ``HMM``, ``ATS``, ``None``; None if the driver doesn't say.
        fabric_clique: Cluster UUID and clique id of its NVLink domain, ``<uuid>.<clique>``.
    """

    index: int
    minor: int
    uuid: str
    product: str
    architecture: str
    compute_capability: tuple[int, int]
    memory_bytes: int
    pci_address: str
    mig_enabled: bool | None = None
    addressing_mode: str | None = None
    fabric_clique: str | None = None


class NVML(Protocol):
    """What is asked of the library. GPUs are named by UUID, because indices move when one is lost."""

    def system(self) -> SystemFacts | None:
        """Versions, or None where no driver is loaded."""
        ...

    def gpus(self) -> tuple[Sequence[GPUFacts], Sequence[Problem]]:
        """The GPUs that answer, by index, and what went wrong with the others."""
        ...

    def instances(self, uuid: str) -> Sequence[InstanceFacts]:
        """The MIG devices of a GPU by slot; nothing where MIG is off."""
        ...

    def links(self, uuid: str) -> Sequence[LinkFacts]:
        """The active NVLinks of a GPU."""
        ...
