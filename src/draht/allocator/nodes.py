"""Which nodes a node selector selects, as upstream's component-helpers (v0.37.2, ``nodeaffinity``) decides.

Owns operators, their syntax rules and the two oddities that follow from upstream's code: an empty term selects nothing,
and a selector with any malformed requirement is an error as a whole, even where another term would match.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from draht.allocator.errors import AllocatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from draht.api.core.node import Node
    from draht.api.core.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["SelectorError", "check_selector", "node_matches", "selector_matches"]

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class SelectorError(AllocatorError):
    """A node selector is malformed."""


def node_matches(node: Node, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    """Whether a slice or device with these three fields can be used on the node.

    Raises:
        SelectorError: The node selector is malformed; only looked at where neither of the other two decides.
    """
    if node_name:
        return node.metadata.name == node_name
    if all_nodes:
        return True
    return selector is not None and selector_matches(selector, node)


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether one of the terms holds for the node's labels and name.

    Raises:
        SelectorError: A requirement of any term is malformed.
    """
    check_selector(selector)
    return any(_term_matches(term, node) for term in selector.node_selector_terms)


def check_selector(selector: NodeSelector) -> None:
    """Refuse what upstream doesn't parse.

    Raises:
        SelectorError: Says which requirement, and why.
    """
    for number, term in enumerate(selector.node_selector_terms):
        for kind, requirements, fault in (
            ("matchExpressions", term.match_expressions, _label_fault),
            ("matchFields", term.match_fields, _field_fault),
        ):
            for index, requirement in enumerate(requirements):
                message = fault(requirement)
                if message is not None:
                    raise SelectorError(message, where=f"nodeSelectorTerms[{number}].{kind}[{index}]")


def _label_fault(requirement: NodeSelectorRequirement) -> str | None:
    values = requirement.values
    if not _is_label_key(requirement.key):
        return f"{requirement.key[:80]!r} is no label key"
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                return f"operator {requirement.operator} needs values"
        case "Exists" | "DoesNotExist":
            if values:
                return f"operator {requirement.operator} takes no values"
        case "Gt" | "Lt":
            if len(values) != 1 or _integer(values[0]) is None:
                return f"operator {requirement.operator} needs one integer"
        case other:
            return f"operator {other[:40]!r} is not known"
    for value in values:
        if value and (len(value) > 63 or _NAME.fullmatch(value) is None):
            return f"{value[:80]!r} is no label value"
    return None


def _field_fault(requirement: NodeSelectorRequirement) -> str | None:
    if requirement.operator not in {"In", "NotIn"}:
        return f"operator {requirement.operator[:40]!r} is not known for fields"
    return None if len(requirement.values) == 1 else "a field is compared with exactly one value"


def _is_label_key(key: str) -> bool:
    domain, slash, name = key.rpartition("/")
    if slash and (len(domain) > 253 or _DOMAIN.fullmatch(domain) is None):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def _integer(text: str) -> int | None:
    # The length first: a label is short, but a selector may come from anywhere.
    if len(text) > 25 or _INTEGER.fullmatch(text) is None:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    if not all(_label_holds(requirement, labels) for requirement in term.match_expressions):
        return False
    name = node.metadata.name
    if not name:
        return True
    return all(
        ((name if requirement.key == "metadata.name" else "") == requirement.values[0])
        == (requirement.operator == "In")
        for requirement in term.match_fields
    )


def _label_holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    mine = None if value is None else _integer(value)
    theirs = _integer(requirement.values[0])
    if mine is None or theirs is None:
        return False
    return mine > theirs if requirement.operator == "Gt" else mine < theirs
