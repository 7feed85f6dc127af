"""Objects of the older `resource.k8s.io` versions to v1 and back.

draht works on v1 alone; what older servers and manifests speak is converted at the edge. The rules are those of the
API server (its conversion functions for v1beta1 and v1beta2 at v1.37):

- v1beta2, and v1alpha3's DeviceTaintRule, have the shapes of v1: only the version changes.
- v1beta1 has the fields of ``exactly`` on the request itself. If any of them is set, v1 has ``exactly``.
- v1beta1 wraps a device in ``basic``; coming from v1 it is always there, even when it is empty.
- v1beta1 has no way to say that a slice's ``nodeName`` or ``allNodes`` is given but empty or false.

Three things therefore don't survive a way through v1beta1, here as in the server, and validation refuses the first two
anyway: an ``exactly`` without any content, a slice's empty ``nodeName`` and its ``allNodes: false``. Beyond the
server's, ``selectors: []`` and the like on an otherwise empty v1beta1 request count as unset, because wire structs
don't tell an empty list from none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

from msgspec import structs

from draht.api import resource
from draht.api.errors import DrahtError
from draht.api.kinds import KINDS, LISTS
from draht.api.meta import Object, ObjectList
from draht.api.resource import v1beta1
from draht.api.wire import Wire

__all__ = ["ConversionError", "Version", "from_v1", "to_v1"]

Version = Literal["v1", "v1beta2", "v1beta1", "v1alpha3"]

GROUP = "resource.k8s.io"

_Struct = TypeVar("_Struct", bound=Wire)
_Rule = Callable[[Any], Wire]


class ConversionError(DrahtError):
    """The kind doesn't exist in the version asked for."""


def to_v1(obj: Object | ObjectList) -> Object | ObjectList:
    """The same object in v1; objects of other groups and of v1 come back as they are."""
    return _converted(obj, f"{GROUP}/v1", _FROM_V1BETA1 if obj.api_version == f"{GROUP}/v1beta1" else {})


def from_v1(obj: Object | ObjectList, version: Version) -> Object | ObjectList:
    """The same object in an older version; objects of other groups come back as they are.

    Raises:
        ConversionError: The version has no such kind (DeviceTaintRule in v1beta1, all others in v1alpha3), or the
            object isn't v1.
    """
    if obj.api_version.startswith(f"{GROUP}/") and obj.api_version != f"{GROUP}/v1":
        raise ConversionError(f"{obj.api_version} {obj.kind} isn't v1", hint="convert it with to_v1 first")
    return _converted(obj, f"{GROUP}/{version}", _TO_V1BETA1 if version == "v1beta1" else {})


def _converted(obj: Object | ObjectList, version: str, rules: dict[type[Wire], _Rule]) -> Object | ObjectList:
    if not obj.api_version.startswith(f"{GROUP}/") or obj.api_version == version:
        return obj
    target = KINDS.get((version, obj.kind)) or LISTS.get((version, obj.kind))
    if target is None:
        raise ConversionError(
            f"{version} has no {obj.kind}", hint="write it in the version of the server, `kubectl api-resources`"
        )
    if isinstance(obj, ObjectList):
        items = tuple(_converted(item, version, rules) for item in cast("Any", obj).items)
        return _rebuilt(obj, target, items=items)
    changes = {
        name: rules[type(value)](value) for name in obj.__struct_fields__ if type(value := getattr(obj, name)) in rules
    }
    return _rebuilt(obj, target, **changes)


def _rebuilt(source: Wire, target: type[_Struct], **changes: object) -> _Struct:
    """A struct of another type with the fields both have, except those given."""
    common = set(target.__struct_fields__) & set(source.__struct_fields__) - {"api_version", "kind"}
    return target(**{name: getattr(source, name) for name in common} | changes)


_EXACT_FIELDS = resource.ExactDeviceRequest.__struct_fields__


def _request_to_v1(request: v1beta1.DeviceRequest) -> resource.DeviceRequest:
    values = {name: getattr(request, name) for name in _EXACT_FIELDS}
    given = any(value is not None and value not in ("", 0, ()) for value in values.values())
    given = given or request.admin_access is not None
    exactly = resource.ExactDeviceRequest(**values) if given else None
    return _rebuilt(request, resource.DeviceRequest, exactly=exactly)


def _request_to_v1beta1(request: resource.DeviceRequest) -> v1beta1.DeviceRequest:
    flat = structs.asdict(request.exactly) if request.exactly is not None else {}
    return _rebuilt(request, v1beta1.DeviceRequest, **flat)


def _claim_to_v1(spec: v1beta1.ResourceClaimSpec) -> resource.ResourceClaimSpec:
    requests = tuple(_request_to_v1(request) for request in spec.devices.requests)
    return resource.ResourceClaimSpec(devices=_rebuilt(spec.devices, resource.DeviceClaim, requests=requests))


def _claim_to_v1beta1(spec: resource.ResourceClaimSpec) -> v1beta1.ResourceClaimSpec:
    requests = tuple(_request_to_v1beta1(request) for request in spec.devices.requests)
    return v1beta1.ResourceClaimSpec(devices=_rebuilt(spec.devices, v1beta1.DeviceClaim, requests=requests))


def _slice_to_v1(spec: v1beta1.ResourceSliceSpec) -> resource.ResourceSliceSpec:
    return _rebuilt(
        spec,
        resource.ResourceSliceSpec,
        node_name=spec.node_name or None,
        all_nodes=spec.all_nodes or None,
        devices=tuple(
            _rebuilt(device.basic or v1beta1.BasicDevice(), resource.Device, name=device.name)
            for device in spec.devices
        ),
    )


def _slice_to_v1beta1(spec: resource.ResourceSliceSpec) -> v1beta1.ResourceSliceSpec:
    return _rebuilt(
        spec,
        v1beta1.ResourceSliceSpec,
        node_name=spec.node_name or "",
        all_nodes=bool(spec.all_nodes),
        devices=tuple(
            v1beta1.Device(name=device.name, basic=_rebuilt(device, v1beta1.BasicDevice)) for device in spec.devices
        ),
    )


_FROM_V1BETA1: dict[type[Wire], _Rule] = {
    v1beta1.ResourceClaimSpec: _claim_to_v1,
    v1beta1.ResourceClaimTemplateSpec: lambda template: _rebuilt(
        template, resource.ResourceClaimTemplateSpec, spec=_claim_to_v1(template.spec)
    ),
    v1beta1.ResourceSliceSpec: _slice_to_v1,
}

_TO_V1BETA1: dict[type[Wire], _Rule] = {
    resource.ResourceClaimSpec: _claim_to_v1beta1,
    resource.ResourceClaimTemplateSpec: lambda template: _rebuilt(
        template, v1beta1.ResourceClaimTemplateSpec, spec=_claim_to_v1beta1(template.spec)
    ),
    resource.ResourceSliceSpec: _slice_to_v1beta1,
}
