"""A session: a working copy of a cluster for many allocations, each of which sees the ones before.

Owns: the copy, and what was allocated and released since. It is what a scheduler's step or a simulation works on: an
allocation costs microseconds, because only the nodes it changed are looked at again. The snapshot it began with stays
as it is; `Session.snapshot` gives an immutable snapshot of what the session has come to.

Not for use by several threads at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import msgspec

from draht.allocator.errors import AllocatorError
from draht.allocator.fit import FAILED, Fit, PlanFit
from draht.allocator.search import NO_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from draht.allocator.policy import Policy
    from draht.allocator.snapshot import Snapshot
    from draht.api.resource import AllocationResult, ResourceClaim

__all__ = ["Placement", "Session"]


class Placement(NamedTuple):
    """Where claims were allocated, and what they got."""

    node: str
    results: tuple[AllocationResult, ...]


@final
class Session:
    """A working copy of a snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        policy: Policy | None = None,
        limits: Limits = NO_LIMITS,
        share_ids: Callable[[], str] | None = None,
    ) -> None:
        """Begin with a snapshot.

        Args:
            snapshot: Where to begin.
            policy: Which devices and nodes to prefer; None for upstream's first solution on the first node.
            limits: For each search.
            share_ids: Gives UUIDs for shares of multi-allocation devices; None to derive them from claims.
        """
        self._base = snapshot
        self._fleet = snapshot.fleet().copy()
        self._fleet.learn(snapshot.fleet())
        self._policy = policy
        self._limits = limits
        self._share_ids = share_ids
        # What happened since, so that a snapshot can be made: claims with their allocation, None for released ones.
        self._changes: list[tuple[ResourceClaim, AllocationResult | None]] = []

    def find(self, claims: Sequence[ResourceClaim]) -> Fit:
        """Which nodes the claims fit on now; later changes of the session don't change the answer."""
        known = self._known(claims)
        return Fit(
            claims,
            self._fleet.names,
            known.frozen(),
            bytes(known.verdicts),
            self._share_ids,
            self._policy,
            self._limits,
        )

    def allocate(self, claims: Sequence[ResourceClaim], node: str) -> tuple[AllocationResult, ...] | None:
        """Allocate claims on a node; None, and nothing changed, where they don't fit.

        Raises:
            AllocatorError: There is an error instead of an answer, or the node isn't known.
        """
        index = self._fleet.number(node)
        if index is None:
            raise AllocatorError(f"node {node[:80]} is not known", hint="name a node of the snapshot")
        return self._take(claims, self._known(claims), index)

    def allocate_first(self, claims: Sequence[ResourceClaim]) -> Placement | None:
        """Allocate claims on the first node, in the order of nodes, on which they fit; None where there is none.

        With a policy that ranks nodes, on the one that it prefers.

        Raises:
            AllocatorError: They fit nowhere, and there is at least one node with an error instead of an answer.
        """
        known = self._known(claims)
        index = known.first() if self._policy is None else known.best(self._policy)
        if index is None:
            error = known.first_error(claims)
            if error is not None:
                raise error
            return None
        found = self._take(claims, known, index)
        assert found is not None
        return Placement(self._fleet.names[index], found)

    def answers(
        self, claims: Sequence[ResourceClaim], among: int | None = None
    ) -> Iterator[tuple[str, tuple[AllocationResult, ...] | AllocatorError]]:
        """For each node, in order, on which the claims fit, what they would get; or the error instead of an answer.

        Nothing is taken: that is `take`. A node is looked at when the iteration comes there, so where the first answer
        is enough, a search that is hard everywhere is made once. Don't go on after a change of the session.

        Args:
            claims: Claims without allocation.
            among: The nodes that count: a number with a byte of ones for each, the first node's lowest; None for all.
        """
        known = PlanFit.of(self._base.plan(claims), self._fleet, self._limits, lazy=True)
        for node, verdict in known.answered(among, self._limits):
            found: tuple[AllocationResult, ...] | AllocatorError | None
            try:
                if verdict == FAILED:
                    found = known.error(claims, node)
                else:
                    found = known.results(claims, node, self._share_ids, self._policy, self._limits)
            except AllocatorError as error:
                # A verdict can be had without a solution, which may then not be there in time.
                found = error
            if found is not None:
                yield self._fleet.names[node], found

    def take(self, claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]) -> None:
        """The claims get what `answers` said."""
        self._fleet.hold(results)
        self._changes += zip(claims, results, strict=True)

    def release(self, claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]) -> None:
        """Give back what claims got in this session, or held in the snapshot it began with."""
        self._fleet.hold(results, release=True)
        self._changes += [(claim, None) for claim in claims]

    def snapshot(self) -> Snapshot:
        """An immutable snapshot of the present state."""
        return self._base.with_claims(
            [
                msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=allocation))
                for claim, allocation in self._changes
            ]
        )

    def _known(self, claims: Sequence[ResourceClaim]) -> PlanFit:
        return PlanFit.of(self._base.plan(claims), self._fleet, self._limits)

    def _take(self, claims: Sequence[ResourceClaim], known: PlanFit, node: int) -> tuple[AllocationResult, ...] | None:
        found = known.results(claims, node, self._share_ids, self._policy, self._limits)
        if found is not None:
            self.take(claims, found)
        return found
