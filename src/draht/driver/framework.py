"""What a vendor writes: a class that knows its devices. Everything else about DRA is done around it.

Owns the words between a driver and the rest of draht: what it offers, what a claim gives it, what it hands back. Why so
few methods: publishing, registration, records before and after every effect, conflicts, CDI files, recovery and health
streams are the same for every device, and wrong in a different way in every driver that writes them again.

A driver is called from worker threads, never twice at once for the same claim. It knows nothing of the API server, of
gRPC, of the database, or of where files are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from draht import cdi
from draht.api.core.scheduling import NodeSelector
from draht.api.resource import CounterSet, DeviceRequestAllocationResult, DeviceTaint, NetworkDeviceData
from draht.api.resource import Device as WireDevice

__all__ = ["Allocated", "ClaimDevices", "Driver", "Health", "Offer", "Offered", "Parameters", "Pool", "Prepared"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Offered:
    """One device that a driver offers.

    Attributes:
        device: As it is published in a ResourceSlice.
        units: The exclusive units it occupies on this machine (see `draht.hardware.inventory`); two devices can't be
            prepared for two claims at once if their units intersect. Empty means: the device is one unit by itself.
        paths: Device nodes and libraries on the host without which it can't be prepared. One that is missing makes the
            preparation fail with its name; the next try looks again.
    """

    device: WireDevice
    units: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Devices that are published together.

    Attributes:
        groups: Devices that stay in one slice, such as a GPU and its partitions.
        counter_sets: Shared counters of the pool (KEP-4815).
        name: Name of the pool; the node's name if empty. The policy in ``deploy/`` lets a pool of this node be named
            after the node only (``worker-0``, ``worker-0/…``).
        all_nodes: The devices can be used from every node; otherwise only from this one.
        node_selector: They can be used from the nodes with these labels; not together with ``all_nodes``.
    """

    groups: tuple[tuple[Offered, ...], ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()
    name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Everything that a driver offers on this node now."""

    pools: tuple[Pool, ...] = ()

    @classmethod
    def of(cls, devices: Iterable[Offered]) -> Offer:
        """Devices without counters, in the pool that has the node's name."""
        return cls(pools=(Pool(groups=tuple((device,) for device in devices)),))

    def devices(self) -> Mapping[tuple[str, str], Offered]:
        """(name of the pool, empty for the node's own; name of the device) → the device."""
        return {
            (pool.name, offered.device.name): offered
            for pool in self.pools
            for group in pool.groups
            for offered in group
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Opaque parameters that apply to an allocated device.

    Attributes:
        source: ``FromClass`` or ``FromClaim``; those of the claim come later and win.
        requests: The requests that they were written for; empty means all.
        value: The object, with its ``apiVersion`` and ``kind``.
        index: Position in ``status.allocation.devices.config``, for messages.
    """

    source: str
    requests: tuple[str, ...]
    value: Any
    index: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocated:
    """One device that a claim was given.

    Attributes:
        result: The entry of ``status.allocation.devices.results``.
        offered: The device as the driver offers it now; None if it doesn't any more.
        parameters: What is configured for it, in the order in which it applies.
    """

    result: DeviceRequestAllocationResult
    offered: Offered | None
    parameters: tuple[Parameters, ...] = ()

    @property
    def key(self) -> str:
        """Unique within the claim: the request, the device and the share."""
        result = self.result
        return "/".join([result.request, result.pool, result.device, *([result.share_id] if result.share_id else [])])


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimDevices:
    """A claim as one driver sees it: only its own devices.

    Attributes:
        uid: UID of the ResourceClaim.
        devices: In the order of the allocation.
    """

    uid: str
    namespace: str
    name: str
    devices: tuple[Allocated, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What containers of a claim receive.

    Attributes:
        edits: `Allocated.key` → what a container gets for that device.
        common: What a container gets once, whichever of the claim's devices it has.
        files: Name → content and mode of files that the edits mount from `draht.driver.framework.Driver.files`; those
            that exist with this content stay untouched.
        data: `Allocated.key` → what goes to ``status.devices[].data``.
        network: `Allocated.key` → addresses, for ``status.devices[].networkData``.
    """

    edits: Mapping[str, cdi.ContainerEdits]
    common: cdi.ContainerEdits = field(default_factory=cdi.ContainerEdits)
    files: Mapping[str, tuple[bytes, int]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, NetworkDeviceData] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """How one device is.

    Attributes:
        pool: As in `Pool`; empty for the node's own.
        device: Name of the device.
        state: As KEP-4680 names it.
        message: For people; shown in the pod's status.
        taint: What keeps new claims off the device while this holds; the taint goes when it isn't reported any more.
    """

    device: str
    pool: str = ""
    state: Literal["Healthy", "Unhealthy", "Unknown"] = "Healthy"
    message: str = ""
    taint: DeviceTaint | None = None


class Driver:
    """A DRA driver. Subclass it, give it a name, and implement `discover` and `prepare`.

    Attributes:
        name: The driver's name, a DNS subdomain (``gpu.example.com``).
        files: Directory on the host for files that containers mount; set before anything is called.
        node_name: The node; set before anything is called.
    """

    name: ClassVar[str]
    files: str = ""
    node_name: str = ""

    def discover(self) -> Offer:
        """Look at the machine now. Called at the start and again and again; blocking is fine."""
        raise NotImplementedError

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """Make the devices usable and say what containers get.

        Called again with the same claim after a crash or a reboot, and must then lead to the same result.

        Raises:
            DrahtError: The devices can't be prepared; the message reaches the pod's events. What was done so far is
                undone by `unprepare`.
        """
        raise NotImplementedError

    def unprepare(self, claim: ClaimDevices) -> None:
        """Undo `prepare`. Must succeed for a claim that was never, or only half, prepared."""

    def health(self) -> Sequence[Health]:
        """How the devices are; those that aren't named are healthy."""
        return ()
