"""A DeviceTaintRule: which devices it is about, and their taint.

Owns ``validateDeviceTaintRuleSpec`` of ``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2, and what it says
of a rule's status.
"""

from __future__ import annotations

from draht.api.resource import DeviceTaintRule
from draht.validation.allocation import check_conditions
from draht.validation.errors import Report
from draht.validation.identity import check_device_name, check_driver, check_pool
from draht.validation.limits import CONDITIONS
from draht.validation.metadata import check_metadata
from draht.validation.taints import check_taint, declare_taint

__all__ = ["check_taint_rule"]


def check_taint_rule(report: Report, obj: DeviceTaintRule) -> None:
    """Judge a rule that is created, and the status that it has."""
    check_metadata(report, obj.metadata, namespaced=False)
    selector = obj.spec.device_selector
    path = "spec.deviceSelector"
    if selector is not None:
        if selector.driver is not None:
            check_driver(report, selector.driver, f"{path}.driver")
        if selector.pool is not None:
            check_pool(report, selector.pool, f"{path}.pool")
        if selector.device is not None:
            check_device_name(report, selector.device, f"{path}.device")
    check_taint(report, obj.spec.taint, "spec.taint")
    conditions = obj.status.conditions
    check_conditions(report, conditions, "status.conditions")
    if len(conditions) > CONDITIONS:
        report.too_many("status.conditions", len(conditions), CONDITIONS)
    declare_taint(report, obj.spec.taint, "spec.taint")
