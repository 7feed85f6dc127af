"""A DeviceTaintRule: which devices it is about, and their taint.

Owns ``validateDeviceTaintRuleSpec`` of ``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2, and what it says
of a rule's status.
"""

from __future__ import annotations

from draht.api.resource import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintRuleStatus
from draht.validation.allocation import check_conditions
from draht.validation.errors import Report
from draht.validation.identity import check_device_name, check_driver, check_pool
from draht.validation.limits import CONDITIONS
from draht.validation.taints import check_taint, declare_taint

__all__ = ["check_rule_status", "check_taint_rule"]


def check_taint_rule(report: Report, obj: DeviceTaintRule, old: DeviceTaintRuleSpec | None = None) -> None:
    """Judge the spec of a rule; of one that takes the place of another, an effect that stays isn't judged again."""
    selector = obj.spec.device_selector
    path = "spec.deviceSelector"
    if selector is not None:
        if selector.driver is not None:
            check_driver(report, selector.driver, f"{path}.driver")
        if selector.pool is not None:
            check_pool(report, selector.pool, f"{path}.pool")
        if selector.device is not None:
            check_device_name(report, selector.device, f"{path}.device")
    taint = obj.spec.taint
    effect_stays = old is not None and old.taint.effect == taint.effect
    check_taint(report, taint, "spec.taint", effect_stays=effect_stays)
    if not effect_stays:
        declare_taint(report, taint, "spec.taint")


def check_rule_status(report: Report, status: DeviceTaintRuleStatus) -> None:
    """Judge the status of a rule."""
    check_conditions(report, status.conditions, "status.conditions")
    if len(status.conditions) > CONDITIONS:
        report.too_many("status.conditions", len(status.conditions), CONDITIONS)
