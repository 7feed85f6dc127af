"""The values that the API server fills in when an object is created.

Owns the defaults of `resource.k8s.io` (``pkg/apis/resource/v1/defaults.go`` at v1.37) and of the namespace. What the
server takes from its clock or makes at random (``timeAdded`` of a taint, uids) is left alone.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import structs

from draht.api.meta import Object
from draht.api.resource import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)

__all__ = ["DEFAULT_NAMESPACE", "defaulted"]

DEFAULT_NAMESPACE = "default"
_NAMESPACED = {"Pod", "ResourceClaim", "ResourceClaimTemplate", "Event"}

_Object = TypeVar("_Object", bound=Object)
_Request = TypeVar("_Request", ExactDeviceRequest, DeviceSubRequest)


def defaulted(obj: _Object) -> _Object:
    """The object as a server would store it, as far as defaults go."""
    if obj.kind in _NAMESPACED and not obj.metadata.namespace:
        obj = structs.replace(obj, metadata=structs.replace(obj.metadata, namespace=DEFAULT_NAMESPACE))
    if isinstance(obj, ResourceClaim):
        return structs.replace(obj, spec=structs.replace(obj.spec, devices=_claim(obj.spec.devices)))
    if isinstance(obj, ResourceClaimTemplate):
        inner = structs.replace(obj.spec.spec, devices=_claim(obj.spec.spec.devices))
        return structs.replace(obj, spec=structs.replace(obj.spec, spec=inner))
    return obj


def _claim(claim: DeviceClaim) -> DeviceClaim:
    return structs.replace(claim, requests=tuple(_request(request) for request in claim.requests))


def _request(request: DeviceRequest) -> DeviceRequest:
    return structs.replace(
        request,
        exactly=None if request.exactly is None else _filled(request.exactly),
        first_available=tuple(_filled(each) for each in request.first_available),
    )


def _filled(request: _Request) -> _Request:
    mode = request.allocation_mode or "ExactCount"
    return structs.replace(
        request,
        allocation_mode=mode,
        count=1 if mode == "ExactCount" and request.count == 0 else request.count,
        tolerations=tuple(_toleration(each) for each in request.tolerations),
    )


def _toleration(toleration: DeviceToleration) -> DeviceToleration:
    return toleration if toleration.operator else structs.replace(toleration, operator="Equal")
