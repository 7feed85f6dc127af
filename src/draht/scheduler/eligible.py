"""Which nodes a pod may use, whether or not its devices are there.

Owns the pod's own wishes (node name, node selector, required node affinity) and the nodes of claims that are allocated
already and shared with others. Wishes of many pods are alike, so the answer to each kind is kept. Labels of nodes
don't change meanwhile. Taints of nodes, CPU and memory play no part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple

import msgspec

from draht.allocator.nodes import SelectorError, selector_matches
from draht.api.core import Node, Pod
from draht.api.core.scheduling import NodeSelector
from draht.api.resource import ResourceClaim

__all__ = ["Eligible", "Nodes", "may_use"]

_KEPT: Final = 256
"""Kinds of wishes whose answer is kept."""
_ALL: Final = 0xFF
_SHOWN: Final = 4


class Nodes(NamedTuple):
    """The nodes that may be used.

    Args:
        among: A number with a byte of ones for each, the first node's lowest, as `draht.allocator.Session` takes it.
        malformed: The first node on which a selector couldn't be read, and why; None if all could.
    """

    among: int
    malformed: tuple[int, SelectorError] | None


class Eligible:
    """Answers for the nodes of one cluster.

    Args:
        nodes: By name, in their order.
        only: No other node than this may be used.
    """

    def __init__(self, nodes: Mapping[str, Node], only: str | None = None) -> None:
        self._nodes = tuple(nodes.values())
        self._names = {name: index for index, name in enumerate(nodes)}
        self._only = only
        self._kept: dict[tuple[object, ...], Nodes] = {}

    def nodes(self, pod: Pod | None, claims: Sequence[ResourceClaim]) -> Nodes:
        """The nodes for a pod, or for a claim by itself, given the claims it uses."""
        key = _wishes(pod, claims)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            found = self._kept[key] = self._ask(pod, claims)
        return found

    def names(self, pod: Pod | None, claims: Sequence[ResourceClaim]) -> tuple[str, ...]:
        """The names of the nodes for a pod, in order.

        Raises:
            SelectorError: A selector can't be read.
        """
        among, malformed = self.nodes(pod, claims)
        if malformed is not None:
            raise malformed[1]
        count = len(self._nodes)
        which = zip(self._nodes, among.to_bytes(count, "little"), strict=True)
        return tuple(node.metadata.name for node, yes in which if yes)

    def wishes(self, pod: Pod | None, claims: Sequence[ResourceClaim]) -> tuple[str, ...]:
        """For each thing that a pod demands of a node, how many nodes have it: why so few may be used."""
        nodes = self._nodes
        total = f"of {len(nodes)} nodes" if len(nodes) != 1 else "of 1 node"
        lines = []
        for claim in claims:
            for selector in _selectors([claim]):
                count = sum(selector_matches(selector, node) for node in nodes)
                name = f"{claim.metadata.namespace}/{claim.metadata.name}"
                lines.append(f"claim {name}, which is allocated already, can be used on {count} {total}")
        if pod is None:
            return tuple(lines)
        if pod.spec.node_name:
            there = pod.spec.node_name in self._names
            lines.append(
                f"the pod's node name is {pod.spec.node_name}" + ("" if there else ", and there is no such node")
            )
        for key, value in pod.spec.node_selector.items():
            found = Counter(node.metadata.labels[key] for node in nodes if key in node.metadata.labels)
            lines.append(f"{found[value]} {total} have the label {key}={value}{self._instead(key, value, found)}")
        required = _required(pod)
        if required is not None:
            count = sum(selector_matches(required, node) for node in nodes)
            keys = {each.key: None for term in required.node_selector_terms for each in term.match_expressions}
            about = f" (about {', '.join(list(keys)[:_SHOWN])})" if keys else ""
            lines.append(f"{count} {total} meet the required node affinity{about}")
        return tuple(lines)

    def _instead(self, key: str, value: str, found: Counter[str]) -> str:
        """What nodes have where none has the wanted value."""
        if found[value]:
            return ""
        if found:
            values = [f"{other} ({number})" for other, number in found.most_common(_SHOWN)]
            return f"; there are {', '.join(values)}" + (" and others" if len(found) > _SHOWN else "")
        near = get_close_matches(key, {name for node in self._nodes for name in node.metadata.labels}, 1)
        return f"; did you mean {near[0]}?" if near else "; none has a label of that name"

    def index(self, name: str) -> int:
        """The place of a node in their order."""
        return self._names[name]

    def _ask(self, pod: Pod | None, claims: Sequence[ResourceClaim]) -> Nodes:
        malformed: tuple[int, SelectorError] | None = None
        among = bytearray(len(self._nodes))
        for index in self._candidates(pod, claims):
            try:
                if may_use(pod, claims, self._nodes[index]):
                    among[index] = _ALL
            except SelectorError as error:
                malformed = malformed or (index, error)
        return Nodes(int.from_bytes(among, "little"), malformed)

    def _candidates(self, pod: Pod | None, claims: Sequence[ResourceClaim]) -> Iterator[int] | Sequence[int]:
        """The nodes that have to be looked at: where a name is demanded, only its bearer."""
        named = self._only or (pod.spec.node_name if pod else None) or _named(claims)
        if named is None:
            return range(len(self._nodes))
        index = self._names.get(named)
        return () if index is None else (index,)


def may_use(pod: Pod | None, claims: Sequence[ResourceClaim], node: Node) -> bool:
    """Whether the pod's own wishes and the claims it shares with others leave this node.

    Raises:
        SelectorError: A selector that is looked at can't be read.
    """
    if pod is not None and pod.spec.node_name and pod.spec.node_name != node.metadata.name:
        return False
    if not all(selector_matches(selector, node) for selector in _selectors(claims)):
        return False
    if pod is None:
        return True
    if any(node.metadata.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = _required(pod)
    return required is None or selector_matches(required, node)


def _selectors(claims: Sequence[ResourceClaim]) -> list[NodeSelector]:
    allocations = (claim.status.allocation for claim in claims)
    return [each.node_selector for each in allocations if each is not None and each.node_selector is not None]


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def _named(claims: Sequence[ResourceClaim]) -> str | None:
    """The only node of a claim that is allocated, in the form that the allocator writes; None if it isn't that form."""
    for selector in _selectors(claims)[:1]:
        if len(selector.node_selector_terms) != 1:
            return None
        (term,) = selector.node_selector_terms
        if term.match_expressions or len(term.match_fields) != 1:
            return None
        (field,) = term.match_fields
        if (field.key, field.operator, len(field.values)) == ("metadata.name", "In", 1):
            return field.values[0]
    return None


def _wishes(pod: Pod | None, claims: Sequence[ResourceClaim]) -> tuple[object, ...]:
    selectors = tuple([msgspec.msgpack.encode(each) for each in _selectors(claims)])
    if pod is None:
        return selectors
    required = _required(pod)
    return (
        pod.spec.node_name,
        frozenset(pod.spec.node_selector.items()),
        None if required is None else msgspec.msgpack.encode(required),
        *selectors,
    )
