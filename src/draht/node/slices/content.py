"""Whether a slice on the server means what was to be published, and what the server did to it.

Owns the comparison: a server writes amounts in their canonical form, fills in times, and leaves out fields of features
that are off. Pure; what follows from a difference is `draht.node.slices.plan` and `draht.node.slices.publisher`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from draht.api.meta import ObjectMeta
from draht.api.quantity import Quantity, QuantityError
from draht.api.resource import Device, DeviceTaint, ResourceSlice, ResourceSliceSpec
from draht.validation import ALL, Gates, dropped_fields

__all__ = ["fingerprint", "gates_behind", "gates_suspected", "lost_fields", "plain_paths", "with_known_times"]

_KEY: Final = re.compile(r"\[[^\]]*\]")


def fingerprint(spec: ResourceSliceSpec) -> bytes:
    """Equal for two specs that mean the same, whatever generation their pools have."""
    pool = msgspec.structs.replace(spec.pool, generation=0)
    return msgspec.json.encode(_canonical(msgspec.structs.replace(spec, pool=pool)), order="sorted")


def lost_fields(desired: ResourceSliceSpec, kept: ResourceSliceSpec) -> tuple[str, ...]:
    """Paths of what was written and isn't there, such as ``spec.devices[3].consumesCounters``."""
    return tuple(_lost(_canonical(desired), _canonical(kept), "spec"))


def gates_behind(desired: ResourceSliceSpec, paths: Iterable[str]) -> tuple[str, ...]:
    """Names of the feature gates that could have dropped these fields."""
    lost = set(plain_paths(paths))
    return tuple(gate for gate, dropped in _dropped_by_gate(desired) if lost & set(plain_paths(dropped)))


def gates_suspected(alone: ResourceSliceSpec, field: str) -> tuple[str, ...]:
    """Names of the feature gates that could be why a server refuses a field: it dropped what the field consists of.

    Args:
        alone: A slice with the device only.
        field: The field, from the device on: ``attributes[nodes]``.
    """
    return tuple(
        gate
        for gate, dropped in _dropped_by_gate(alone)
        if any(path.partition("].")[2].startswith(field) for path in dropped)
    )


def _dropped_by_gate(spec: ResourceSliceSpec) -> Iterator[tuple[str, tuple[str, ...]]]:
    """For each feature gate: its name, and the fields that are dropped without it."""
    whole = ResourceSlice(metadata=ObjectMeta(), spec=spec)
    for gate in fields(Gates):
        yield _gate(gate.name), dropped_fields(whole, gates=replace(ALL, **{gate.name: False}))


def plain_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """The fields without which device or attribute they are of: ``spec.devices.consumesCounters``; each once."""
    return tuple(dict.fromkeys(_KEY.sub("", path) for path in paths))


def with_known_times(spec: ResourceSliceSpec, existing: Sequence[ResourceSliceSpec]) -> ResourceSliceSpec:
    """The spec with ``timeAdded`` of taints that are there already; new ones get theirs from the server."""
    if not any(taint.time_added is None for device in spec.devices for taint in device.taints):
        return spec
    known = {
        (device.name, taint.key, taint.value, taint.effect): taint.time_added
        for each in existing
        for device in each.devices
        for taint in device.taints
    }
    return msgspec.structs.replace(spec, devices=tuple(_timed(device, known) for device in spec.devices))


def _timed(device: Device, known: Mapping[tuple[str, str, str, str], str | None]) -> Device:
    if not device.taints:
        return device

    def timed(taint: DeviceTaint) -> DeviceTaint:
        if taint.time_added is not None:
            return taint
        return msgspec.structs.replace(taint, time_added=known.get((device.name, taint.key, taint.value, taint.effect)))

    return msgspec.structs.replace(device, taints=tuple(map(timed, device.taints)))


def _gate(field: str) -> str:
    """``list_type_attributes`` → ``DRAListTypeAttributes``."""
    return "DRA" + "".join(part.capitalize() for part in field.split("_"))


def _canonical(spec: ResourceSliceSpec) -> dict[str, Any]:
    """The spec as JSON, with amounts in their canonical form."""
    data: dict[str, Any] = msgspec.to_builtins(spec)
    for device in data.get("devices", ()):
        for capacity in device.get("capacity", {}).values():
            _amounts(capacity, "value")
            policy = capacity.get("requestPolicy", {})
            _amounts(policy, "default")
            if "validValues" in policy:
                policy["validValues"] = [_amount(value) for value in policy["validValues"]]
            _amounts(policy.get("validRange", {}), "min", "max", "step")
        for consumption in device.get("consumesCounters", ()):
            for counter in consumption["counters"].values():
                _amounts(counter, "value")
        for resource in device.get("nodeAllocatableResources", {}).values():
            _amounts(resource.get("mapping", {}), "capacityMultiplier", "deviceMultiplier")
            _amounts(resource.get("overhead", {}), "perPod", "perContainer")
    for counters in data.get("sharedCounters", ()):
        for counter in counters["counters"].values():
            _amounts(counter, "value")
    return data


def _amounts(data: dict[str, Any], *names: str) -> None:
    for name in names:
        if name in data:
            data[name] = _amount(data[name])


@lru_cache(maxsize=4096)
def _amount(value: str | int) -> str:
    try:
        return Quantity.from_wire(value).canonical()
    except QuantityError:
        return str(value)


def _lost(desired: Any, kept: Any, path: str) -> Iterator[str]:
    if isinstance(desired, dict) and isinstance(kept, dict):
        for name, value in desired.items():
            # Keys of maps are written in brackets, as the API server writes paths.
            inside = f"{path}[{name}]" if path.endswith((".attributes", ".capacity", ".counters")) else f"{path}.{name}"
            if name not in kept:
                yield inside
            else:
                yield from _lost(value, kept[name], inside)
    elif isinstance(desired, list | tuple) and isinstance(kept, list | tuple) and len(desired) == len(kept):
        for index, (mine, theirs) in enumerate(zip(desired, kept, strict=True)):
            yield from _lost(mine, theirs, f"{path}[{index}]")
    elif desired != kept and not path.endswith((".generation", ".timeAdded")):
        yield path
