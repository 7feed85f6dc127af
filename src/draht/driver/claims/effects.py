"""What is done to the machine for a claim, and undone: the driver's work, then the files that lead containers to it.

Every step can be repeated, and undoing works from any point, so a crash needs no memory of how far it got. The records
around it are `draht.driver.claims.preparation`; it touches no database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from draht import cdi
from draht.api.resource import AllocatedDeviceStatus
from draht.driver.claims import driver_calls
from draht.driver.claims import spec as claim_spec
from draht.driver.claims import status as claim_status
from draht.driver.claims.allocated import Devices, devices
from draht.driver.claims.files import ClaimFiles
from draht.driver.claims.metadata import metadata_files
from draht.driver.claims.prepared import PreparedClaim, PreparedDevice
from draht.driver.claims.rows import Record
from draht.driver.errors import DeviceMissingError
from draht.driver.framework import Driver

__all__ = ["Effects", "Made"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """What was made for a claim.

    Attributes:
        answer: What is told about it.
        files: Path → SHA-256 of the files that its containers need.
    """

    answer: PreparedClaim
    files: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """What one driver's claims need.

    Attributes:
        driver: The driver.
        files: Where files go.
        host_root: Where the host's root file system is.
        state: The state directory, for the notes in CDI specs.
        cdi_version: The highest CDI version that the container runtime reads.
        steps: Told the name of each step when it is done.
    """

    driver: Driver
    files: ClaimFiles
    host_root: Path
    state: str
    cdi_version: str | None
    steps: Callable[[str], None]

    def look(self, record: Record, offered: Devices) -> None:
        """See whether the devices are there with everything that they need; nothing is changed.

        Raises:
            DeviceMissingError: One isn't offered, or a file of it isn't there.
        """
        for device in record.devices:
            found = offered.get((device.result.pool, device.result.device))
            if found is None:
                raise DeviceMissingError(
                    f"device {device.result.device} of pool {device.result.pool} isn't there any more",
                    where=record.title,
                    hint="the kubelet tries again; `draht devices` shows what the node has",
                )
            for path in found.paths:
                there = self.host_root / path.lstrip("/")
                # A link of the host leads to where the host's root is, not ours: that it is there is enough.
                if not (there.is_symlink() or there.exists()):
                    raise DeviceMissingError(
                        f"device {device.result.device} needs {path}, which isn't there",
                        where=record.title,
                        hint="load the device's kernel module or repair its installation; the kubelet tries again",
                    )

    def make(self, record: Record, offered: Devices, *, now: float, before: PreparedClaim | None = None) -> Made:
        """Let the driver prepare the devices and write what containers need.

        Args:
            record: The claim.
            offered: What the driver offers now.
            now: Seconds since the epoch.
            before: What was answered when it was prepared the last time.

        Raises:
            DrahtError: It can't be done; `undo` removes what there is of it.
        """
        self.look(record, offered)
        claim = devices(record, offered)
        prepared = driver_calls.prepare(self.driver, claim)
        self.steps("effects-done")
        self.files.write_shared(prepared.files)
        self.steps("files-written")
        keys = [device.key for device in claim.devices]
        network = {index: prepared.network[key] for index, key in enumerate(keys) if key in prepared.network}
        data = {index: prepared.data[key] for index, key in enumerate(keys) if key in prepared.data}
        files: dict[str, str] = {}
        mounts: dict[int, list[cdi.Mount]] = {}
        for one in metadata_files(record, self.files.metadata(record.uid), offered, network):
            files[str(one.path)] = self.files.write(one.path, one.content)
            for index in one.devices:
                mounts.setdefault(index, []).append(one.mount)
        self.steps("metadata-written")
        spec = claim_spec.claim_spec(
            record,
            [prepared.edits.get(key, cdi.ContainerEdits()) for key in keys],
            prepared.common,
            mounts,
            state=self.state,
            highest=self.cdi_version,
        )
        path = self.files.spec(record.uid)
        files[str(path)] = self.files.write(path, claim_spec.encode(spec))
        self.steps("spec-written")
        status = claim_status.statuses(record, data, network, now=now)
        if before is not None:
            status = claim_status.merged(before.status, status)
        return Made(answer=_answer(record, spec, status), files=files)

    def undo(self, record: Record, offered: Devices, files: Mapping[str, str]) -> None:
        """Remove the files, so that no container can begin with the devices, and let the driver undo its work.

        Raises:
            DrahtError: Something couldn't be undone; it can be called again.
        """
        self.files.remove_spec(record.uid, files)
        self.steps("spec-removed")
        claim = devices(record, offered)
        driver_calls.unprepare(self.driver, claim)
        self.steps("effects-undone")
        self.files.remove_metadata(record.uid, files)
        self.steps("metadata-removed")


def _answer(record: Record, spec: cdi.Spec, status: tuple[AllocatedDeviceStatus, ...]) -> PreparedClaim:
    return PreparedClaim(
        uid=record.uid,
        namespace=record.namespace,
        name=record.name,
        driver=record.driver,
        devices=tuple(
            PreparedDevice(
                requests=(device.result.request,),
                pool=device.result.pool,
                device=device.result.device,
                cdi_device_ids=(f"{spec.kind}={made.name}",),
                share_id=device.result.share_id,
            )
            for device, made in zip(record.devices, spec.devices, strict=True)
        ),
        status=status,
        since=record.since,
    )
