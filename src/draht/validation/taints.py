"""Taints of devices and what tolerates them."""

from __future__ import annotations

from typing import Final

from draht.api.resource import DeviceTaint, DeviceToleration
from draht.validation import names
from draht.validation.errors import Report, one_of

__all__ = ["check_taint", "check_toleration", "declare_taint", "declare_toleration"]

_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_OPERATORS: Final = ("Equal", "Exists")
_LABEL_KEY: Final = "format=k8s-label-key"


def check_taint(report: Report, taint: DeviceTaint, path: str, *, effect_stays: bool = False) -> None:
    """Judge a taint, all of it or without an effect that it had before."""
    report.each_invalid(f"{path}.key", taint.key, names.label_key(taint.key), origin=_LABEL_KEY)
    if taint.value:
        report.each_invalid(f"{path}.value", taint.value, names.label_value(taint.value))
    if effect_stays:
        return
    if not taint.effect:
        report.required(f"{path}.effect", covered=True)
    elif taint.effect not in _EFFECTS:
        report.not_supported(f"{path}.effect", taint.effect, _EFFECTS, covered=True)


def declare_taint(report: Report, taint: DeviceTaint, path: str) -> None:
    """The declared rules of a taint."""
    if not taint.effect:
        report.declare("Required", f"{path}.effect", "a value is required")
    elif taint.effect not in _EFFECTS:
        report.declare("NotSupported", f"{path}.effect", one_of(_EFFECTS), taint.effect)


def check_toleration(report: Report, toleration: DeviceToleration, path: str) -> None:
    """Judge a toleration; its operator is ``Equal`` if it has none."""
    if toleration.key:
        messages = names.label_key(toleration.key)
        report.each_invalid(f"{path}.key", toleration.key, messages, origin=_LABEL_KEY, covered=True)
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        if toleration.value:
            report.invalid(f"{path}.value", toleration.value, "must be empty for operator Exists")
    elif operator == "Equal":
        report.each_invalid(f"{path}.value", toleration.value, names.label_value(toleration.value))
    else:
        report.not_supported(f"{path}.operator", operator, _OPERATORS, covered=True)
    if toleration.effect and toleration.effect not in _EFFECTS:
        report.not_supported(f"{path}.effect", toleration.effect, _EFFECTS, covered=True)


def declare_toleration(report: Report, toleration: DeviceToleration, path: str) -> None:
    """The declared rules of a toleration."""
    if toleration.key:
        for message in names.label_key(toleration.key):
            report.declare("Invalid", f"{path}.key", message, toleration.key, origin=_LABEL_KEY)
    if toleration.operator and toleration.operator not in _OPERATORS:
        report.declare("NotSupported", f"{path}.operator", one_of(_OPERATORS), toleration.operator)
    if toleration.effect and toleration.effect not in _EFFECTS:
        report.declare("NotSupported", f"{path}.effect", one_of(_EFFECTS), toleration.effect)
