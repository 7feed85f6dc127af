"""What a ResourceClaim asks for: requests, alternatives, constraints, configuration, derived attributes.

Owns the rules of ``spec.devices`` of claims and of claim templates (``validateDeviceClaim`` of
``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2). Whether a namespace allows admin access is the cluster's
business and isn't judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from draht.api.resource import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from draht.validation.configuration import check_configuration, declare_configuration
from draht.validation.errors import Report, one_of
from draht.validation.gates import Gates
from draht.validation.identity import (
    check_class_name,
    check_device_name,
    check_full_name,
    declare_class_name,
    declare_full_name,
)
from draht.validation.limits import (
    CONFIGURATIONS,
    CONSTRAINTS,
    DERIVED_ATTRIBUTES,
    EXPRESSION_COST,
    FIRST_AVAILABLE,
    REQUESTS,
)
from draht.validation.lists import check_list, check_set, declare_too_many, declare_unique
from draht.validation.selectors import Expressions, check_selectors, declare_selectors
from draht.validation.taints import check_toleration, declare_toleration

__all__ = ["RequestNames", "check_devices", "check_request_reference", "declare_devices"]

_MODES = ("All", "ExactCount")


@dataclass(frozen=True, slots=True)
class RequestNames:
    """The requests of a claim and their alternatives."""

    alternatives: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, devices: DeviceClaim) -> RequestNames:
        """Of a claim; of several requests with one name, the last counts."""
        return cls({each.name: frozenset(sub.name for sub in each.first_available) for each in devices.requests})

    def __contains__(self, reference: str) -> bool:
        request, slash, alternative = reference.partition("/")
        known = self.alternatives.get(request)
        return known is not None and (not slash or alternative in known)


def check_request_reference(report: Report, reference: str, path: str, requests: RequestNames) -> None:
    """Judge ``request`` or ``request/alternative`` where a claim refers to its own requests."""
    hint = f"the claim has {', '.join(sorted(requests.alternatives)[:8])}" if requests.alternatives else None
    message = "must be a request of this claim, or <request>/<alternative>"
    segments = reference.split("/")
    if len(segments) > 2:
        report.invalid(path, reference, message, hint=hint)
        return
    for segment in segments:
        check_device_name(report, segment, path)
    if reference not in requests:
        report.invalid(path, reference, message, hint=hint)


def check_devices(report: Report, devices: DeviceClaim, path: str, gates: Gates) -> None:
    """Judge what a claim asks for."""
    requests = RequestNames.of(devices)
    expressions = Expressions(gates)
    constrained = _constrained_attributes(devices.constraints)
    check_set(
        report,
        devices.requests,
        f"{path}.requests",
        lambda request, place: _check_request(report, request, place, expressions, constrained),
        lambda request: request.name,
        limit=REQUESTS,
    )
    check_list(
        report,
        devices.constraints,
        f"{path}.constraints",
        lambda constraint, place: _check_constraint(report, constraint, place, requests, gates),
        limit=CONSTRAINTS,
    )
    check_list(
        report,
        devices.config,
        f"{path}.config",
        lambda config, place: _check_configuration(report, config, place, requests),
        limit=CONFIGURATIONS,
    )
    if expressions.derived_cost > EXPRESSION_COST:
        report.forbidden(path, "the derived attributes together could cost more than those of a claim may")


def _check_request(
    report: Report,
    request: DeviceRequest,
    path: str,
    expressions: Expressions,
    constrained: Mapping[str, frozenset[str]],
) -> None:
    check_device_name(report, request.name, f"{path}.name")
    if request.exactly is not None and request.first_available:
        report.invalid(path, None, "must have only one of exactly and firstAvailable")
    elif request.exactly is not None:
        _check_exact(report, request.exactly, f"{path}.exactly", request.name, expressions, constrained)
    elif request.first_available:
        check_set(
            report,
            request.first_available,
            f"{path}.firstAvailable",
            lambda sub, place: _check_alternative(report, sub, place, request.name, expressions, constrained),
            lambda sub: sub.name,
            limit=FIRST_AVAILABLE,
        )
    else:
        report.required(path, "one of exactly and firstAvailable is required")


def _check_alternative(
    report: Report,
    request: DeviceSubRequest,
    path: str,
    parent: str,
    expressions: Expressions,
    constrained: Mapping[str, frozenset[str]],
) -> None:
    check_device_name(report, request.name, f"{path}.name")
    _check_content(report, request, path, f"{parent}/{request.name}", expressions, constrained, class_name_covered=True)


def _check_exact(
    report: Report,
    request: ExactDeviceRequest,
    path: str,
    name: str,
    expressions: Expressions,
    constrained: Mapping[str, frozenset[str]],
) -> None:
    _check_content(report, request, path, name, expressions, constrained, class_name_covered=False)


def _check_content(
    report: Report,
    request: ExactDeviceRequest | DeviceSubRequest,
    path: str,
    reference: str,
    expressions: Expressions,
    constrained: Mapping[str, frozenset[str]],
    *,
    class_name_covered: bool,
) -> None:
    check_class_name(report, request.device_class_name, f"{path}.deviceClassName", covered=class_name_covered)
    check_selectors(report, request.selectors, f"{path}.selectors", expressions)
    check_set(
        report,
        request.derived_attributes,
        f"{path}.derivedAttributes",
        lambda derived, place: _check_derived(report, derived, place, reference, expressions, constrained),
        lambda derived: derived.name,
        unique_covered=False,
    )
    _check_amount(report, request, path)
    for index, toleration in enumerate(request.tolerations):
        check_toleration(report, toleration, f"{path}.tolerations[{index}]")


def _check_amount(report: Report, request: ExactDeviceRequest | DeviceSubRequest, path: str) -> None:
    # The server fills in mode and count before it judges.
    mode = request.allocation_mode or "ExactCount"
    if mode == "All":
        if request.count != 0:
            report.invalid(f"{path}.count", request.count, "must not be set with allocationMode All")
    elif mode == "ExactCount":
        if request.count < 0:
            report.invalid(f"{path}.count", request.count, "must be greater than zero")
    else:
        report.not_supported(f"{path}.allocationMode", mode, _MODES, covered=True)


def _check_derived(
    report: Report,
    derived: DeviceDerivedAttribute,
    path: str,
    reference: str,
    expressions: Expressions,
    constrained: Mapping[str, frozenset[str]],
) -> None:
    request = reference.partition("/")[0]
    if derived.name and not any(derived.name in constrained.get(key, ()) for key in ("", reference, request)):
        message = "must be the matchAttribute or distinctAttribute of a constraint on this request"
        report.invalid(f"{path}.name", derived.name, message)
    if derived.expression:
        expressions.check(report, derived.expression, f"{path}.expression", derived=True)


def _constrained_attributes(constraints: tuple[DeviceConstraint, ...]) -> Mapping[str, frozenset[str]]:
    """Request, or an empty text for all of them → the attributes that constraints compare."""
    found: dict[str, set[str]] = {}
    for constraint in constraints:
        name = constraint.match_attribute
        if name is None:
            name = constraint.distinct_attribute
        if name is not None:
            for request in constraint.requests or ("",):
                found.setdefault(request, set()).add(name)
    return {request: frozenset(attributes) for request, attributes in found.items()}


def _check_constraint(
    report: Report, constraint: DeviceConstraint, path: str, requests: RequestNames, gates: Gates
) -> None:
    _check_references(report, constraint.requests, f"{path}.requests", requests)
    if constraint.match_attribute is not None:
        check_full_name(report, constraint.match_attribute, f"{path}.matchAttribute", covered=True)
    elif constraint.distinct_attribute is not None:
        check_full_name(report, constraint.distinct_attribute, f"{path}.distinctAttribute", covered=True)
    elif gates.consumable_capacity:
        report.required(path, "one of matchAttribute and distinctAttribute is required")
    else:
        report.required(f"{path}.matchAttribute")


def _check_references(report: Report, references: tuple[str, ...], path: str, requests: RequestNames) -> None:
    check_set(
        report,
        references,
        path,
        lambda reference, place: check_request_reference(report, reference, place, requests),
        lambda reference: reference,
        limit=REQUESTS,
    )


def _check_configuration(report: Report, config: DeviceClaimConfiguration, path: str, requests: RequestNames) -> None:
    _check_references(report, config.requests, f"{path}.requests", requests)
    check_configuration(report, config, path)


# Declared rules


def declare_devices(report: Report, devices: DeviceClaim, path: str) -> None:
    """The declared rules of what a claim asks for."""
    place = f"{path}.requests"
    if not declare_too_many(report, place, len(devices.requests), REQUESTS):
        declare_unique(report, devices.requests, place, lambda request: request.name)
        for index, request in enumerate(devices.requests):
            _declare_request(report, request, f"{place}[{index}]")
    place = f"{path}.constraints"
    if not declare_too_many(report, place, len(devices.constraints), CONSTRAINTS):
        for index, constraint in enumerate(devices.constraints):
            _declare_constraint(report, constraint, f"{place}[{index}]")
    place = f"{path}.config"
    if not declare_too_many(report, place, len(devices.config), CONFIGURATIONS):
        for index, config in enumerate(devices.config):
            declare_references(report, config.requests, f"{place}[{index}].requests")
            declare_configuration(report, config, f"{place}[{index}]")


def declare_references(report: Report, references: tuple[str, ...], path: str) -> None:
    """The declared rules of a list of requests."""
    if not declare_too_many(report, path, len(references), REQUESTS):
        declare_unique(report, references, path, lambda reference: reference)


def _declare_request(report: Report, request: DeviceRequest, path: str) -> None:
    if request.exactly is not None:
        _declare_content(report, request.exactly, f"{path}.exactly")
    place = f"{path}.firstAvailable"
    if not declare_too_many(report, place, len(request.first_available), FIRST_AVAILABLE):
        declare_unique(report, request.first_available, place, lambda sub: sub.name)
        for index, sub in enumerate(request.first_available):
            declare_class_name(report, sub.device_class_name, f"{place}[{index}].deviceClassName")
            _declare_content(report, sub, f"{place}[{index}]")


def _declare_content(report: Report, request: ExactDeviceRequest | DeviceSubRequest, path: str) -> None:
    declare_selectors(report, request.selectors, f"{path}.selectors")
    if request.allocation_mode and request.allocation_mode not in _MODES:
        report.declare("NotSupported", f"{path}.allocationMode", one_of(_MODES), request.allocation_mode)
    for index, toleration in enumerate(request.tolerations):
        declare_toleration(report, toleration, f"{path}.tolerations[{index}]")
    place = f"{path}.derivedAttributes"
    if not declare_too_many(report, place, len(request.derived_attributes), DERIVED_ATTRIBUTES, replaces=False):
        for index, derived in enumerate(request.derived_attributes):
            if not derived.name:
                report.declare("Required", f"{place}[{index}].name", "a value is required", replaces=False)
            else:
                declare_full_name(report, derived.name, f"{place}[{index}].name", replaces=False)
            if not derived.expression:
                report.declare("Required", f"{place}[{index}].expression", "a value is required", replaces=False)


def _declare_constraint(report: Report, constraint: DeviceConstraint, path: str) -> None:
    declare_references(report, constraint.requests, f"{path}.requests")
    if constraint.match_attribute is not None:
        declare_full_name(report, constraint.match_attribute, f"{path}.matchAttribute")
    if constraint.distinct_attribute is not None:
        declare_full_name(report, constraint.distinct_attribute, f"{path}.distinctAttribute")
