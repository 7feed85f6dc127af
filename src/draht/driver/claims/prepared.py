"""What is told about a prepared claim: to the kubelet, to the API server and to people.

Owns values only. They are kept in the machine's database as JSON, so fields are added, never renamed, and readers
ignore those that they don't know: during an upgrade the old and the new version read each other's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from draht.api.resource import AllocatedDeviceStatus

__all__ = ["Places", "PreparedClaim", "PreparedDevice", "Recovered"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where files for containers are written. The paths must be the same on the host and inside the agent's container.

    Attributes:
        cdi_directory: CDI specs, ``/var/run/cdi``.
        metadata_directory: Device metadata (KEP-5304) on the host, ``/var/run/kubernetes.io/dra-device-attributes``.
        files_directory: Files that the driver's edits mount; all claims of a driver share it.
    """

    cdi_directory: Path
    metadata_directory: Path
    files_directory: Path


class PreparedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device as the kubelet is told.

    Attributes:
        requests: Requests as the allocation names them, ``request`` or ``request/subrequest``.
        pool: Its pool.
        device: Its name.
        cdi_device_ids: Qualified CDI names that a container gets for it.
        share_id: Which share of the device it is, if the device is shared.
    """

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None

    @property
    def base_requests(self) -> tuple[str, ...]:
        """The requests without subrequests, as the kubelet compares them."""
        return tuple(dict.fromkeys(request.partition("/")[0] for request in self.requests))


class PreparedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a preparation; the same for every call until the claim is unprepared.

    Attributes:
        uid: UID of the ResourceClaim.
        devices: One entry per result of the allocation that is this driver's, in its order.
        status: What belongs into ``status.devices`` of the claim; see `draht.driver.claims.status.merged`.
        since: When it was first prepared, seconds since the epoch.
    """

    uid: str
    namespace: str
    name: str
    driver: str
    devices: tuple[PreparedDevice, ...]
    status: tuple[AllocatedDeviceStatus, ...] = ()
    since: float = 0.0


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """What a recovery found and did; UIDs, in order.

    Attributes:
        kept: Prepared claims that had everything.
        restored: Prepared claims whose files and effects were made again, as after a reboot.
        rolled_back: Claims whose preparation or unpreparation had been interrupted; nothing of them is left.
        adopted: Claims that the database had lost and that were found in CDI specs; they are also in `restored` if
            they could be prepared again.
        swept: Paths of left-over files that were removed.
        problems: What couldn't be done, one sentence each; it is tried again when the claim is.
        notices: What a person should know, such as that the database was lost.
    """

    kept: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    rolled_back: tuple[str, ...] = ()
    adopted: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
