"""Which rules an object is judged by.

Owns the way from an object of any version to the errors of its v1 form.
"""

from __future__ import annotations

import re
from typing import Final, cast

from draht.api.conversion import to_v1
from draht.api.meta import Object
from draht.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from draht.validation.allocation import check_status, declare_status
from draht.validation.claim import RequestNames, check_devices, declare_devices
from draht.validation.device_class import check_device_class
from draht.validation.errors import FieldError, Report
from draht.validation.gates import DEFAULT, Gates, drop
from draht.validation.metadata import check_metadata, check_template_metadata
from draht.validation.resource_slice import check_slice
from draht.validation.taint_rule import check_taint_rule

__all__ = ["dropped_fields", "is_judged", "validate", "written_path"]

_JUDGED = (DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice)


def _as_v1(obj: Object) -> Object:
    return cast("Object", to_v1(obj))


def is_judged(obj: Object) -> bool:
    """Whether there are rules for an object's kind."""
    return isinstance(_as_v1(obj), _JUDGED)


def validate(obj: Object, *, gates: Gates = DEFAULT) -> tuple[FieldError, ...]:
    """What kube-apiserver 1.37 would say if the object were created: every error, in its order.

    A status that the object has is judged as one that is written right after, although the server ignores the status of
    an object that is created. Fields behind a gate that is off aren't judged, as the server drops them before.

    Not judged, because an object alone doesn't tell: whether its name is taken, whether the namespace of a claim allows
    admin access, who asks, and what an update may change.

    Args:
        obj: An object of ``resource.k8s.io`` in any version; it is judged as v1. Other objects have no errors.
        gates: The features that are on.
    """
    kept, _ = drop(_as_v1(obj), gates)
    report = Report()
    match kept:
        case ResourceSlice():
            check_slice(report, kept, gates)
        case DeviceClass():
            check_device_class(report, kept, gates)
        case DeviceTaintRule():
            check_taint_rule(report, kept)
        case ResourceClaim():
            check_metadata(report, kept.metadata, namespaced=True, keeps_generation=True)
            check_devices(report, kept.spec.devices, "spec.devices", gates)
            check_status(report, kept.status, RequestNames.of(kept.spec.devices))
            declare_devices(report, kept.spec.devices, "spec.devices")
            declare_status(report, kept.status)
        case ResourceClaimTemplate():
            check_metadata(report, kept.metadata, namespaced=True, keeps_generation=True)
            check_template_metadata(report, kept.spec.metadata, "spec.metadata")
            check_devices(report, kept.spec.spec.devices, "spec.spec.devices", gates)
            declare_devices(report, kept.spec.spec.devices, "spec.spec.devices")
        case _:
            pass
    return report.errors()


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
