"""DeviceTaintRule: a taint that an administrator puts on devices."""

from __future__ import annotations

from typing import Literal

from draht.api.meta import Condition, Object, ObjectList
from draht.api.resource.device import DeviceTaint
from draht.api.wire import Wire, always

__all__ = [
    "DeviceTaintRule",
    "DeviceTaintRuleList",
    "DeviceTaintRuleSpec",
    "DeviceTaintRuleStatus",
    "DeviceTaintSelector",
]


class DeviceTaintSelector(Wire, frozen=True, kw_only=True):
    """Devices a rule is about; all given fields must match, an empty selector matches every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, frozen=True, kw_only=True):
    """Which devices get which taint; without a selector, none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRuleStatus(Wire, frozen=True, kw_only=True):
    """Progress of evictions."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Object, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["DeviceTaintRule"] = always("DeviceTaintRule")
    spec: DeviceTaintRuleSpec
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


class DeviceTaintRuleList(ObjectList, frozen=True, kw_only=True):
    """Several taint rules."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["DeviceTaintRuleList"] = always("DeviceTaintRuleList")
    items: tuple[DeviceTaintRule, ...] = ()
