"""Node selectors and node names (``ValidateNodeSelector`` of ``k8s.io/kubernetes/pkg/apis/core/validation``)."""

from __future__ import annotations

from typing import Final

from draht.api.core import NodeSelector, NodeSelectorRequirement
from draht.validation import names
from draht.validation.errors import Report, one_of

__all__ = ["check_node_name", "check_node_selector"]

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_NAME_FIELD: Final = "metadata.name"


def check_node_name(report: Report, name: str, path: str) -> None:
    """Judge the name of a node."""
    report.each_invalid(path, name, names.subdomain(name))


def check_node_selector(report: Report, selector: NodeSelector, path: str) -> None:
    """Judge a node selector: operators, keys and values of all its terms."""
    path = f"{path}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        report.required(path, "at least one term is required")
        return
    for index, term in enumerate(selector.node_selector_terms):
        for place, requirement in enumerate(term.match_expressions):
            _check_label_requirement(report, requirement, f"{path}[{index}].matchExpressions[{place}]")
        for place, requirement in enumerate(term.match_fields):
            _check_field_requirement(report, requirement, f"{path}[{index}].matchFields[{place}]")


def _check_label_requirement(report: Report, requirement: NodeSelectorRequirement, path: str) -> None:
    operator, values = requirement.operator, requirement.values
    match operator:
        case "In" | "NotIn":
            if not values:
                report.required(f"{path}.values", f"{operator} needs at least one value")
        case "Exists" | "DoesNotExist":
            if values:
                report.forbidden(f"{path}.values", f"{operator} takes no values")
        case "Gt" | "Lt":
            if len(values) != 1:
                report.required(f"{path}.values", f"{operator} needs exactly one value")
        case _:
            report.invalid(f"{path}.operator", operator, one_of(_OPERATORS))
    report.each_invalid(f"{path}.key", requirement.key, names.label_key(requirement.key))
    for index, value in enumerate(values):
        report.each_invalid(f"{path}.values[{index}]", value, names.label_value(value))


def _check_field_requirement(report: Report, requirement: NodeSelectorRequirement, path: str) -> None:
    if requirement.operator not in ("In", "NotIn"):
        report.invalid(f"{path}.operator", requirement.operator, "must be In or NotIn for a field")
    elif len(requirement.values) != 1:
        report.required(f"{path}.values", f"{requirement.operator} needs exactly one value for a field")
    if requirement.key != _NAME_FIELD:
        report.invalid(f"{path}.key", requirement.key, f"must be {_NAME_FIELD}")
        return
    for index, value in enumerate(requirement.values):
        check_node_name(report, value, f"{path}.values[{index}]")
