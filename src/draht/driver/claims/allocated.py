"""From an allocated ResourceClaim to what one driver has to prepare: its devices, their units, their parameters.

Pure. It decides which results and which opaque parameters of the allocation concern a driver and in which order the
parameters apply; what they mean is the driver's business. Everything that becomes part of a file name is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from draht.api.resource import DeviceRequestAllocationResult, ResourceClaim
from draht.driver.claims.rows import Record, RecordedDevice
from draht.driver.errors import ClaimError, DeviceMissingError, NotAllocatedError
from draht.driver.framework import Allocated, ClaimDevices, Offer, Offered, Parameters

__all__ = ["POD_CLAIM_NAME", "Devices", "by_name", "check_uid", "devices", "record", "results", "same"]

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim made from a template: its name in ``pod.spec.resourceClaims``."""

Devices = Mapping[tuple[str, str], Offered]
"""(pool, device) → what is offered."""

_SOURCES: Final = {"FromClass": 0, "FromClaim": 1}
_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}")
_SEGMENT: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def by_name(offer: Offer, node_name: str) -> Devices:
    """The devices of an offer by the names that allocations use: the node's own pool has the node's name."""
    return {(pool or node_name, device): offered for (pool, device), offered in offer.devices().items()}


def check_uid(uid: str) -> None:
    """Refuse what can't be part of a file name and of a CDI name; UIDs of Kubernetes can.

    Raises:
        ClaimError: It can't.
    """
    if _UID.fullmatch(uid) is None or uid[-1] in ".-":
        raise ClaimError(f"{uid[:128]!r} is not the UID of a claim", hint="UIDs have letters, digits, '-' and '.'")


def results(claim: ResourceClaim, driver: str) -> tuple[DeviceRequestAllocationResult, ...]:
    """The driver's part of an allocation.

    Raises:
        NotAllocatedError: There is no allocation, or nothing of this driver in it.
    """
    where = f"{claim.metadata.namespace}/{claim.metadata.name}"
    allocation = claim.status.allocation
    if allocation is None:
        raise NotAllocatedError(
            "the claim has no allocation", where=where, hint="the scheduler has to allocate devices for it first"
        )
    found = tuple(result for result in allocation.devices.results if result.driver == driver)
    if not found:
        raise NotAllocatedError(f"no device of {driver} was allocated for the claim", where=where)
    return found


def record(claim: ResourceClaim, driver: str, offered: Devices, *, since: float) -> Record:
    """What is to be prepared.

    Args:
        claim: A claim as the API server has it.
        driver: Whose devices.
        offered: What the driver offers now.
        since: Now, seconds since the epoch.

    Raises:
        NotAllocatedError: It has no allocation, or none of this driver.
        DeviceMissingError: A device isn't offered any more.
        ClaimError: Its names can't be used.
    """
    metadata = claim.metadata
    where = f"{metadata.namespace}/{metadata.name}"
    check_uid(metadata.uid)
    found = results(claim, driver)
    pod_claim_name = metadata.annotations.get(POD_CLAIM_NAME, "")
    for name in (metadata.name, *([pod_claim_name] if pod_claim_name else []), *map(_base, found)):
        if _SEGMENT.fullmatch(name) is None:
            raise ClaimError(f"{name[:253]!r} can't be part of a path", where=where)
    return Record(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        driver=driver,
        pod_claim_name=pod_claim_name,
        devices=tuple(RecordedDevice(result=result, units=_units(result, offered, where)) for result in found),
        parameters=_parameters(claim, driver),
        since=since,
    )


def devices(record: Record, offered: Devices) -> ClaimDevices:
    """The record as the driver sees it, with its devices as they are offered now."""
    return ClaimDevices(
        uid=record.uid,
        namespace=record.namespace,
        name=record.name,
        devices=tuple(
            Allocated(
                result=device.result,
                offered=offered.get((device.result.pool, device.result.device)),
                parameters=tuple(one for one in record.parameters if _applies(one, device.result)),
            )
            for device in record.devices
        ),
    )


def same(found: Sequence[DeviceRequestAllocationResult], known: Record) -> bool:
    """Whether a record speaks of this allocation, and not of an earlier one of the claim."""
    return [_identity(result) for result in found] == [_identity(device.result) for device in known.devices]


def _identity(result: DeviceRequestAllocationResult) -> tuple[object, ...]:
    return (result.request, result.pool, result.device, result.share_id, bool(result.admin_access))


def _base(result: DeviceRequestAllocationResult) -> str:
    return result.request.partition("/")[0]


def _units(result: DeviceRequestAllocationResult, offered: Devices, where: str) -> tuple[str, ...]:
    found = offered.get((result.pool, result.device))
    if found is None:
        raise DeviceMissingError(
            f"device {result.device} of pool {result.pool} isn't there any more",
            where=where,
            hint="delete the pod, so that other devices are allocated; `draht devices` shows what the node has",
        )
    if result.admin_access:
        return ()
    # Empty means that the device is one unit by itself, see `Offered`.
    return tuple(sorted(found.units)) or (f"{result.driver}/{result.pool}/{result.device}",)


def _parameters(claim: ResourceClaim, driver: str) -> tuple[Parameters, ...]:
    allocation = claim.status.allocation
    assert allocation is not None
    found = [
        Parameters(source=config.source, requests=config.requests, value=config.opaque.parameters, index=index)
        for index, config in enumerate(allocation.devices.config)
        if config.opaque is not None and config.opaque.driver == driver
    ]
    return tuple(sorted(found, key=lambda one: _SOURCES.get(one.source, len(_SOURCES))))


def _applies(parameters: Parameters, result: DeviceRequestAllocationResult) -> bool:
    """A request without a subrequest means all of its subrequests."""
    return not parameters.requests or result.request in parameters.requests or _base(result) in parameters.requests
