"""Updates: what may change in an object that is there, and what isn't judged again.

Owns the order of upstream's ``Validate<Kind>Update`` functions (``k8s.io/kubernetes/pkg/apis/resource/validation`` at
v1.37.2) and what the server takes from the old object before it judges. The rules themselves are those of new objects.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from msgspec import structs

from draht.api.meta import Object
from draht.api.resource import (
    DeviceClass,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from draht.validation.allocation import check_status, declare_status, without_deallocated
from draht.validation.claim import RequestNames
from draht.validation.device_class import check_device_class
from draht.validation.equality import same
from draht.validation.errors import Report
from draht.validation.gates import Gates
from draht.validation.metadata import (
    check_changes,
    check_class_metadata,
    check_metadata,
    check_path_segments,
    check_stored_metadata,
)
from draht.validation.resource_slice import check_slice
from draht.validation.taint_rule import check_rule_status, check_taint_rule
from draht.validation.template import check_template

__all__ = ["check_status_update", "check_update"]


def check_update(
    report: Report, new: Object, old: Object, gates: Gates, *, needs_version: bool, empty: Collection[str]
) -> None:
    """Judge an update of everything but the status.

    Args:
        report: Takes what is wrong.
        new: The object that is sent, as v1.
        old: The object of the same kind that is there, as v1.
        gates: The features that are on.
        needs_version: The request came as v1, where the server wants a rule's resourceVersion.
        empty: Paths of lists that are written and empty.
    """
    needs_version = needs_version and isinstance(new, DeviceTaintRule)
    metadata = check_changes(report, new.metadata, old.metadata, needs_version=needs_version)
    match new, old:
        case ResourceSlice(), ResourceSlice():
            check_stored_metadata(report, metadata)
            check_slice(report, new, gates, old.spec, empty)
        case DeviceClass(), DeviceClass():
            check_path_segments(report, metadata)
            check_class_metadata(report, metadata)
            check_device_class(report, new, gates, old.spec)
        case DeviceTaintRule(), DeviceTaintRule():
            check_stored_metadata(report, metadata)
            check_taint_rule(report, new, old.spec)
        case ResourceClaim(), ResourceClaim():
            check_metadata(report, metadata, namespaced=True, keeps_generation=True)
            _check_immutable(report, _filled(new.spec), _filled(old.spec))
        case ResourceClaimTemplate(), ResourceClaimTemplate():
            check_metadata(report, metadata, namespaced=True, keeps_generation=True)
            check_template(report, new, gates)
            filled = (structs.replace(each.spec, spec=_filled(each.spec.spec)) for each in (new, old))
            _check_immutable(report, *filled)
        case _:
            pass


_Request = TypeVar("_Request", ExactDeviceRequest, DeviceSubRequest)


def _filled(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    """What a claim asks for, with what the server fills in before it compares."""
    requests = tuple(
        structs.replace(
            request,
            exactly=None if request.exactly is None else _filled_request(request.exactly),
            first_available=tuple(map(_filled_request, request.first_available)),
        )
        for request in spec.devices.requests
    )
    return structs.replace(spec, devices=structs.replace(spec.devices, requests=requests))


def _filled_request(request: _Request) -> _Request:
    mode = request.allocation_mode or "ExactCount"
    return structs.replace(
        request,
        allocation_mode=mode,
        count=request.count or int(mode == "ExactCount"),
        tolerations=tuple(structs.replace(each, operator=each.operator or "Equal") for each in request.tolerations),
    )


def _check_immutable(report: Report, new: object, old: object) -> None:
    if not same(new, old):
        report.invalid("spec", None, "can't be changed")


def check_status_update(report: Report, new: Object, old: Object) -> None:
    """Judge an update of the status alone; the rest is what it was.

    Args:
        report: Takes what is wrong.
        new: The object that is sent, as v1.
        old: The object of the same kind that is there, as v1.
    """
    metadata = check_changes(report, new.metadata, old.metadata, status=True)
    match new, old:
        case ResourceClaim(), ResourceClaim():
            check_stored_metadata(report, metadata)
            status = without_deallocated(new.status, old.status)
            requests = RequestNames.of(old.spec.devices)
            deleted = old.metadata.deletion_timestamp is not None
            check_status(report, status, requests, old.status, deleted=deleted)
            declare_status(report, status, old.status)
        case DeviceTaintRule(), DeviceTaintRule():
            check_stored_metadata(report, metadata)
            check_rule_status(report, new.status)
        case _:
            pass
