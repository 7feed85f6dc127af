"""A device of a slice: attributes, capacities, counters, taints, where it is usable.

Owns ``validateDevice`` of ``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from draht.api.resource import (
    Counter,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
)
from draht.validation import names
from draht.validation.binding import check_binding_conditions
from draht.validation.capacity import amount, check_capacity, check_counter_amount
from draht.validation.equality import same
from draht.validation.errors import Report
from draht.validation.gates import Gates
from draht.validation.identity import check_device_name, check_qualified_name, declare_label, truncated
from draht.validation.limits import (
    ATTRIBUTE_VALUE_BYTES,
    ATTRIBUTE_VALUES,
    ATTRIBUTES_AND_CAPACITIES,
    BINDING_CONDITIONS,
    COMPATIBILITY_GROUPS,
    CONSUMED_COUNTER_SETS,
    COUNTERS,
    LABEL_BYTES,
    TAINTS,
)
from draht.validation.lists import check_list, check_set, declare_too_many, declare_unique
from draht.validation.node_selector import check_node_name, check_node_selector
from draht.validation.taints import check_taint, declare_taint

__all__ = ["check_counters", "check_device", "declare_counters", "declare_device"]

_SEMVER: Final = re.compile(
    r"(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)"
    r"(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_LISTS: Final = ("ints", "bools", "strings", "versions")
_KINDS: Final = ("int_", "bool_", "string", "version", *_LISTS)
_UNION: Final = "must have exactly one of int, bool, string, version, ints, bools, strings and versions"
_NODE_FIELDS: Final = "nodeName, nodeSelector and allNodes"


def check_device(
    report: Report,
    device: Device,
    path: str,
    gates: Gates,
    *,
    selects_nodes: bool,
    old: Device | None = None,
    empty: Collection[str] = (),
) -> None:
    """Judge a device.

    Args:
        report: Takes what is wrong.
        device: The device.
        path: Its place.
        gates: The features that are on.
        selects_nodes: Whether the slice has ``perDeviceNodeSelection``.
        old: The device of that name in the slice that is there; what stays of it isn't judged again.
        empty: Paths of lists that are written and empty.
    """
    check_device_name(report, device.name, f"{path}.name")
    entries = len(device.attributes) + len(device.capacity)
    if entries > ATTRIBUTES_AND_CAPACITIES:
        message = f"must have at most {ATTRIBUTES_AND_CAPACITIES} attributes and capacities, not {entries}"
        report.invalid(path, None, message)
    values = sum(max(1, _length(attribute)) for attribute in device.attributes.values())
    if values > ATTRIBUTE_VALUES:
        report.invalid(path, None, f"must have at most {ATTRIBUTE_VALUES} values of attributes, not {values}")
    for name, attribute in sorted(device.attributes.items()):
        check_qualified_name(report, name, f"{path}.attributes")
        bare = [kind for kind in _LISTS if f"{path}.attributes[{name}].{kind}" in empty]
        _check_attribute(report, attribute, f"{path}.attributes[{truncated(name)}]", bare)
    if old is None or not same(old.capacity, device.capacity):
        for name, capacity in sorted(device.capacity.items()):
            check_qualified_name(report, name, f"{path}.capacity")
            place = f"{path}.capacity[{truncated(name)}]"
            check_capacity(report, capacity, place, gates, shared=bool(device.allow_multiple_allocations))
    if old is None or not same(old.taints, device.taints):
        check_list(
            report,
            device.taints,
            f"{path}.taints",
            lambda taint, place: check_taint(report, taint, place),
            limit=TAINTS,
            covered=False,
        )
    check_set(
        report,
        device.consumes_counters,
        f"{path}.consumesCounters",
        lambda consumed, place: _check_consumed(report, consumed, place),
        lambda consumed: consumed.counter_set,
        limit=CONSUMED_COUNTER_SETS,
    )
    _check_nodes(report, device, path, selects_nodes=selects_nodes)
    check_binding_conditions(report, device.binding_conditions, device.binding_failure_conditions, path)
    for name, node_resource in sorted(device.node_allocatable_resources.items()):
        place = f"{path}.nodeAllocatableResources[{name}]"
        _check_node_resource(report, name, node_resource, place, device)


def _length(attribute: DeviceAttribute) -> int:
    return len(attribute.ints) + len(attribute.bools) + len(attribute.strings) + len(attribute.versions)


def _given(attribute: DeviceAttribute) -> list[str]:
    return [kind for kind in _KINDS if getattr(attribute, kind) not in (None, ())]


def _check_attribute(report: Report, attribute: DeviceAttribute, path: str, bare: list[str]) -> None:
    if attribute.string is not None:
        _check_string(report, attribute.string, f"{path}.string")
    if attribute.version is not None:
        _check_version(report, attribute.version, f"{path}.version")
    for index, text in enumerate(attribute.strings):
        _check_string(report, text, f"{path}.strings[{index}]")
    for index, text in enumerate(attribute.versions):
        _check_version(report, text, f"{path}.versions[{index}]")
    for kind in bare:
        report.invalid(f"{path}.{kind}", None, "must not be empty")
    if len(_given(attribute)) + len(bare) != 1:
        report.invalid(path, None, _UNION, origin="union", covered=True)


def _check_string(report: Report, text: str, path: str) -> None:
    if names.byte_length(text) > ATTRIBUTE_VALUE_BYTES:
        report.too_long(path, ATTRIBUTE_VALUE_BYTES)


def _check_version(report: Report, text: str, path: str) -> None:
    if not _SEMVER.fullmatch(text):
        report.invalid(path, text, "must be a version as semver.org 2.0.0 has it: 1.2.3")
    _check_string(report, text, path)


def check_counters(report: Report, counters: Mapping[str, Counter], path: str) -> None:
    """Judge the counters of a set, or those that a device consumes of one."""
    if len(counters) > COUNTERS:
        report.too_many(path, len(counters), COUNTERS)
        return
    for name, counter in sorted(counters.items()):
        check_device_name(report, name, path, covered=True)
        check_counter_amount(report, counter.value, f"{path}[{truncated(name, LABEL_BYTES)}].value")


def _check_consumed(report: Report, consumed: DeviceCounterConsumption, path: str) -> None:
    if not consumed.counter_set:
        report.required(f"{path}.counterSet", covered=True)
    else:
        check_device_name(report, consumed.counter_set, f"{path}.counterSet", covered=True)
    if not consumed.counters:
        report.required(f"{path}.counters", covered=True)
    else:
        check_counters(report, consumed.counters, f"{path}.counters")


def _check_nodes(report: Report, device: Device, path: str, *, selects_nodes: bool) -> None:
    if not selects_nodes:
        if device.node_name is not None or device.node_selector is not None or device.all_nodes is not None:
            report.invalid(path, None, f"{_NODE_FIELDS} of a device need perDeviceNodeSelection: true in the slice")
        return
    given = 0
    if device.node_name is not None:
        if device.node_name:
            given += 1
            check_node_name(report, device.node_name, f"{path}.nodeName")
        else:
            report.invalid(f"{path}.nodeName", "", "must not be empty")
    if device.node_selector is not None:
        given += 1
        check_node_selector(report, device.node_selector, f"{path}.nodeSelector")
    if device.all_nodes is not None:
        if device.all_nodes:
            given += 1
        else:
            report.invalid(f"{path}.allNodes", "false", "must be true or not there")
    message = f"one of {_NODE_FIELDS} is required with perDeviceNodeSelection"
    if given == 0:
        report.required(path, message)
    elif given > 1:
        report.invalid(path, None, f"only {message}")


def _check_node_resource(
    report: Report, name: str, node_resource: NodeAllocatableResource, path: str, device: Device
) -> None:
    if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
        report.invalid(path, name, "must be cpu, memory or hugepages-<size>")
    if node_resource.mapping is None and node_resource.overhead is None:
        report.required(path, "mapping or overhead is required")
    if node_resource.mapping is not None:
        _check_mapping(report, node_resource.mapping, f"{path}.mapping", device)
    if node_resource.overhead is not None:
        _check_overhead(report, node_resource.overhead, f"{path}.overhead")


def _check_mapping(report: Report, mapping: NodeAllocatableMapping, path: str, device: Device) -> None:
    if mapping.capacity_key is not None:
        if not mapping.capacity_key:
            report.invalid(f"{path}.capacityKey", "", "must not be empty")
        elif mapping.capacity_key not in device.capacity:
            report.add("NotFound", f"{path}.capacityKey", "must be a capacity of the device", mapping.capacity_key)
        if mapping.capacity_multiplier is None:
            message = "capacityKey needs a capacityMultiplier"
            report.required(f"{path}.capacityMultiplier", message, origin="dependentRequired", covered=True)
        else:
            _check_positive(report, mapping.capacity_multiplier, f"{path}.capacityMultiplier")
    if mapping.device_multiplier is not None:
        _check_positive(report, mapping.device_multiplier, f"{path}.deviceMultiplier")
    if mapping.capacity_multiplier is not None and mapping.capacity_key is None:
        message = "capacityMultiplier needs a capacityKey"
        report.required(f"{path}.capacityKey", message, origin="dependentRequired", covered=True)


def _check_positive(report: Report, value: str | int, path: str) -> None:
    quantity = amount(report, value, path)
    if quantity is not None and quantity.sign() <= 0:
        report.invalid(path, str(quantity), "must be greater than zero")


def _check_overhead(report: Report, overhead: NodeAllocatableOverhead, path: str) -> None:
    if overhead.per_pod is None and overhead.per_container is None:
        report.invalid(path, None, "must have perPod or perContainer")
        return
    for name, value in (("perPod", overhead.per_pod), ("perContainer", overhead.per_container)):
        quantity = amount(report, value, f"{path}.{name}") if value is not None else None
        if quantity is not None and quantity.sign() < 0:
            report.invalid(f"{path}.{name}", str(quantity), "must not be negative")


# Declared rules


def declare_device(report: Report, device: Device, path: str) -> None:
    """The declared rules of a device."""
    for name, attribute in sorted(device.attributes.items()):
        # Declared rules write the whole key into the path.
        _declare_attribute(report, attribute, f"{path}.attributes[{name}]")
    place = f"{path}.consumesCounters"
    if not declare_too_many(report, place, len(device.consumes_counters), CONSUMED_COUNTER_SETS):
        declare_unique(report, device.consumes_counters, place, lambda consumed: consumed.counter_set)
        for index, consumed in enumerate(device.consumes_counters):
            _declare_consumed(report, consumed, f"{place}[{index}]")
    for index, taint in enumerate(device.taints):
        declare_taint(report, taint, f"{path}.taints[{index}]")
    declare_too_many(report, f"{path}.bindingConditions", len(device.binding_conditions), BINDING_CONDITIONS)
    failures = len(device.binding_failure_conditions)
    declare_too_many(report, f"{path}.bindingFailureConditions", failures, BINDING_CONDITIONS)
    for name, node_resource in sorted(device.node_allocatable_resources.items()):
        if node_resource.mapping is not None:
            _declare_mapping(report, node_resource.mapping, f"{path}.nodeAllocatableResources[{name}].mapping")


def _declare_attribute(report: Report, attribute: DeviceAttribute, path: str) -> None:
    if len(_given(attribute)) != 1:
        report.declare("Invalid", path, _UNION, origin="union")


def declare_counters(report: Report, counters: Mapping[str, Counter], path: str) -> None:
    """The declared rules of counters."""
    if not counters:
        report.declare("Required", path, "a value is required")
    for name in sorted(counters):
        declare_label(report, name, path)


def _declare_consumed(report: Report, consumed: DeviceCounterConsumption, path: str) -> None:
    if not consumed.counter_set:
        report.declare("Required", f"{path}.counterSet", "a value is required")
    else:
        declare_label(report, consumed.counter_set, f"{path}.counterSet")
    declare_counters(report, consumed.counters, f"{path}.counters")
    groups = consumed.compatibility_groups
    place = f"{path}.compatibilityGroups"
    if not declare_too_many(report, place, len(groups), COMPATIBILITY_GROUPS, replaces=False):
        for index, group in enumerate(groups):
            declare_label(report, group, f"{place}[{index}]", replaces=False)
        declare_unique(report, groups, place, lambda group: group, replaces=False)


def _declare_mapping(report: Report, mapping: NodeAllocatableMapping, path: str) -> None:
    if (mapping.capacity_key is None) == (mapping.device_multiplier is None):
        message = "must have exactly one of capacityKey and deviceMultiplier"
        report.declare("Invalid", path, message, origin="union", replaces=False)
