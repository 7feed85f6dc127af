"""A driver of devices that don't exist, whose effects are files: what it has prepared can be seen by any process.

Also short ways to make the claims that are given to it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from draht import cdi
from draht.api.meta import ObjectMeta
from draht.api.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from draht.api.resource import Device as WireDevice
from draht.driver.claims.allocated import POD_CLAIM_NAME
from draht.driver.claims.preparation import Places, Preparer
from draht.driver.database import Database
from draht.driver.framework import ClaimDevices, Driver, Health, Offer, Offered, Prepared

__all__ = ["DEVICES", "NODE", "OtherToyDriver", "ToyDriver", "claim", "device", "places", "preparer"]

NODE = "node-1"

DEVICES = tuple(f"toy-{number}" for number in range(8))


class ToyDriver(Driver):
    """A driver.

    Args:
        effects: Directory of the effects: ``<uid>/<device>`` exists while the device is prepared for the claim.
        devices: Names of the devices; a network device is one whose name begins with ``nic``.
        units: Device → its exclusive units.
        paths: Device → files on the host without which it can't be prepared.
    """

    name = "toy.example.com"

    def __init__(
        self,
        effects: Path,
        devices: Iterable[str] = DEVICES,
        *,
        units: Mapping[str, Collection[str]] | None = None,
        paths: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.effects = effects
        self.devices = list(devices)
        self.units = units or {}
        self.paths = paths or {}
        self.calls: list[tuple[str, str]] = []
        self.hook: Callable[[str, ClaimDevices], None] = lambda _what, _claim: None
        self.healths: list[Health] = []

    def discover(self) -> Offer:
        """See `Driver`."""
        self.calls.append(("discover", ""))
        return Offer.of(
            Offered(
                device=WireDevice(name=name, attributes={"model": DeviceAttribute(string="Toy")}),
                units=frozenset(self.units.get(name, ())),
                paths=self.paths.get(name, ()),
            )
            for name in self.devices
        )

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """See `Driver`."""
        self.calls.append(("prepare", claim.uid))
        (self.effects / claim.uid).mkdir(parents=True, exist_ok=True)
        for device in claim.devices:
            (self.effects / claim.uid / device.result.device).touch()
        self.hook("prepare", claim)
        return Prepared(
            edits={
                device.key: cdi.ContainerEdits(
                    env=(f"TOY_{device.result.device.upper().replace('-', '_')}=yes",),
                    device_nodes=(cdi.DeviceNode(path=f"/dev/{device.result.device}", host_path="/dev/null"),),
                )
                for device in claim.devices
            },
            common=cdi.ContainerEdits(
                env=(f"TOY_CLAIM={claim.name}",),
                mounts=(cdi.Mount(host_path=f"{self.files}/toy.txt", container_path="/toy.txt", options=("ro",)),),
            ),
            files={"toy.txt": (b"a toy\n", 0o444)},
            data={device.key: {"parameters": [one.value for one in device.parameters]} for device in claim.devices},
            network={
                device.key: NetworkDeviceData(interface_name=device.result.device)
                for device in claim.devices
                if device.result.device.startswith("nic")
            },
        )

    def unprepare(self, claim: ClaimDevices) -> None:
        """See `Driver`."""
        self.calls.append(("unprepare", claim.uid))
        self.hook("unprepare", claim)
        shutil.rmtree(self.effects / claim.uid, ignore_errors=True)

    def health(self) -> Sequence[Health]:
        """See `Driver`."""
        return self.healths

    def prepared(self) -> dict[str, list[str]]:
        """UID → devices that are prepared for it now."""
        if not self.effects.exists():
            return {}
        return {one.name: sorted(path.name for path in one.iterdir()) for one in sorted(self.effects.iterdir())}


class OtherToyDriver(ToyDriver):
    """Another driver, to be used beside the first."""

    name = "other.example.com"


def device(
    name: str,
    *,
    request: str = "toys",
    share: str | None = None,
    admin: bool | None = None,
    pool: str = NODE,
    driver: str = ToyDriver.name,
) -> DeviceRequestAllocationResult:
    """An allocated device."""
    return DeviceRequestAllocationResult(
        request=request, driver=driver, pool=pool, device=name, share_id=share, admin_access=admin
    )


def claim(
    uid: str,
    *devices: DeviceRequestAllocationResult | str,
    name: str = "",
    template: str = "",
    config: Sequence[tuple[str, tuple[str, ...], Any]] = (),
    driver: str = ToyDriver.name,
) -> ResourceClaim:
    """An allocated claim.

    Args:
        uid: Its UID.
        devices: What it was given, by name if nothing else matters.
        name: Its name; made from the UID if empty.
        template: Its name in the pod, if it was made from a template.
        config: (source, requests, parameters) of the allocation.
        driver: Whose parameters these are, and whose the devices that are only named.
    """
    results = tuple(device(one, driver=driver) if isinstance(one, str) else one for one in devices)
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name or f"claim-{uid}",
            namespace="default",
            uid=uid,
            annotations={POD_CLAIM_NAME: template} if template else {},
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult(
                devices=DeviceAllocationResult(
                    results=results,
                    config=tuple(
                        DeviceAllocationConfiguration(
                            source=source,
                            requests=requests,
                            opaque=OpaqueDeviceConfiguration(driver=driver, parameters=parameters),
                        )
                        for source, requests, parameters in config
                    ),
                )
            )
        ),
    )


def places(root: Path, driver: str = ToyDriver.name) -> Places:
    """Directories below a root."""
    return Places(
        cdi_directory=root / "cdi", metadata_directory=root / "metadata", files_directory=root / "files" / driver
    )


def preparer(root: Path, driver: Driver | None = None, **options: Any) -> Preparer:
    """A preparer with everything below a root."""
    driver = driver or ToyDriver(root / "effects")
    database = options.pop("database", None) or Database(root / "state", busy_seconds=10)
    return Preparer(driver, database, places(root, driver.name), **{"node_name": NODE, "host_root": root, **options})
