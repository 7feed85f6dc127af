"""`resource.k8s.io/v1beta2` (1.33 to 1.38): the shapes of v1 under another version.

`draht.api.conversion` carries objects to v1 and back.
"""

from __future__ import annotations

from typing import Literal

from draht.api.meta import ListMeta, ObjectMeta
from draht.api.resource.allocation import ResourceClaimStatus
from draht.api.resource.claim import ResourceClaimSpec, ResourceClaimTemplateSpec
from draht.api.resource.device_class import DeviceClassSpec
from draht.api.resource.resource_slice import ResourceSliceSpec
from draht.api.resource.taint_rule import DeviceTaintRuleSpec, DeviceTaintRuleStatus
from draht.api.wire import Wire, always

__all__ = [
    "DeviceClass",
    "DeviceClassList",
    "DeviceTaintRule",
    "DeviceTaintRuleList",
    "ResourceClaim",
    "ResourceClaimList",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateList",
    "ResourceSlice",
    "ResourceSliceList",
]


class DeviceClass(Wire, frozen=True, kw_only=True):
    """A named way to ask for devices, made by an administrator."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceClass"] = always("DeviceClass")
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceClassList(Wire, frozen=True, kw_only=True):
    """Several device classes."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceClassList"] = always("DeviceClassList")
    metadata: ListMeta = ListMeta()
    items: tuple[DeviceClass, ...] = ()


class ResourceClaim(Wire, frozen=True, kw_only=True):
    """A request for devices and what was given for it."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaim"] = always("ResourceClaim")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimList(Wire, frozen=True, kw_only=True):
    """Several claims."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaimList"] = always("ResourceClaimList")
    metadata: ListMeta = ListMeta()
    items: tuple[ResourceClaim, ...] = ()


class ResourceClaimTemplate(Wire, frozen=True, kw_only=True):
    """A pattern from which a claim is made for each pod or pod group."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaimTemplate"] = always("ResourceClaimTemplate")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class ResourceClaimTemplateList(Wire, frozen=True, kw_only=True):
    """Several claim templates."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaimTemplateList"] = always("ResourceClaimTemplateList")
    metadata: ListMeta = ListMeta()
    items: tuple[ResourceClaimTemplate, ...] = ()


class ResourceSlice(Wire, frozen=True, kw_only=True):
    """Devices that a driver offers."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceSlice"] = always("ResourceSlice")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec


class ResourceSliceList(Wire, frozen=True, kw_only=True):
    """Several slices."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceSliceList"] = always("ResourceSliceList")
    metadata: ListMeta = ListMeta()
    items: tuple[ResourceSlice, ...] = ()


class DeviceTaintRule(Wire, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceTaintRule"] = always("DeviceTaintRule")
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


class DeviceTaintRuleList(Wire, frozen=True, kw_only=True):
    """Several taint rules."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceTaintRuleList"] = always("DeviceTaintRuleList")
    metadata: ListMeta = ListMeta()
    items: tuple[DeviceTaintRule, ...] = ()
