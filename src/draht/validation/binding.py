"""Conditions of late binding, and node operations that a driver does without."""

from __future__ import annotations

from typing import Final

from draht.validation import names
from draht.validation.errors import Report, one_of
from draht.validation.limits import BINDING_CONDITIONS
from draht.validation.lists import check_list, declare_unique, duplicates

__all__ = ["check_binding_conditions", "check_skipped_operations", "declare_skipped_operations"]

_PREPARE: Final = "NodePrepareResources"
_UNPREPARE: Final = "NodeUnprepareResources"
_OPERATIONS: Final = ("*", _PREPARE, _UNPREPARE)
_LABEL_KEY: Final = "format=k8s-label-key"


def check_binding_conditions(report: Report, conditions: tuple[str, ...], failures: tuple[str, ...], path: str) -> None:
    """Judge binding conditions and binding failure conditions, which need each other."""
    lists = (("bindingConditions", conditions), ("bindingFailureConditions", failures))
    for name, items in lists:
        check_list(
            report,
            items,
            f"{path}.{name}",
            lambda item, place: report.each_invalid(place, item, names.label_key(item), origin=_LABEL_KEY),
            limit=BINDING_CONDITIONS,
        )
    for index, condition in duplicates(conditions, lambda item: item):
        report.duplicate(f"{path}.bindingConditions[{index}]", condition)
    known = set(conditions)
    twice = {index for index, _ in duplicates(failures, lambda item: item)}
    for index, condition in enumerate(failures):
        place = f"{path}.bindingFailureConditions[{index}]"
        if index in twice:
            report.duplicate(place, condition)
        if condition in known:
            report.invalid(place, condition, "must not be a binding condition, too")
    if failures and not conditions:
        report.invalid(f"{path}.bindingConditions", None, "there must be some, as there are bindingFailureConditions")
    if conditions and not failures:
        report.invalid(f"{path}.bindingFailureConditions", None, "there must be some, as there are bindingConditions")


def check_skipped_operations(report: Report, operations: tuple[str, ...], path: str) -> None:
    """Judge which node operations are skipped: without preparation there is nothing to undo."""
    if _PREPARE in operations and not {_UNPREPARE, "*"} & set(operations):
        report.invalid(path, ", ".join(operations), f"must have {_UNPREPARE} where it has {_PREPARE}")


def declare_skipped_operations(report: Report, operations: tuple[str, ...], path: str) -> None:
    """The declared rules of skipped node operations."""
    declare_unique(report, operations, path, lambda operation: operation, replaces=False)
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            report.declare("NotSupported", f"{path}[{index}]", one_of(_OPERATIONS), operation, replaces=False)
