"""One pod after the other: each sees what those before it got, and takes the first node that fits.

The order of a queue without priorities, and what a person expects of a list of manifests. Only what concerns devices
and the node's name and labels is looked at: no CPU, memory, taints or affinity between pods.

The answer is that of asking node by node, in their order; a session of the allocator gives it for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from draht.allocator import AllocatorError, BudgetError, Limits, NodeError, Session, Snapshot
from draht.allocator.explain import Explanation, explain
from draht.allocator.search import NO_LIMITS
from draht.api.core import Pod
from draht.api.errors import DrahtError
from draht.api.resource import AllocationResult, ResourceClaim
from draht.manifests import ManifestError, Manifests, PodClaim, pod_claims
from draht.scheduler.eligible import Eligible

if TYPE_CHECKING:
    from draht.allocator import Policy

__all__ = ["UNDECIDED", "Placement", "Sequence"]

Key = tuple[str, str]
"""Namespace and name of a claim."""

UNDECIDED = 3
"""Nodes whose search reaches its limit before a pod is given up: what is hard on three is hard on thousands."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What became of one pod, or of one claim that no pod uses.

    Args:
        pod: The pod, or None for a claim by itself.
        claims: Its claims, with their allocation where it got a node.
        node: The node it got, or None.
        error: Why it couldn't be decided, or why its references lead nowhere. None with no node: it doesn't fit.
    """

    pod: Pod | None
    claims: tuple[PodClaim, ...]
    node: str | None
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
        limits: Of one attempt on one node.
        share_ids: As `draht.allocator.allocate` takes it.
    """

    def __init__(
        self,
        manifests: Manifests,
        snapshot: Snapshot,
        *,
        node: str | None = None,
        policy: Policy | None = None,
        limits: Limits = NO_LIMITS,
        share_ids: Callable[[], str] | None = None,
    ) -> None:
        self._manifests = manifests
        self._eligible = Eligible(snapshot.nodes, node)
        self._known = dict(snapshot.claims)
        # Made when somebody is placed: it looks at every node.
        self._session: Session | None = None
        self._begin = partial(Session, snapshot, policy=policy, limits=limits, share_ids=share_ids)
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot:
        """The cluster with everything placed so far."""
        return self._snapshot if self._session is None else self._session.snapshot()

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
        claims = tuple(self._now(each) for each in claims)
        wanted = {_key(each): each.claim for each in claims if each.claim.status.allocation is None}
        among, malformed = self._eligible.nodes(pod, [each.claim for each in claims])
        # By the place of its node the first error that concerns one node only: told if no other node does.
        kept: tuple[int, AllocatorError] | None = malformed
        undecided = 0
        for node, answer in self._answers(list(wanted.values()), among):
            if not isinstance(answer, AllocatorError):
                return Placement(pod, self._take(claims, wanted, answer), node)
            if not isinstance(answer, (NodeError, BudgetError)):
                return Placement(pod, claims, None, answer)
            index = self._eligible.index(node)
            if kept is None or index < kept[0]:
                kept = (index, answer)
            undecided += isinstance(answer, BudgetError)
            if undecided == UNDECIDED:
                break
        return Placement(pod, claims, None, kept[1] if kept else None)

    def eligible(self, placement: Placement) -> tuple[str, ...]:
        """Names of the nodes that a pod may use, whether or not its claims fit there.

        Raises:
            SelectorError: A node selector of the pod or of its claims can't be read.
        """
        return self._eligible.names(placement.pod, [each.claim for each in placement.claims])

    def explain(self, placement: Placement, limits: Limits = NO_LIMITS) -> Explanation:
        """Why it doesn't fit, as things are by now.

        Raises:
            SelectorError: A node selector of the pod or of its claims can't be read.
        """
        claims = [each.claim for each in placement.claims]
        unallocated = {_key(each): each.claim for each in placement.claims if each.claim.status.allocation is None}
        return explain(
            self.snapshot,
            tuple(unallocated.values()),
            nodes=self.eligible(placement),
            wishes=self._eligible.wishes(placement.pod, claims),
            limits=limits,
        )

    def _answers(
        self, wanted: list[ResourceClaim], among: int
    ) -> Iterator[tuple[str, tuple[AllocationResult, ...] | AllocatorError]]:
        if not among:
            return
        if self._session is None:
            self._session = self._begin()
        yield from self._session.answers(wanted, among)

    def _take(
        self,
        claims: tuple[PodClaim, ...],
        wanted: Mapping[Key, ResourceClaim],
        results: tuple[AllocationResult, ...],
    ) -> tuple[PodClaim, ...]:
        assert self._session is not None
        self._session.take(list(wanted.values()), results)
        for (key, claim), allocation in zip(wanted.items(), results, strict=True):
            self._known[key] = structs.replace(claim, status=structs.replace(claim.status, allocation=allocation))
        return tuple(self._now(each) for each in claims)

    def _now(self, each: PodClaim) -> PodClaim:
        """The claim as it is by now: another pod may have got it allocated."""
        claim = self._known.get(_key(each))
        return each if claim is None else PodClaim(each.entry, claim, each.generated)


def _key(each: PodClaim) -> Key:
    return each.claim.metadata.namespace, each.claim.metadata.name
