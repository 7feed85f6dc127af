"""Which problems are never pruned.

Owns: the list of what the proofs of the rules don't cover. Each entry names the fact (see `model`) that fails.
A problem with a reason is searched in full, exactly as upstream does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from draht.allocator.choice import positions
from draht.allocator.request import MAX_RESULTS, Mode

if TYPE_CHECKING:
    from draht.allocator.choice import Choice
    from draht.allocator.problem import Problem

__all__ = ["reason"]


def reason(problem: Problem) -> str | None:
    """Why this problem must be searched without pruning, or None."""
    if problem.negative:
        # F1: a device that gives amounts back makes room for others, so a subset of an acceptable set may not be one.
        return "an amount is negative"
    for tables in problem.tables:
        for table in tables:
            if table.ordered:
                # F1: a value of unknown type is accepted as the first one only.
                return "a constraint depends on the order of devices"
    for choice in problem.choices:
        if any(choice.late):
            # F4: whether the error is met depends on amounts and on constraints that are tested before.
            return "a derived attribute can't be computed for some device"
        if any(source for _, source in choice.sources):
            # The value of a device under a constraint then depends on the request; classes don't know of that.
            return "a constraint takes values from several sources"
        if choice.alternative.mode is Mode.ALL and choice.sources and not _harmless(problem, choice):
            # F4: a constraint that refuses a device of the list is fatal, one in use isn't; so their order matters.
            return "a constraint may refuse one of all devices"
    for claim in problem.plan.claims:
        most = 0
        for index in claim.requests:
            most += max(
                (problem.choices[which].count for which in problem.plan.requests[index].alternatives), default=0
            )
        if most > MAX_RESULTS:
            # F3: reaching the limit ends loops before positions that may hold errors, and is itself an error at last.
            return "a claim may reach the limit of results"
    return None


def _harmless(problem: Problem, choice: Choice) -> bool:
    """Whether no constraint can refuse a device of a request for all: it is about nothing else and all satisfy it."""
    for number, source in choice.sources:
        for other in problem.choices:
            if other is choice or other.alternative.claim != choice.alternative.claim:
                continue
            if other.alternative.request != choice.alternative.request and any(n == number for n, _ in other.sources):
                return False
        table = problem.tables[choice.alternative.claim][number]
        state = table.initial
        for position in positions(choice.collected):
            if not table.allowed(state, source) >> position & 1:
                return False
            state = table.after(state, source, position)
    return True
