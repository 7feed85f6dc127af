"""What becomes of a problem where certain devices are held, decided once and remembered.

Owns: the memory. A problem and what is held decide the outcome, so equal nodes, and one node asked twice, share it; it
is kept with the problem. An outcome for want of time or steps isn't kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draht.allocator.errors import BudgetError, Failure
from draht.allocator.problem import Problem, State
from draht.allocator.prune.decide import decide
from draht.allocator.search import NO_LIMITS, Limits, Solution

if TYPE_CHECKING:
    from collections.abc import Hashable

    from draht.allocator.plan import Plan
    from draht.allocator.row import Row
    from draht.allocator.usage import Usage

__all__ = ["Outcome", "outcome_of", "problem_of", "state_of"]

_KEPT: Final = 65536
_KEPT_OF_ROW: Final = 32

Outcome = Solution | Failure | BudgetError | None
"""A solution, a fatal error, a limit that was reached, or that the claims don't fit."""


def problem_of(plan: Plan, row: Row, limits: Limits = NO_LIMITS) -> Problem:
    """The problem of a plan on a row, remembered with the row for the next question about the same node."""
    known = row.problems.get(plan)
    if known is None:
        if len(row.problems) >= _KEPT_OF_ROW:
            row.problems.clear()
        known = row.problems[plan] = Problem.of(plan, row, limits.deadline)
    assert isinstance(known, Problem)
    return known


def state_of(problem: Problem, row: Row, held: Hashable, usage: Usage) -> State:
    """The state of a row where this is held; see `draht.allocator.projection.held_on`."""
    flat = problem.memory.flat
    if flat is None:
        flat = problem.memory.flat = not (
            problem.guards or problem.group_sets or any(choice.amount_guards for choice in problem.choices)
        )
    return State(held) if flat and isinstance(held, int) else problem.state(row, usage)


def outcome_of(problem: Problem, row: Row, held: Hashable, usage: Usage, limits: Limits = NO_LIMITS) -> Outcome:
    """How a problem is decided where this is held."""
    if problem.failure is not None:
        return problem.failure
    outcomes = problem.memory.outcomes
    if held in outcomes:
        return outcomes[held]
    try:
        outcome = decide(problem, state_of(problem, row, held, usage), limits)
    except BudgetError as error:
        return error
    if len(outcomes) > _KEPT:
        outcomes.clear()
    outcomes[held] = outcome
    return outcome
