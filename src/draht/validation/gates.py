"""The feature gates of a Kubernetes release, and what the server does to fields behind a gate that is off.

Owns `Gates` and the removal. Before it judges an object that is created, the API server silently drops the fields of
features that are off (``dropDisabledFields`` in ``k8s.io/kubernetes/pkg/registry/resource`` and
``pkg/api/resourceclaimspec`` at v1.37.2), so an object may be accepted and still not mean what was written. `drop`
gives the object as the server keeps it and the paths of what is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeVar

from msgspec import structs

from draht.api.meta import Object
from draht.api.resource import (
    AllocationResult,
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceRequest,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSliceSpec,
)
from draht.api.wire import Wire

__all__ = ["ALL", "DEFAULT", "Gates", "drop", "with_used"]

_Struct = TypeVar("_Struct", bound=Wire)


@dataclass(frozen=True, slots=True)
class Gates:
    """Which features are on; the defaults are those of Kubernetes 1.37.

    Gates that 1.37 has locked on (DRAAdminAccess, DRAExtendedResource, DRAPrioritizedList,
    DRAResourceClaimDeviceStatus) aren't here. DRAFractionalCapacityRange is beta, but off until a server needn't be
    compatible with 1.36.
    """

    consumable_capacity: bool = True
    derived_attributes: bool = False
    device_binding_conditions: bool = True
    device_compatibility_groups: bool = False
    device_taints: bool = True
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    node_allocatable_resources: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = True
    partitionable_devices_type: bool = False


DEFAULT: Final = Gates()
"""Kubernetes 1.37 as it comes."""
ALL: Final = Gates(**dict.fromkeys(Gates.__dataclass_fields__, True))
"""Every feature, alpha included."""


@cache
def _described(struct: type[Wire]) -> Mapping[str, structs.FieldInfo]:
    """Fields by name; asking msgspec takes longer than judging an object."""
    return {field.name: field for field in structs.fields(struct)}


class _Dropping:
    """Removes fields of structs and remembers their paths."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def fields(self, struct: _Struct, path: str, *names: str) -> _Struct:
        """The struct without these fields."""
        changes: dict[str, Any] = {}
        for name, field in _described(type(struct)).items():
            if name not in names:
                continue
            value = getattr(struct, name)
            if value is None or value == () or value == {}:
                continue
            self.paths.append(f"{path}.{field.encode_name}")
            changes[name] = None if field.default is None else {} if isinstance(value, dict) else ()
        return structs.replace(struct, **changes) if changes else struct


def drop(obj: Object, gates: Gates) -> tuple[Object, tuple[str, ...]]:
    """The object as the server judges and keeps it, and the paths of the fields that it drops.

    Args:
        obj: A v1 object of ``resource.k8s.io``; other objects come back as they are.
        gates: The features that are on.
    """
    dropping = _Dropping()
    if isinstance(obj, DeviceClass | DeviceTaintRule | ResourceSlice) and obj.metadata.namespace:
        # Objects of these kinds don't live in a namespace, and the server takes none amiss.
        dropping.paths.append("metadata.namespace")
        obj = structs.replace(obj, metadata=structs.replace(obj.metadata, namespace=""))
    result: Object = obj
    match obj:
        case ResourceSlice():
            result = structs.replace(obj, spec=_slice(dropping, obj.spec, gates))
        case ResourceClaim():
            status = obj.status
            if status.allocation is not None:
                status = structs.replace(status, allocation=_allocation(dropping, status.allocation, gates))
            if not gates.consumable_capacity:
                devices = tuple(
                    dropping.fields(device, f"status.devices[{index}]", "share_id")
                    for index, device in enumerate(status.devices)
                )
                status = structs.replace(status, devices=devices)
            result = structs.replace(obj, spec=_claim(dropping, obj.spec, "spec", gates), status=status)
        case ResourceClaimTemplate():
            spec = structs.replace(obj.spec, spec=_claim(dropping, obj.spec.spec, "spec.spec", gates))
            result = structs.replace(obj, spec=spec)
        case _:
            pass
    return result, tuple(dropping.paths)


def with_used(gates: Gates, old: Object) -> Gates:
    """The gates, and those whose fields an object has: an update may keep what its server would drop of a new one."""
    off = [name for name in Gates.__dataclass_fields__ if not getattr(gates, name)]
    used = [name for name in off if drop(old, replace(ALL, **{name: False}))[1]]
    return replace(gates, **dict.fromkeys(used, True))


def _slice(dropping: _Dropping, spec: ResourceSliceSpec, gates: Gates) -> ResourceSliceSpec:
    path = "spec"
    if not gates.partitionable_devices:
        spec = dropping.fields(spec, path, "shared_counters", "per_device_node_selection")
    if not gates.partitionable_devices_type:
        spec = dropping.fields(spec, path, "partition_type_attribute")
    if not gates.optional_node_operations:
        spec = dropping.fields(spec, path, "skip_node_operations")
    devices = tuple(
        _device(dropping, device, f"{path}.devices[{index}]", gates) for index, device in enumerate(spec.devices)
    )
    return structs.replace(spec, devices=devices)


def _device(dropping: _Dropping, device: Device, path: str, gates: Gates) -> Device:
    if not gates.device_taints:
        device = dropping.fields(device, path, "taints")
    if not gates.partitionable_devices:
        device = dropping.fields(device, path, "consumes_counters", "node_name", "node_selector", "all_nodes")
    if not gates.device_binding_conditions:
        device = dropping.fields(device, path, "binding_conditions", "binding_failure_conditions", "binds_to_node")
    if not gates.consumable_capacity:
        device = dropping.fields(device, path, "allow_multiple_allocations")
        capacity = {
            name: dropping.fields(each, f"{path}.capacity[{name}]", "request_policy")
            for name, each in device.capacity.items()
        }
        device = structs.replace(device, capacity=capacity)
    if not gates.device_compatibility_groups and device.consumes_counters:
        consumed = tuple(
            dropping.fields(each, f"{path}.consumesCounters[{index}]", "compatibility_groups")
            for index, each in enumerate(device.consumes_counters)
        )
        device = structs.replace(device, consumes_counters=consumed)
    if not gates.node_allocatable_resources:
        device = dropping.fields(device, path, "node_allocatable_resources")
    if not gates.list_type_attributes and any(map(_is_list, device.attributes.values())):
        attributes = {
            name: dropping.fields(each, f"{path}.attributes[{name}]", "ints", "bools", "strings", "versions")
            for name, each in device.attributes.items()
        }
        device = structs.replace(device, attributes=attributes)
    return device


def _is_list(attribute: DeviceAttribute) -> bool:
    return bool(attribute.ints or attribute.bools or attribute.strings or attribute.versions)


def _claim(dropping: _Dropping, spec: ResourceClaimSpec, path: str, gates: Gates) -> ResourceClaimSpec:
    path = f"{path}.devices"
    devices = spec.devices
    requests = tuple(
        _request(dropping, request, f"{path}.requests[{index}]", gates)
        for index, request in enumerate(devices.requests)
    )
    constraints = devices.constraints
    if not gates.consumable_capacity:
        constraints = tuple(
            dropping.fields(each, f"{path}.constraints[{index}]", "distinct_attribute")
            for index, each in enumerate(constraints)
        )
    return structs.replace(spec, devices=structs.replace(devices, requests=requests, constraints=constraints))


def _request(dropping: _Dropping, request: DeviceRequest, path: str, gates: Gates) -> DeviceRequest:
    gone = [
        name
        for name, on in (
            ("tolerations", gates.device_taints),
            ("capacity", gates.consumable_capacity),
            ("derived_attributes", gates.derived_attributes),
        )
        if not on
    ]
    exactly = request.exactly
    if exactly is not None:
        exactly = dropping.fields(exactly, f"{path}.exactly", *gone)
    alternatives = tuple(
        dropping.fields(each, f"{path}.firstAvailable[{index}]", *gone)
        for index, each in enumerate(request.first_available)
    )
    return structs.replace(request, exactly=exactly, first_available=alternatives)


def _allocation(dropping: _Dropping, allocation: AllocationResult, gates: Gates) -> AllocationResult:
    gone: list[str] = []
    if not gates.consumable_capacity:
        gone += ["share_id", "consumed_capacity"]
    if not gates.device_binding_conditions:
        gone += ["binding_conditions", "binding_failure_conditions"]
    if not gates.optional_node_operations:
        gone += ["skip_node_operations"]
    devices = allocation.devices
    results = tuple(
        dropping.fields(each, f"status.allocation.devices.results[{index}]", *gone)
        for index, each in enumerate(devices.results)
    )
    return structs.replace(allocation, devices=structs.replace(devices, results=results))
