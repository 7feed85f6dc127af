"""`resource.k8s.io/v1alpha3` as it is today: DeviceTaintRule only, in the shape of v1."""

from __future__ import annotations

from typing import Literal

from draht.api.meta import Object, ObjectList
from draht.api.resource.taint_rule import DeviceTaintRuleSpec, DeviceTaintRuleStatus
from draht.api.wire import always

__all__ = ["DeviceTaintRule", "DeviceTaintRuleList"]


class DeviceTaintRule(Object, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices."""

    api_version: Literal["resource.k8s.io/v1alpha3"] = always("resource.k8s.io/v1alpha3")
    kind: Literal["DeviceTaintRule"] = always("DeviceTaintRule")
    spec: DeviceTaintRuleSpec
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


class DeviceTaintRuleList(ObjectList, frozen=True, kw_only=True):
    """Several taint rules."""

    api_version: Literal["resource.k8s.io/v1alpha3"] = always("resource.k8s.io/v1alpha3")
    kind: Literal["DeviceTaintRuleList"] = always("DeviceTaintRuleList")
    items: tuple[DeviceTaintRule, ...] = ()
