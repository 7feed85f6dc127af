"""`resource.k8s.io/v1beta1` (1.32 to 1.37): devices wrapped in ``basic``, requests flat.

Only what differs from v1 is defined here; `draht.api.conversion` carries objects to v1 and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from draht.api.core.scheduling import NodeSelector
from draht.api.meta import Object, ObjectList, ObjectMeta
from draht.api.resource.allocation import ResourceClaimStatus
from draht.api.resource.claim import DeviceClaimConfiguration, DeviceConstraint, DeviceSubRequest
from draht.api.resource.device import (
    CounterSet,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
    NodeAllocatableResource,
)
from draht.api.resource.device_class import DeviceClassSpec
from draht.api.resource.resource_slice import ResourcePool
from draht.api.resource.selector import CapacityRequirements, DeviceDerivedAttribute, DeviceSelector, DeviceToleration
from draht.api.wire import Int64, Wire, always

__all__ = [
    "BasicDevice",
    "Device",
    "DeviceClaim",
    "DeviceClass",
    "DeviceClassList",
    "DeviceRequest",
    "ResourceClaim",
    "ResourceClaimList",
    "ResourceClaimSpec",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateList",
    "ResourceClaimTemplateSpec",
    "ResourceSlice",
    "ResourceSliceList",
    "ResourceSliceSpec",
]


class DeviceClass(Object, frozen=True, kw_only=True):
    """A named way to ask for devices, made by an administrator."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["DeviceClass"] = always("DeviceClass")
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceClassList(ObjectList, frozen=True, kw_only=True):
    """Several device classes."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["DeviceClassList"] = always("DeviceClassList")
    items: tuple[DeviceClass, ...] = ()


class DeviceRequest(Wire, frozen=True, kw_only=True):
    """A named request with the fields of v1's ``exactly`` directly on it, or ``first_available``."""

    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceClaim(Wire, frozen=True, kw_only=True):
    """Requests, constraints and configuration."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Wire, frozen=True, kw_only=True):
    """What is claimed; immutable."""

    devices: DeviceClaim = DeviceClaim()


class ResourceClaim(Object, frozen=True, kw_only=True):
    """A request for devices and what was given for it."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["ResourceClaim"] = always("ResourceClaim")
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimList(ObjectList, frozen=True, kw_only=True):
    """Several claims."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["ResourceClaimList"] = always("ResourceClaimList")
    items: tuple[ResourceClaim, ...] = ()


class ResourceClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    """Labels, annotations and spec of the claims made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True, kw_only=True):
    """A pattern from which a claim is made for each pod or pod group."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["ResourceClaimTemplate"] = always("ResourceClaimTemplate")
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class ResourceClaimTemplateList(ObjectList, frozen=True, kw_only=True):
    """Several claim templates."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["ResourceClaimTemplateList"] = always("ResourceClaimTemplateList")
    items: tuple[ResourceClaimTemplate, ...] = ()


class BasicDevice(Wire, frozen=True, kw_only=True):
    """Everything about a device but its name; v1 has these fields on the device itself."""

    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: Mapping[str, NodeAllocatableResource] = field(default_factory=dict)


class Device(Wire, frozen=True, kw_only=True):
    """One device of a pool, its content wrapped in ``basic``."""

    name: str
    basic: BasicDevice | None = None


class ResourceSliceSpec(Wire, frozen=True, kw_only=True):
    """A part of a driver's pool; an empty node name and a false ``all_nodes`` mean unset."""

    driver: str
    pool: ResourcePool
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    """Devices that a driver offers."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["ResourceSlice"] = always("ResourceSlice")
    spec: ResourceSliceSpec


class ResourceSliceList(ObjectList, frozen=True, kw_only=True):
    """Several slices."""

    api_version: Literal["resource.k8s.io/v1beta1"] = always("resource.k8s.io/v1beta1")
    kind: Literal["ResourceSliceList"] = always("ResourceSliceList")
    items: tuple[ResourceSlice, ...] = ()
