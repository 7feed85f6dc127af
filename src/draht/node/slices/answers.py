"""What a server made of the slices it was given: fields that it dropped, devices that it refused.

Owns what follows from that. A slice that the server keeps without some of its fields is taken for published, or it
would be written again and again; it is a problem that names the fields and the feature gate. A device that the server
refuses is left out, so that the others of its slice are published. Devices whose counters the server drops are
withheld: without counters a GPU and all its partitions would be given out side by side.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from draht.api.errors import DrahtError
from draht.api.resource import Device, ResourceSliceSpec
from draht.driver.framework import Pool
from draht.kube import InvalidError
from draht.node.slices.content import (
    fingerprint,
    gates_behind,
    gates_suspected,
    lost_fields,
    plain_paths,
    with_known_times,
)
from draht.node.slices.errors import DeviceRefusedError, DroppedFieldsError, WithheldError

__all__ = ["ServerAnswers"]

_DEVICE: Final = re.compile(r"^spec\.devices\[(\d+)\]\.?(?:basic\.)?(.*)")
"""A device's field in the words of a server; ``basic`` is v1beta1's."""
_COUNTERS: Final = frozenset({"spec.sharedCounters", "spec.devices.consumesCounters"})


class ServerAnswers:
    """What is known about one server; pure bookkeeping."""

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}
        """Fingerprint of what was written → of what the server made of it."""
        self._lost: dict[bytes, tuple[ResourceSliceSpec, tuple[str, ...]]] = {}
        self._refused: dict[tuple[str, bytes], tuple[ResourceSliceSpec, str]] = {}
        """(Pool, the device as JSON) → the device alone in a slice, and what the server said."""
        self.counters_kept: bool | None = None
        """Whether the server keeps counters; None before it was asked."""
        self._without_counters: tuple[ResourceSliceSpec, ...] = ()

    def same(self, desired: ResourceSliceSpec, existing: ResourceSliceSpec) -> bool:
        """Whether a slice is as it should be, as far as the server lets it."""
        wanted, found = fingerprint(desired), fingerprint(existing)
        return wanted == found or self._kept.get(wanted) == found

    def took(self, desired: ResourceSliceSpec, kept: ResourceSliceSpec) -> tuple[str, ...]:
        """Remember what the server made of a slice; returns the fields that it dropped."""
        desired = with_known_times(desired, [kept])
        wanted, found = fingerprint(desired), fingerprint(kept)
        if wanted == found:
            return ()
        self._kept[wanted] = found
        lost = lost_fields(desired, kept)
        if lost:
            self._lost[wanted] = (desired, lost)
        if _COUNTERS & set(plain_paths(lost)):
            self.judge_counters(desired, lost)
        return lost

    def judge_counters(self, spec: ResourceSliceSpec, lost: Iterable[str]) -> bool:
        """Whether a server keeps counters that drops these fields of a slice that has them."""
        self.counters_kept = not _COUNTERS & set(plain_paths(lost))
        self._without_counters = () if self.counters_kept else (spec,)
        return self.counters_kept

    def refuse(self, spec: ResourceSliceSpec, error: InvalidError) -> bool:
        """Leave out the devices that a server names as the reason; False if it names none."""
        found: dict[int, list[str]] = {}
        for cause in error.causes:
            match = _DEVICE.match(cause.field)
            if match is not None and int(match.group(1)) < len(spec.devices):
                field = match.group(2)
                found.setdefault(int(match.group(1)), []).append(
                    f"{field}: {cause.message}" if field else cause.message
                )
        for index, messages in found.items():
            alone = msgspec.structs.replace(spec, devices=(spec.devices[index],), shared_counters=())
            self._refused[spec.pool.name, _identity(spec.devices[index])] = (alone, "; ".join(messages))
        return bool(found)

    def allowed(self, pool: Pool, name: str) -> Pool:
        """A pool without what this server doesn't take.

        Args:
            pool: The pool.
            name: The name it is published under.
        """
        withheld = self.counters_kept is False
        if not withheld and not any(key[0] == name for key in self._refused):
            return pool

        def may_stay(device: Device) -> bool:
            if withheld and device.consumes_counters:
                return False
            return (name, _identity(device)) not in self._refused

        groups = (tuple(offered for offered in group if may_stay(offered.device)) for group in pool.groups)
        kept = tuple(group for group in groups if group)
        return replace(pool, groups=kept, counter_sets=() if withheld else pool.counter_sets)

    def forget_all_but(self, desired: Iterable[ResourceSliceSpec], devices: Collection[Device]) -> None:
        """Keep only what concerns these slices and devices, so that nothing grows."""
        wanted = {fingerprint(spec) for spec in desired}
        offered = {_identity(device) for device in devices} if self._refused else set()
        self._kept = {key: value for key, value in self._kept.items() if key in wanted}
        self._lost = {key: value for key, value in self._lost.items() if key in wanted}
        self._refused = {key: value for key, value in self._refused.items() if key[1] in offered}

    def doubts(self) -> Sequence[tuple[ResourceSliceSpec, tuple[str, ...] | None]]:
        """Slices to ask the server about again, and the fields that it dropped; None where it refused."""
        lost = list(self._lost.values())[:1]
        withheld = [(spec, ("spec.devices.consumesCounters",)) for spec in self._without_counters]
        return [*lost, *withheld, *((spec, None) for spec, _ in list(self._refused.values())[:1])]

    def problems(self) -> tuple[DrahtError, ...]:
        """What is to be said about it."""
        found: list[DrahtError] = []
        if self.counters_kept is False:
            found.append(
                WithheldError(
                    "devices that share counters aren't published, because the server drops the counters",
                    hint="turn on the feature gate DRAPartitionableDevices in the cluster, or offer no partitions",
                )
            )
        fields: dict[str, dict[str, None]] = {}
        gates: dict[str, None] = {}
        for spec, lost in self._lost.values():
            fields.setdefault(spec.pool.name, {}).update(dict.fromkeys(plain_paths(lost)))
            gates.update(dict.fromkeys(gates_behind(spec, lost)))
        for pool, names in fields.items():
            found.append(
                DroppedFieldsError(
                    f"the server doesn't keep {', '.join(names)}",
                    where=f"pool {pool}",
                    hint=_gates_hint(gates) or "the server is older than these fields, or a webhook changes them",
                )
            )
        for (pool, _), (spec, message) in self._refused.items():
            (device,) = spec.devices
            hint = _gates_hint(gates_suspected(spec, message.partition(": ")[0]))
            found.append(
                DeviceRefusedError(
                    f"the server refuses the device: {message}", where=f"device {pool}/{device.name}", hint=hint
                )
            )
        return tuple(found)


def _identity(device: Device) -> bytes:
    return msgspec.json.encode(device, order="sorted")


def _gates_hint(gates: Collection[str]) -> str | None:
    if not gates:
        return None
    names = " and ".join(gates)
    return f"the feature gate{'s' if len(gates) > 1 else ''} {names} of kube-apiserver may be off"
