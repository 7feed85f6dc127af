"""On which nodes an allocation can be used.

Follows upstream's ``createNodeSelector`` (v0.37.2): a device that is local to a node, or that binds to the node it was
chosen for, pins the claim to it; otherwise the requirements of all devices are joined in one term.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from draht.allocator.errors import FatalError, FatalKind
from draht.api.core.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from draht.api.resource import Device, ResourceSlice

__all__ = ["joint_selector", "pinned"]


@lru_cache(maxsize=8192)
def pinned(node: str) -> NodeSelector:
    """The selector of one node by its name."""
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def joint_selector(devices: Iterable[tuple[Device, ResourceSlice]], node: str, claim: str) -> NodeSelector | None:
    """Where all of the devices can be used; None means everywhere.

    Args:
        devices: Allocated devices of a claim with their slices, in order.
        node: The node they were chosen for.
        claim: The name of the claim, for the error.

    Raises:
        FatalError: A slice has a node selector of several terms, which no API server accepts.
    """
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for device, piece in devices:
        source = device if piece.spec.per_device_node_selection else piece.spec
        if source.node_name is not None or device.binds_to_node:
            return pinned(node)
        if source.node_selector is None:
            continue
        terms = source.node_selector.node_selector_terms
        if len(terms) > 1:
            raise FatalError(
                FatalKind.NODE_SELECTOR,
                f"slice {piece.metadata.name} has a node selector with {len(terms)} terms",
                where=f"claim {claim}",
                hint="ask the driver's authors: a slice has exactly one term",
            )
        for term in terms:
            _join(fields, term.match_fields)
            _join(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _join(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for requirement in more:
        values = set(requirement.values)
        if not any(
            k.key == requirement.key and k.operator == requirement.operator and set(k.values) == values for k in known
        ):
            known.append(requirement)
