"""Which rules an object is judged by.

Owns the way from an object of any version, new or in place of an old one, to the errors of its v1 form.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, cast

from draht.api.conversion import to_v1
from draht.api.meta import Object
from draht.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from draht.validation.allocation import check_status, declare_status
from draht.validation.claim import RequestNames, check_devices, declare_devices
from draht.validation.device_class import check_device_class
from draht.validation.errors import FieldError, Report
from draht.validation.gates import DEFAULT, Gates, drop, with_used
from draht.validation.metadata import check_class_metadata, check_metadata, check_path_segments
from draht.validation.resource_slice import check_slice
from draht.validation.taint_rule import check_rule_status, check_taint_rule
from draht.validation.template import check_template
from draht.validation.update import check_status_update, check_update

__all__ = ["dropped_fields", "is_judged", "validate", "written_path"]

_V1: Final = "resource.k8s.io/v1"
_JUDGED = (DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice)


def _as_v1(obj: Object) -> Object:
    return cast("Object", to_v1(obj))


def is_judged(obj: Object) -> bool:
    """Whether there are rules for an object's kind."""
    return isinstance(_as_v1(obj), _JUDGED)


def validate(
    obj: Object,
    *,
    gates: Gates = DEFAULT,
    old: Object | None = None,
    subresource: Literal["", "status"] = "",
    empty: Collection[str] = (),
) -> tuple[FieldError, ...]:
    """What kube-apiserver 1.37 would say if the object were created or updated: every error, in its order.

    When an object is created, a status that it has is judged as one that is written right after, although the server
    ignores it then. Fields behind a gate that is off aren't judged, as the server drops them before.

    Not judged, because the objects alone don't tell: whether a name is taken, whether the namespace of a claim allows
    admin access, who asks.

    Args:
        obj: An object of ``resource.k8s.io`` in any version; it is judged as v1. Other objects have no errors.
        gates: The features that are on.
        old: The object of the same kind that is there, for an update. It is taken to be good.
        subresource: What of it is updated: ``status``, or everything else.
        empty: Paths of lists that are written and empty. Structs don't tell them from lists that aren't there, which
            the server does in attributes and where devices and shared counters exclude each other.
    """
    before = _as_v1(old) if old is not None else None
    keeps = gates if before is None else with_used(gates, before)
    kept, _ = drop(_as_v1(obj), keeps)
    written = [path for path in map(_v1_path, empty) if _is_kept(path, keeps)]
    report = Report()
    if before is None:
        _check_new(report, kept, gates, written)
    elif type(before) is type(kept):
        if subresource == "status":
            check_status_update(report, kept, before)
        else:
            check_update(report, kept, before, gates, needs_version=obj.api_version == _V1, empty=written)
    return report.errors()


def _v1_path(path: str) -> str:
    return path.replace(".basic.", ".")


def _is_kept(path: str, gates: Gates) -> bool:
    """Whether an empty list is still there when the server judges."""
    if path == "spec.sharedCounters":
        return gates.partitionable_devices
    return gates.list_type_attributes or not path.startswith("spec.devices[")


def _check_new(report: Report, obj: Object, gates: Gates, empty: Collection[str]) -> None:
    match obj:
        case ResourceSlice():
            check_metadata(report, obj.metadata, namespaced=False)
            check_slice(report, obj, gates, empty=empty)
        case DeviceClass():
            check_class_metadata(report, obj.metadata)
            check_device_class(report, obj, gates)
            if not report.has_written:
                # Upstream asks this of every kind, but only where it has found nothing else.
                check_path_segments(report, obj.metadata)
        case DeviceTaintRule():
            check_metadata(report, obj.metadata, namespaced=False)
            check_taint_rule(report, obj)
            check_rule_status(report, obj.status)
        case ResourceClaim():
            check_metadata(report, obj.metadata, namespaced=True, keeps_generation=True)
            check_devices(report, obj.spec.devices, "spec.devices", gates)
            check_status(report, obj.status, RequestNames.of(obj.spec.devices))
            declare_devices(report, obj.spec.devices, "spec.devices")
            declare_status(report, obj.status)
        case ResourceClaimTemplate():
            check_metadata(report, obj.metadata, namespaced=True, keeps_generation=True)
            check_template(report, obj, gates)
        case _:
            pass


def dropped_fields(obj: Object, *, gates: Gates = DEFAULT) -> tuple[str, ...]:
    """Paths of the fields that the server drops because their features are off."""
    return drop(_as_v1(obj), gates)[1]


_EXACTLY: Final = re.compile(r"(\.requests\[\d+\])\.exactly\b")
_DEVICE: Final = re.compile(r"^(spec\.devices\[\d+\])\.(?!name\b)")


def written_path(obj: Object, path: str) -> str:
    """The path of a v1 field in the version that an object is written in."""
    if obj.api_version != "resource.k8s.io/v1beta1":
        return path
    if obj.kind == "ResourceSlice":
        return _DEVICE.sub(r"\1.basic.", path)
    return _EXACTLY.sub(r"\1", path)
