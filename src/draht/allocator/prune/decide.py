"""How a problem is decided: cheap answers first, then upstream's search, then the pruned one.

Owns: the order. A single request for devices without amounts needs no search (`easy`). Most other calls end in a few
steps of the plain search, so the pruned search, which costs more a step and needs a model first, starts only after
`PLAIN_STEPS`; its first node looks at the numbers as a whole (rule 3).
A problem that must not be pruned (see `strict`) is searched in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draht.allocator.errors import BudgetError, Failure
from draht.allocator.prune.easy import Easy
from draht.allocator.prune.rules import DEFAULT, Rules
from draht.allocator.prune.search import search
from draht.allocator.prune.strict import reason
from draht.allocator.prune.translate import model_of, root_of
from draht.allocator.search import NO_LIMITS, Limits, Solution, solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from draht.allocator.problem import Problem, State
    from draht.allocator.prune.model import Model, Root
    from draht.allocator.prune.search import Found

__all__ = ["PLAIN_STEPS", "decide", "easy_of", "is_strict", "prune", "searched"]

PLAIN_STEPS: Final = 64
"""Steps of the plain search before the pruned one takes over."""

_INTERVAL: Final = 32


def decide(problem: Problem, state: State, limits: Limits = NO_LIMITS) -> Solution | Failure | None:
    """The first solution in upstream's order, the fatal error that upstream would meet before it, or None.

    Raises:
        BudgetError: A limit was reached before there was an answer.
    """
    if problem.failure is not None:
        return problem.failure
    easy = easy_of(problem)
    if easy is not None:
        return easy.decide(state)
    if is_strict(problem) or (limits.steps is not None and limits.steps <= PLAIN_STEPS):
        return solve(problem, state, limits)
    try:
        return solve(problem, state, Limits(PLAIN_STEPS, limits.deadline))
    except BudgetError:
        if limits.deadline is not None and limits.deadline():
            raise
    return prune(problem, state, limits)


def easy_of(problem: Problem) -> Easy | None:
    """The problem as one that needs no search, None if it isn't."""
    known = problem.memory.easy
    if known is None:
        easy = Easy.of(problem)
        known = problem.memory.easy = () if easy is None else (easy,)
    return known[0] if known else None


def is_strict(problem: Problem) -> bool:
    """Whether a problem must be searched without pruning; see `strict`."""
    known = problem.memory.strict
    if known is None:
        why = reason(problem)
        known = problem.memory.strict = () if why is None else (why,)
    return bool(known)


def prune(
    problem: Problem, state: State, limits: Limits = NO_LIMITS, rules: Rules = DEFAULT
) -> Solution | Failure | None:
    """As `decide`, with the pruned search from the first step. The problem must not be a strict one."""
    return searched(problem, model_of(problem, state), root_of(state), limits, rules)


def searched(
    problem: Problem, model: Model, root: Root, limits: Limits = NO_LIMITS, rules: Rules = DEFAULT
) -> Solution | Failure | None:
    """What the pruned search finds in a model of a problem.

    Raises:
        BudgetError: A limit was reached before there was an answer.
    """
    outcome = search(model, root, rules, _check(limits))
    if outcome.error is not None:
        slot, alternative, position = outcome.error
        return problem.choices[problem.plan.requests[slot].alternatives[alternative]].failures[position]
    return None if outcome.found is None else _solution(problem, outcome.found)


def _solution(problem: Problem, found: Found) -> Solution:
    chosen = []
    taken = []
    for request, alternative, where in zip(problem.plan.requests, found.alternatives, found.positions, strict=True):
        which = request.alternatives[alternative]
        chosen.append(which)
        taken += [(which, position) for position in where]
    return Solution(tuple(chosen), tuple(taken))


def _check(limits: Limits) -> Callable[[int], None] | None:
    if limits.steps is None and limits.deadline is None:
        return None

    def check(visited: int) -> None:
        if limits.steps is not None and visited >= limits.steps:
            raise BudgetError(f"no answer after {visited} search steps", hint="allow more steps")
        if limits.deadline is not None and not visited % _INTERVAL and limits.deadline():
            raise BudgetError(f"no answer in time, after {visited} search steps", hint="allow more time")

    return check
