"""What the driver says about each device in ``status.devices`` of a claim. Pure; the node agent writes it.

Owns the content and the merge with what the API server has: other drivers' entries and other writers' conditions stay,
and the time of a condition changes only when the condition does (the rule of all conditions in Kubernetes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from draht.api.errors import DrahtError
from draht.api.meta import Condition
from draht.api.resource import AllocatedDeviceStatus, NetworkDeviceData
from draht.driver.claims.rows import Record
from draht.validation.limits import DEVICE_DATA_BYTES

__all__ = ["READY", "failed", "merged", "statuses"]

READY: Final = "Ready"
"""Type of the condition."""

MESSAGE_CHARACTERS: Final = 32 * 1024
"""Longest message of a condition (meta/v1)."""


def statuses(
    record: Record, data: Mapping[int, Any], network: Mapping[int, NetworkDeviceData], *, now: float
) -> tuple[AllocatedDeviceStatus, ...]:
    """Entries of a claim that is prepared.

    Args:
        record: The claim.
        data: Index of a device in the record → the driver's data about it.
        network: Index of a device in the record → its addresses.
        now: Seconds since the epoch.
    """
    found: dict[tuple[str, str, str | None], AllocatedDeviceStatus] = {}
    for index, device in enumerate(record.devices):
        result = device.result
        key = (result.pool, result.device, result.share_id)
        if key in found:
            # Two requests may have the same device, with administrative access; the API server wants one entry.
            continue
        told, note = data.get(index), ""
        if told is not None and len(msgspec.json.encode(told)) > DEVICE_DATA_BYTES:
            told, note = None, f"; the driver's data is left out, it has more than {DEVICE_DATA_BYTES} bytes"
        found[key] = AllocatedDeviceStatus(
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            share_id=result.share_id,
            conditions=(_ready("True", "Prepared", f"the device is ready for containers{note}", now),),
            data=told,
            network_data=network.get(index),
        )
    return tuple(found.values())


def failed(
    status: Sequence[AllocatedDeviceStatus], error: DrahtError, *, now: float
) -> tuple[AllocatedDeviceStatus, ...]:
    """Entries of a claim that was prepared and isn't any more, as when a device is gone after a reboot."""
    reason = type(error).__name__.removesuffix("Error") or "Failed"
    condition = _ready("False", reason, str(error)[:MESSAGE_CHARACTERS], now)
    return tuple(msgspec.structs.replace(one, conditions=_with(one.conditions, condition)) for one in status)


def merged(
    known: Sequence[AllocatedDeviceStatus], ours: Sequence[AllocatedDeviceStatus]
) -> tuple[AllocatedDeviceStatus, ...]:
    """What to write: ``status.devices`` as the API server has it with our entries in it.

    Entries of the same driver for devices that aren't in `ours` go: they belong to an earlier allocation. The result
    equals `known` if there is nothing to write.
    """
    drivers = {one.driver for one in ours}
    wanted = {_key(one): one for one in ours}
    found = []
    for one in known:
        update = wanted.pop(_key(one), None)
        if update is None:
            if one.driver not in drivers:
                found.append(one)
            continue
        conditions = one.conditions
        for condition in update.conditions:
            conditions = _with(conditions, condition)
        found.append(msgspec.structs.replace(update, conditions=conditions))
    return (*found, *wanted.values())


def _key(status: AllocatedDeviceStatus) -> tuple[str, str, str, str | None]:
    return (status.driver, status.pool, status.device, status.share_id)


def _with(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """The conditions with one set, in its place; its time is kept while its status stays."""
    found = []
    for condition in conditions:
        if condition.type != new.type:
            found.append(condition)
            continue
        if condition.status == new.status and condition.last_transition_time:
            new = msgspec.structs.replace(new, last_transition_time=condition.last_transition_time)
        found.append(new)
    return tuple(found) if any(one is new for one in found) else (*found, new)


def _ready(status: str, reason: str, message: str, now: float) -> Condition:
    at = datetime.fromtimestamp(int(now), tz=UTC).isoformat().replace("+00:00", "Z")
    return Condition(type=READY, status=status, last_transition_time=at, reason=reason, message=message)
