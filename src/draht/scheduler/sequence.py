"""One pod after the other: each sees what those before it got, and takes the first node that fits.

The order of a queue without priorities, and what a person expects of a list of manifests. Only what concerns devices
and the node's name and labels is looked at: no CPU, memory, taints or affinity between pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from draht.allocator import BudgetError, Limits, NodeError, Snapshot, allocate
from draht.allocator.nodes import SelectorError, selector_matches
from draht.api.core import Node, Pod
from draht.api.errors import DrahtError
from draht.api.resource import ResourceClaim
from draht.manifests import ManifestError, Manifests, PodClaim, pod_claims

__all__ = ["UNDECIDED", "Placement", "Sequence"]

UNDECIDED = 3
"""Nodes whose search reaches its limit before a pod is given up: what is hard on three is hard on thousands."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What became of one pod, or of one claim that no pod uses.

    Args:
        pod: The pod, or None for a claim by itself.
        claims: Its claims, with their allocation where it got a node.
        node: The node it got, or None.
        tried: Names of the nodes that were looked at, in their order; the last one is `node` if it got one.
        error: Why it couldn't be decided, or why its references lead nowhere. None with no node: it doesn't fit.
    """

    pod: Pod | None
    claims: tuple[PodClaim, ...]
    node: str | None
    tried: tuple[str, ...] = ()
    error: DrahtError | None = None

    @property
    def name(self) -> str:
        """``Pod default/trainer`` or ``ResourceClaim default/gpu``."""
        meta = self.pod.metadata if self.pod else self.claims[0].claim.metadata
        return f"{'Pod' if self.pod else 'ResourceClaim'} {meta.namespace}/{meta.name}"

    @property
    def fits(self) -> bool:
        """Whether it got a node; a claim by itself that is allocated needs none."""
        return self.node is not None or (self.pod is None and not self.unallocated)

    @property
    def unallocated(self) -> tuple[ResourceClaim, ...]:
        """The claims without allocation."""
        return tuple(each.claim for each in self.claims if each.claim.status.allocation is None)


class Sequence:
    """Places the pods of manifests, and claims that no pod uses, one after the other.

    Args:
        manifests: What there is.
        snapshot: The cluster; allocated claims of the manifests are part of it.
        node: Try only this node.
        policy: As `draht.allocator.allocate` takes it.
        limits: Makes the limits of one attempt; called for each.
        share_ids: As `draht.allocator.allocate` takes it.
    """

    def __init__(
        self,
        manifests: Manifests,
        snapshot: Snapshot,
        *,
        node: str | None = None,
        policy: Any = None,
        limits: Callable[[], Limits] = Limits,
        share_ids: Callable[[], str] | None = None,
    ) -> None:
        self._manifests = manifests
        self._only = node
        self._policy = policy
        self._limits = limits
        self._share_ids = share_ids
        self.snapshot = snapshot
        """The cluster with everything placed so far."""

    def place(self) -> Iterator[Placement]:
        """Place everything that uses claims; what has nothing to do with devices is passed over."""
        used: set[tuple[str, str]] = set()
        for pod in self._manifests.pods.values():
            try:
                claims = pod_claims(pod, self._manifests)
            except ManifestError as error:
                yield Placement(pod, (), None, error=error)
                continue
            used |= {(each.claim.metadata.namespace, each.claim.metadata.name) for each in claims}
            if claims:
                yield self.place_pod(pod, claims)
        for key, claim in self._manifests.claims.items():
            if key not in used:
                yield self.place_pod(None, (PodClaim("", claim, generated=False),))

    def place_pod(self, pod: Pod | None, claims: tuple[PodClaim, ...]) -> Placement:
        """Place one pod, or one claim by itself, and remember it."""
        claims = tuple(self._known(each) for each in claims)
        wanted = [each.claim for each in claims if each.claim.status.allocation is None]
        tried: list[str] = []
        kept: DrahtError | None = None
        undecided = 0
        for node in self._nodes():
            try:
                if not _may_use(pod, claims, node):
                    continue
                tried.append(node.metadata.name)
                found = allocate(
                    self.snapshot,
                    wanted,
                    node.metadata.name,
                    policy=self._policy,
                    limits=self._limits(),
                    share_ids=self._share_ids,
                )
            except (NodeError, BudgetError, SelectorError) as error:
                # Concerns this node only; what it was is said if no other node does.
                kept = kept or error
                undecided += isinstance(error, BudgetError)
                if undecided == UNDECIDED:
                    break
                continue
            except DrahtError as error:
                return Placement(pod, claims, None, tuple(tried), error)
            if found is None:
                continue
            results = iter(found)
            done = tuple(each if each.claim.status.allocation else _given(each, next(results)) for each in claims)
            for before, after in zip(claims, done, strict=True):
                if before is not after:
                    self.snapshot = self.snapshot.with_claim(after.claim)
            return Placement(pod, done, node.metadata.name, tuple(tried))
        return Placement(pod, claims, None, tuple(tried), kept)

    def eligible(self, placement: Placement) -> tuple[str, ...]:
        """Names of the nodes that a pod may use, whether or not its claims fit there."""
        return tuple(node.metadata.name for node in self._nodes() if _may_use(placement.pod, placement.claims, node))

    def _nodes(self) -> Iterator[Node]:
        if self._only is None:
            yield from self.snapshot.nodes.values()
        elif self._only in self.snapshot.nodes:
            yield self.snapshot.nodes[self._only]

    def _known(self, each: PodClaim) -> PodClaim:
        """The claim as it is by now: another pod may have got it allocated."""
        claim = self.snapshot.claims.get((each.claim.metadata.namespace, each.claim.metadata.name))
        return each if claim is None else PodClaim(each.entry, claim, each.generated)


def _given(each: PodClaim, allocation: Any) -> PodClaim:
    status = structs.replace(each.claim.status, allocation=allocation)
    return PodClaim(each.entry, structs.replace(each.claim, status=status), each.generated)


def _may_use(pod: Pod | None, claims: tuple[PodClaim, ...], node: Node) -> bool:
    """Whether the pod's own wishes and the claims it shares with others leave this node."""
    for each in claims:
        allocation = each.claim.status.allocation
        selector = allocation.node_selector if allocation else None
        if selector is not None and not selector_matches(selector, node):
            return False
    if pod is None:
        return True
    spec = pod.spec
    if spec.node_name and spec.node_name != node.metadata.name:
        return False
    if any(node.metadata.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or selector_matches(required, node)
