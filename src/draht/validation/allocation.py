"""The status of a claim: what was allocated, for whom, and what drivers report of its devices.

Owns the rules of a status that is written (``validateResourceClaimStatusUpdate`` of
``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2): for the first time, or in place of one that is there.
Who may write it needs more than the object.
"""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias

from msgspec import structs

from draht.api.meta import Condition
from draht.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from draht.validation import names
from draht.validation.binding import check_binding_conditions, check_skipped_operations, declare_skipped_operations
from draht.validation.claim import RequestNames, check_request_reference, declare_references
from draht.validation.configuration import check_configuration, check_raw, declare_configuration
from draht.validation.equality import same
from draht.validation.errors import Report, one_of
from draht.validation.identity import (
    check_device_name,
    check_driver,
    check_pool,
    check_uuid,
    declare_driver,
    declare_pool,
    declare_uuid,
)
from draht.validation.limits import (
    BINDING_CONDITIONS,
    CONDITIONS,
    CONFIGURATIONS,
    CONSUMERS,
    DEVICE_DATA_BYTES,
    HARDWARE_ADDRESS_BYTES,
    INTERFACE_NAME_BYTES,
    IPS,
    REQUESTS,
)
from draht.validation.lists import check_list, check_set, declare_too_many, declare_unique, duplicates
from draht.validation.node_selector import check_node_selector
from draht.validation.taints import check_toleration, declare_toleration

__all__ = ["check_conditions", "check_status", "declare_status", "without_deallocated"]

_SOURCES: Final = ("FromClaim", "FromClass")
_STATUSES: Final = ("False", "True", "Unknown")
_REASON_BYTES: Final = 1024
_MESSAGE_BYTES: Final = 32 * 1024

DeviceKey: TypeAlias = tuple[str, str, str, str | None]
"""Driver, pool, device and share."""


def without_deallocated(status: ResourceClaimStatus, old: ResourceClaimStatus) -> ResourceClaimStatus:
    """A status without what it says of devices that it takes out of the allocation: the server drops that."""
    gone = _allocated(old) - _allocated(status)
    devices = tuple(
        each for each in status.devices if _key(each.driver, each.pool, each.device, each.share_id) not in gone
    )
    return structs.replace(status, devices=devices)


def check_status(
    report: Report,
    status: ResourceClaimStatus,
    requests: RequestNames,
    old: ResourceClaimStatus | None = None,
    *,
    deleted: bool = False,
) -> None:
    """Judge the status of a claim.

    Args:
        report: Takes what is wrong.
        status: The status.
        requests: The requests of the claim.
        old: The status that is there.
        deleted: Whether the claim is being deleted.
    """
    check_set(
        report,
        status.reserved_for,
        "status.reservedFor",
        lambda consumer, path: _check_consumer(report, consumer, path),
        lambda consumer: consumer.uid,
        limit=CONSUMERS,
    )
    allocated = _allocated(status)
    check_set(
        report,
        status.devices,
        "status.devices",
        lambda device, path: _check_device(report, device, path, allocated),
        lambda device: _key(device.driver, device.pool, device.device, device.share_id),
    )
    if status.reserved_for and status.allocation is None:
        report.forbidden("status.reservedFor", "a claim that isn't allocated can't be reserved")
    elif deleted and not set(status.reserved_for) <= set(old.reserved_for if old is not None else ()):
        report.forbidden("status.reservedFor", "nobody can be added to a claim that is being deleted")
    if status.allocation is None:
        return
    if old is None or old.allocation is None:
        _check_allocation(report, status.allocation, "status.allocation", requests)
    elif not same(status.allocation, old.allocation):
        report.invalid("status.allocation", None, "can't be changed, only taken away")


def _allocated(status: ResourceClaimStatus) -> set[DeviceKey]:
    results = status.allocation.devices.results if status.allocation is not None else ()
    return {_key(result.driver, result.pool, result.device, result.share_id) for result in results}


def _key(driver: str, pool: str, device: str, share: str | None) -> DeviceKey:
    # Upstream has no share and an empty one for the same.
    return (driver, pool, device, share or None)


def _check_consumer(report: Report, consumer: ResourceClaimConsumerReference, path: str) -> None:
    for field in ("resource", "name", "uid"):
        if not getattr(consumer, field):
            report.required(f"{path}.{field}")


def _check_allocation(report: Report, allocation: AllocationResult, path: str, requests: RequestNames) -> None:
    check_list(
        report,
        allocation.devices.results,
        f"{path}.devices.results",
        lambda result, place: _check_result(report, result, place, requests),
        limit=REQUESTS,
    )
    check_list(
        report,
        allocation.devices.config,
        f"{path}.devices.config",
        lambda config, place: _check_configuration(report, config, place, requests),
        limit=2 * CONFIGURATIONS,
    )
    if allocation.node_selector is not None:
        check_node_selector(report, allocation.node_selector, f"{path}.nodeSelector")


def _check_result(report: Report, result: DeviceRequestAllocationResult, path: str, requests: RequestNames) -> None:
    check_request_reference(report, result.request, f"{path}.request", requests)
    check_driver(report, result.driver, f"{path}.driver", covered=True)
    check_pool(report, result.pool, f"{path}.pool", covered=True)
    check_device_name(report, result.device, f"{path}.device")
    check_binding_conditions(report, result.binding_conditions, result.binding_failure_conditions, path)
    for index, toleration in enumerate(result.tolerations):
        check_toleration(report, toleration, f"{path}.tolerations[{index}]")
    if result.share_id is not None:
        check_uuid(report, result.share_id, f"{path}.shareID")
    check_skipped_operations(report, result.skip_node_operations, f"{path}.skipNodeOperations")


def _check_configuration(
    report: Report, config: DeviceAllocationConfiguration, path: str, requests: RequestNames
) -> None:
    if not config.source:
        report.required(f"{path}.source", covered=True)
    elif config.source not in _SOURCES:
        report.not_supported(f"{path}.source", config.source, _SOURCES, covered=True)
    check_set(
        report,
        config.requests,
        f"{path}.requests",
        lambda reference, place: check_request_reference(report, reference, place, requests),
        lambda reference: reference,
        limit=REQUESTS,
    )
    check_configuration(report, config, path)


def _check_device(report: Report, device: AllocatedDeviceStatus, path: str, allocated: set[DeviceKey]) -> None:
    check_driver(report, device.driver, f"{path}.driver")
    check_pool(report, device.pool, f"{path}.pool")
    check_device_name(report, device.device, f"{path}.device")
    if device.share_id is not None:
        check_uuid(report, device.share_id, f"{path}.shareID")
    key = _key(device.driver, device.pool, device.device, device.share_id)
    if key not in allocated:
        report.invalid(path, "/".join(part for part in key if part), "must be an allocated device of the claim")
    if len(device.conditions) > CONDITIONS:
        report.too_many(f"{path}.conditions", len(device.conditions), CONDITIONS)
    check_conditions(report, device.conditions, f"{path}.conditions")
    if device.data is not None:
        check_raw(report, device.data, f"{path}.data", DEVICE_DATA_BYTES)
    if device.network_data is not None:
        _check_network(report, device.network_data, f"{path}.networkData")


def check_conditions(report: Report, conditions: tuple[Condition, ...], path: str) -> None:
    """Judge conditions (``ValidateConditions`` of ``k8s.io/apimachinery/pkg/apis/meta/v1/validation``)."""
    twice = {index for index, _ in duplicates(conditions, lambda condition: condition.type)}
    for index, condition in enumerate(conditions):
        place = f"{path}[{index}]"
        if index in twice:
            report.duplicate(place, condition.type)
        if not condition.type:
            report.required(f"{place}.type")
        else:
            report.each_invalid(f"{place}.type", condition.type, names.label_key(condition.type))
        if not condition.status:
            report.required(f"{place}.status")
        elif condition.status not in _STATUSES:
            report.not_supported(f"{place}.status", condition.status, _STATUSES)
        if condition.observed_generation < 0:
            report.invalid(f"{place}.observedGeneration", condition.observed_generation, "must not be negative")
        if not condition.last_transition_time:
            report.required(f"{place}.lastTransitionTime")
        if not condition.reason:
            report.required(f"{place}.reason")
        else:
            report.each_invalid(f"{place}.reason", condition.reason, names.condition_reason(condition.reason))
            if names.byte_length(condition.reason) > _REASON_BYTES:
                report.too_long(f"{place}.reason", _REASON_BYTES)
        if names.byte_length(condition.message) > _MESSAGE_BYTES:
            report.too_long(f"{place}.message", _MESSAGE_BYTES)


def _check_network(report: Report, data: NetworkDeviceData, path: str) -> None:
    if names.byte_length(data.interface_name) > INTERFACE_NAME_BYTES:
        report.too_long(f"{path}.interfaceName", INTERFACE_NAME_BYTES, origin="maxBytes", covered=True)
    if names.byte_length(data.hardware_address) > HARDWARE_ADDRESS_BYTES:
        report.too_long(f"{path}.hardwareAddress", HARDWARE_ADDRESS_BYTES, origin="maxBytes", covered=True)
    check_set(
        report,
        data.ips,
        f"{path}.ips",
        lambda address, place: _check_address(report, address, place),
        lambda address: address,
        limit=IPS,
    )


def _check_address(report: Report, address: str, path: str) -> None:
    """An address with the length of its network's prefix, written as Go writes it."""
    try:
        interface = ipaddress.ip_interface(address)
    except ValueError:
        interface = None
    if interface is None or "/" not in address or "." in address.rpartition("/")[2]:
        report.invalid(path, address, "must be an address with a prefix length: 10.9.8.7/24 or 2001:db8::1/64")
        return
    canonical = str(interface)
    mapped = interface.ip.ipv4_mapped if isinstance(interface, ipaddress.IPv6Interface) else None
    if mapped is not None:
        canonical = f"{mapped}/{max(0, interface.network.prefixlen - 96)}"
    if address != canonical:
        report.invalid(path, address, f"must be written as {canonical}")


# Declared rules


def declare_status(report: Report, status: ResourceClaimStatus, old: ResourceClaimStatus | None = None) -> None:
    """The declared rules of a claim's status."""
    if status.allocation is not None and (old is None or old.allocation is None):
        _declare_allocation(report, status.allocation, "status.allocation.devices")
    if not declare_too_many(report, "status.reservedFor", len(status.reserved_for), CONSUMERS):
        declare_unique(report, status.reserved_for, "status.reservedFor", lambda consumer: consumer.uid)
    declare_unique(
        report,
        status.devices,
        "status.devices",
        # Unlike the hand-written rule, the declared one tells an empty share from none.
        lambda device: (device.driver, device.pool, device.device, device.share_id),
    )
    for index, device in enumerate(status.devices):
        path = f"status.devices[{index}]"
        if device.share_id is not None:
            declare_uuid(report, device.share_id, f"{path}.shareID")
        if device.network_data is not None:
            _declare_network(report, device.network_data, f"{path}.networkData")


def _declare_allocation(report: Report, allocation: AllocationResult, path: str) -> None:
    results, config = allocation.devices.results, allocation.devices.config
    if not declare_too_many(report, f"{path}.results", len(results), REQUESTS):
        for index, result in enumerate(results):
            _declare_result(report, result, f"{path}.results[{index}]")
    if not declare_too_many(report, f"{path}.config", len(config), 2 * CONFIGURATIONS):
        for index, each in enumerate(config):
            place = f"{path}.config[{index}]"
            if not each.source:
                report.declare("Required", f"{place}.source", "a value is required")
            elif each.source not in _SOURCES:
                report.declare("NotSupported", f"{place}.source", one_of(_SOURCES), each.source)
            declare_references(report, each.requests, f"{place}.requests")
            declare_configuration(report, each, place)


def _declare_result(report: Report, result: DeviceRequestAllocationResult, path: str) -> None:
    declare_driver(report, result.driver, f"{path}.driver")
    declare_pool(report, result.pool, f"{path}.pool")
    for index, toleration in enumerate(result.tolerations):
        declare_toleration(report, toleration, f"{path}.tolerations[{index}]")
    conditions = len(result.binding_conditions)
    declare_too_many(report, f"{path}.bindingConditions", conditions, BINDING_CONDITIONS)
    failures = len(result.binding_failure_conditions)
    declare_too_many(report, f"{path}.bindingFailureConditions", failures, BINDING_CONDITIONS)
    if result.share_id is not None:
        declare_uuid(report, result.share_id, f"{path}.shareID")
    declare_skipped_operations(report, result.skip_node_operations, f"{path}.skipNodeOperations")


def _declare_network(report: Report, data: NetworkDeviceData, path: str) -> None:
    if names.byte_length(data.interface_name) > INTERFACE_NAME_BYTES:
        report.declare("TooLong", f"{path}.interfaceName", names.too_long(INTERFACE_NAME_BYTES), origin="maxBytes")
    if not declare_too_many(report, f"{path}.ips", len(data.ips), IPS):
        declare_unique(report, data.ips, f"{path}.ips", lambda address: address)
    if names.byte_length(data.hardware_address) > HARDWARE_ADDRESS_BYTES:
        report.declare("TooLong", f"{path}.hardwareAddress", names.too_long(HARDWARE_ADDRESS_BYTES), origin="maxBytes")
