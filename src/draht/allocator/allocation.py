"""Allocating claims for one node: plan, problem, state, search and results in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draht.allocator.errors import BudgetError, Failure, NodeError
from draht.allocator.outcome import outcome_of, problem_of, state_of
from draht.allocator.policy import preferred
from draht.allocator.projection import held_on
from draht.allocator.reporter import Observation
from draht.allocator.result import results
from draht.allocator.search import NO_LIMITS, Limits, solve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from draht.allocator.policy import Policy
    from draht.allocator.reporter import Reporter
    from draht.allocator.row import Row
    from draht.allocator.snapshot import Snapshot
    from draht.api.core.node import Node
    from draht.api.resource import AllocationResult, ResourceClaim

__all__ = ["allocate", "node_error"]


def allocate(
    snapshot: Snapshot,
    claims: Sequence[ResourceClaim],
    node: str | Node,
    *,
    policy: Policy | None = None,
    reporter: Reporter | None = None,
    limits: Limits = NO_LIMITS,
    share_ids: Callable[[], str] | None = None,
) -> tuple[AllocationResult, ...] | None:
    """What the claims get on a node: one allocation a claim, or None where they don't fit.

    Args:
        snapshot: The cluster.
        claims: Claims without allocation, in the order in which they are satisfied; all of them or none.
        node: The name of a node of the snapshot, or a node.
        policy: Which of several solutions to prefer; None for upstream's, the first.
        reporter: Told why devices were not taken.
        limits: Most steps, and a deadline.
        share_ids: Gives UUIDs for shares of multi-allocation devices; None to derive them from claims.

    Raises:
        FatalError: The attempt is over for all nodes.
        NodeError: No solution here, and devices of an invalid pool were left out.
        BudgetError: A limit was reached first.
    """
    row = snapshot.row(node)
    if row.error is not None:
        raise row.error
    plan = snapshot.plan(claims)
    problem = problem_of(plan, row, limits)
    if reporter is None:
        solution = outcome_of(problem, row, held_on(row, snapshot.usage), snapshot.usage, limits)
        if isinstance(solution, BudgetError):
            raise solution
    elif problem.failure is not None:
        solution = problem.failure
    else:
        # A reporter wants to see what upstream's search would see, so nothing is skipped then.
        state = problem.state(row, snapshot.usage)
        solution = solve(problem, state, limits, Observation(problem, state, row, reporter))
    if isinstance(solution, Failure):
        raise solution.error(claims, row)
    if solution is not None:
        if policy is not None:
            state = state_of(problem, row, held_on(row, snapshot.usage), snapshot.usage)
            solution = preferred(policy, problem, row, state, solution, limits)
        return results(claims, row, problem, solution, share_ids)
    if problem.has_invalid:
        raise node_error(row)
    return None


def node_error(row: Row) -> NodeError:
    """Why there is no solution on a node with an invalid pool."""
    invalid = next(pool for pool in row.pools if pool.reason is not None)
    return NodeError(
        f"no solution without the invalid pool {invalid.id}: {invalid.reason}",
        where=f"node {row.node.metadata.name}",
        hint="ask the driver's authors",
    )
