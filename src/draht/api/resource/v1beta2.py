"""`resource.k8s.io/v1beta2` (1.33 to 1.38): the shapes of v1 under another version.

`draht.api.conversion` carries objects to v1 and back.
"""

from __future__ import annotations

from typing import Literal

from draht.api.meta import Object, ObjectList
from draht.api.resource.allocation import ResourceClaimStatus
from draht.api.resource.claim import ResourceClaimSpec, ResourceClaimTemplateSpec
from draht.api.resource.device_class import DeviceClassSpec
from draht.api.resource.resource_slice import ResourceSliceSpec
from draht.api.resource.taint_rule import DeviceTaintRuleSpec, DeviceTaintRuleStatus
from draht.api.wire import always

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


class DeviceClass(Object, frozen=True, kw_only=True):
    """A named way to ask for devices, made by an administrator."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceClass"] = always("DeviceClass")
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceClassList(ObjectList, frozen=True, kw_only=True):
    """Several device classes."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceClassList"] = always("DeviceClassList")
    items: tuple[DeviceClass, ...] = ()


class ResourceClaim(Object, frozen=True, kw_only=True):
    """A request for devices and what was given for it."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaim"] = always("ResourceClaim")
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimList(ObjectList, frozen=True, kw_only=True):
    """Several claims."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaimList"] = always("ResourceClaimList")
    items: tuple[ResourceClaim, ...] = ()


class ResourceClaimTemplate(Object, frozen=True, kw_only=True):
    """A pattern from which a claim is made for each pod or pod group."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaimTemplate"] = always("ResourceClaimTemplate")
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class ResourceClaimTemplateList(ObjectList, frozen=True, kw_only=True):
    """Several claim templates."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceClaimTemplateList"] = always("ResourceClaimTemplateList")
    items: tuple[ResourceClaimTemplate, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    """Devices that a driver offers."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceSlice"] = always("ResourceSlice")
    spec: ResourceSliceSpec


class ResourceSliceList(ObjectList, frozen=True, kw_only=True):
    """Several slices."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["ResourceSliceList"] = always("ResourceSliceList")
    items: tuple[ResourceSlice, ...] = ()


class DeviceTaintRule(Object, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceTaintRule"] = always("DeviceTaintRule")
    spec: DeviceTaintRuleSpec
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


class DeviceTaintRuleList(ObjectList, frozen=True, kw_only=True):
    """Several taint rules."""

    api_version: Literal["resource.k8s.io/v1beta2"] = always("resource.k8s.io/v1beta2")
    kind: Literal["DeviceTaintRuleList"] = always("DeviceTaintRuleList")
    items: tuple[DeviceTaintRule, ...] = ()
