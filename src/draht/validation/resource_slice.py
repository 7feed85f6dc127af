"""A ResourceSlice: its driver and pool, the nodes it is for, its devices and shared counters.

Owns ``validateResourceSliceSpec`` of ``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from draht.api.resource import CounterSet, Device, ResourceSlice, ResourceSliceSpec
from draht.validation.binding import check_skipped_operations, declare_skipped_operations
from draht.validation.device import check_counters, check_device, declare_counters, declare_device
from draht.validation.equality import same
from draht.validation.errors import Report
from draht.validation.gates import Gates
from draht.validation.identity import (
    check_device_name,
    check_driver,
    check_full_name,
    check_pool,
    declare_full_name,
    declare_label,
)
from draht.validation.limits import COUNTER_SETS, DEVICES, DEVICES_WITH_ADVANCED_FEATURES
from draht.validation.lists import check_set, declare_too_many, declare_unique
from draht.validation.node_selector import check_node_name, check_node_selector

__all__ = ["check_slice"]

_NODE_FIELDS = "nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
_EMPTY_VALUES: Final = re.compile(r"spec\.devices\[\d+\]\.attributes\[.*\]\.(?:ints|bools|strings|versions)")


def check_slice(
    report: Report, obj: ResourceSlice, gates: Gates, old: ResourceSliceSpec | None = None, empty: Collection[str] = ()
) -> None:
    """Judge the spec of a slice.

    Args:
        report: Takes what is wrong.
        obj: The slice.
        gates: The features that are on.
        old: What is there, of a slice that takes its place.
        empty: Paths of lists that are written and empty, which upstream tells from lists that aren't there.
    """
    spec = obj.spec
    check_driver(report, spec.driver, "spec.driver")
    check_pool(report, spec.pool.name, "spec.pool.name")
    if spec.pool.resource_slice_count <= 0:
        report.invalid("spec.pool.resourceSliceCount", spec.pool.resource_slice_count, "must be greater than zero")
    if spec.pool.generation < 0:
        report.invalid("spec.pool.generation", spec.pool.generation, "must not be negative")
    if old is not None:
        _check_immutable(report, spec, old)
    _check_nodes(report, spec)
    if (spec.shared_counters or "spec.sharedCounters" in empty) and (spec.devices or "spec.devices" in empty):
        report.invalid("spec", None, "must have only one of sharedCounters and devices")
    advanced = any(map(_is_advanced, spec.devices)) or any(map(_EMPTY_VALUES.fullmatch, empty))
    known: dict[str, Device] = {}
    for device in old.devices if old is not None else ():
        known.setdefault(device.name, device)
    check_set(
        report,
        spec.devices,
        "spec.devices",
        lambda device, path: check_device(
            report,
            device,
            path,
            gates,
            selects_nodes=bool(spec.per_device_node_selection),
            old=known.get(device.name),
            empty=empty,
        ),
        lambda device: device.name,
        limit=DEVICES_WITH_ADVANCED_FEATURES if advanced else DEVICES,
        covered=False,
        unique_covered=False,
    )
    check_set(
        report,
        spec.shared_counters,
        "spec.sharedCounters",
        lambda counters, path: _check_counter_set(report, counters, path),
        lambda counters: counters.name,
        limit=COUNTER_SETS,
    )
    if spec.partition_type_attribute is not None:
        _check_partition_type(report, spec, spec.partition_type_attribute)
    check_skipped_operations(report, spec.skip_node_operations, "spec.skipNodeOperations")
    _declare(report, spec)


def _check_immutable(report: Report, spec: ResourceSliceSpec, old: ResourceSliceSpec) -> None:
    fields: tuple[tuple[str, Any, Any], ...] = (
        ("pool.name", spec.pool.name, old.pool.name),
        ("driver", spec.driver, old.driver),
        ("nodeName", spec.node_name, old.node_name),
    )
    for name, new, before in fields:
        if not same(new, before):
            report.invalid(f"spec.{name}", new, "can't be changed")


def _is_advanced(device: Device) -> bool:
    return bool(
        device.taints
        or device.consumes_counters
        or any(each.bools or each.ints or each.strings or each.versions for each in device.attributes.values())
    )


def _check_nodes(report: Report, spec: ResourceSliceSpec) -> None:
    """Exactly one way to say for which nodes the devices are."""
    given = []
    if spec.node_name is not None:
        if spec.node_name:
            given.append("nodeName")
            check_node_name(report, spec.node_name, "spec.nodeName")
        else:
            report.invalid("spec.nodeName", "", "must not be empty")
    if spec.node_selector is not None:
        given.append("nodeSelector")
        check_node_selector(report, spec.node_selector, "spec.nodeSelector")
        count = len(spec.node_selector.node_selector_terms)
        if count != 1:
            report.invalid("spec.nodeSelector.nodeSelectorTerms", None, f"must have exactly one term, not {count}")
    for name, value in (("allNodes", spec.all_nodes), ("perDeviceNodeSelection", spec.per_device_node_selection)):
        if value:
            given.append(name)
        elif value is not None:
            report.invalid(f"spec.{name}", "false", "must be true or not there")
    if not given:
        report.required("spec", f"one of {_NODE_FIELDS} is required")
    elif len(given) > 1:
        report.invalid("spec", None, f"must have only one of {_NODE_FIELDS}, not {' and '.join(given)}")


def _check_counter_set(report: Report, counters: CounterSet, path: str) -> None:
    if not counters.name:
        report.required(f"{path}.name", covered=True)
    else:
        check_device_name(report, counters.name, f"{path}.name", covered=True)
    if not counters.counters:
        report.required(f"{path}.counters", covered=True)
    else:
        check_counters(report, counters.counters, f"{path}.counters")


def _check_partition_type(report: Report, spec: ResourceSliceSpec, name: str) -> None:
    """Each device that consumes counters must have the attribute, as a string."""
    if not any(device.consumes_counters for device in spec.devices):
        report.invalid("spec.partitionTypeAttribute", name, "needs devices that consume counters")
        return
    probe = Report()
    check_full_name(probe, name, "")
    if probe.errors():
        return
    bare = name.removeprefix(f"{spec.driver}/")
    for index, device in enumerate(spec.devices):
        if not device.consumes_counters:
            continue
        path = f"spec.devices[{index}].attributes[{name}]"
        attribute = device.attributes.get(name) or device.attributes.get(bare)
        if attribute is None:
            report.required(path, "the slice's partitionTypeAttribute must be set on a device that consumes counters")
        elif attribute.string is None:
            report.invalid(path, None, "must be a string, as the slice's partitionTypeAttribute")


def _declare(report: Report, spec: ResourceSliceSpec) -> None:
    for index, device in enumerate(spec.devices):
        declare_device(report, device, f"spec.devices[{index}]")
    path = "spec.sharedCounters"
    if not declare_too_many(report, path, len(spec.shared_counters), COUNTER_SETS):
        declare_unique(report, spec.shared_counters, path, lambda counters: counters.name)
        for index, counters in enumerate(spec.shared_counters):
            if not counters.name:
                report.declare("Required", f"{path}[{index}].name", "a value is required")
            else:
                declare_label(report, counters.name, f"{path}[{index}].name")
            declare_counters(report, counters.counters, f"{path}[{index}].counters")
    if spec.partition_type_attribute is not None:
        declare_full_name(report, spec.partition_type_attribute, "spec.partitionTypeAttribute", replaces=False)
    declare_skipped_operations(report, spec.skip_node_operations, "spec.skipNodeOperations")
