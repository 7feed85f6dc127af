"""ResourceClaim and ResourceClaimTemplate: what is asked for, and what was given."""

from __future__ import annotations

from typing import Literal

from draht.api.meta import Object, ObjectList, ObjectMeta
from draht.api.resource.allocation import ResourceClaimStatus
from draht.api.resource.selector import (
    CapacityRequirements,
    DeviceConfiguration,
    DeviceDerivedAttribute,
    DeviceSelector,
    DeviceToleration,
)
from draht.api.wire import Int64, Wire, always

__all__ = [
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceConstraint",
    "DeviceRequest",
    "DeviceSubRequest",
    "ExactDeviceRequest",
    "ResourceClaim",
    "ResourceClaimList",
    "ResourceClaimSpec",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateList",
    "ResourceClaimTemplateSpec",
]


class ExactDeviceRequest(Wire, frozen=True, kw_only=True):
    """A request for devices of one class."""

    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(Wire, frozen=True, kw_only=True):
    """One alternative of a prioritised list; no admin access."""

    name: str
    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(Wire, frozen=True, kw_only=True):
    """A named request: exactly one of ``exactly`` and ``first_available`` is set."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True, kw_only=True):
    """What the devices of several requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(DeviceConfiguration, frozen=True, kw_only=True):
    """Configuration for the devices of some or all requests."""

    requests: tuple[str, ...] = ()


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

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["ResourceClaim"] = always("ResourceClaim")
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimList(ObjectList, frozen=True, kw_only=True):
    """Several claims."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["ResourceClaimList"] = always("ResourceClaimList")
    items: tuple[ResourceClaim, ...] = ()


class ResourceClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    """Labels, annotations and spec of the claims made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True, kw_only=True):
    """A pattern from which a claim is made for each pod or pod group."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["ResourceClaimTemplate"] = always("ResourceClaimTemplate")
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class ResourceClaimTemplateList(ObjectList, frozen=True, kw_only=True):
    """Several claim templates."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["ResourceClaimTemplateList"] = always("ResourceClaimTemplateList")
    items: tuple[ResourceClaimTemplate, ...] = ()
