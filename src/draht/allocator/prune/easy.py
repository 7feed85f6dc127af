"""Problems that need no search: one request for some devices, with at most one match constraint, and nothing shared.

That is what most claims ask for, and an index over thousands of nodes decides it for hundreds of different uses.

Upstream takes the lexicographically first set of free candidates. Without a constraint that is the first ones. With a
match constraint on single values it is the first ones of the value whose first free candidate comes first, among values
with enough of them: a set begins with the first device of its value, and no set with an earlier first device exists.
Errors, amounts, groups, several requests and everything that makes order matter are left to the searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from draht.allocator.request import MAX_RESULTS, Mode
from draht.allocator.search import Solution

if TYPE_CHECKING:
    from draht.allocator.problem import Problem, State

__all__ = ["Easy"]


@dataclass(frozen=True, slots=True)
class Easy:
    """The one request of an easy problem.

    `share` is empty without a constraint, else by position the mask of devices with the same value.
    """

    which: int
    count: int
    candidates: int
    share: tuple[int, ...] = ()

    @staticmethod
    def of(problem: Problem) -> Easy | None:
        """The problem as an easy one, None if it isn't."""
        plan = problem.plan
        if len(plan.requests) != 1 or len(problem.choices) != 1 or len(plan.claims) != 1:
            return None
        choice = problem.choices[0]
        alternative = choice.alternative
        if (
            alternative.mode is not Mode.EXACT
            or alternative.admin
            or choice.errors
            or choice.late_failures
            or choice.amount_guards
            or problem.guards
            or problem.group_sets
            or problem.multi
            or not 0 < choice.count <= MAX_RESULTS
            or len(choice.sources) > 1
        ):
            return None
        if not choice.sources:
            return Easy(alternative.index, choice.count, choice.candidates)
        number, source = choice.sources[0]
        table = problem.tables[0][number]
        if source or not (table.match and table.simple and not table.ordered):
            return None
        return Easy(
            alternative.index, choice.count, choice.candidates & table.allowed(table.initial, source), table.share
        )

    def fits(self, used: int) -> bool:
        """Whether there is a solution where these devices are held and nothing else is."""
        free = self.candidates & ~used
        if free.bit_count() < self.count:
            return False
        if not self.share or self.count == 1:
            return True
        while free:
            low = free & -free
            alike = free & self.share[low.bit_length() - 1] | low
            if alike.bit_count() >= self.count:
                return True
            free &= ~alike
        return False

    def decide(self, state: State) -> Solution | None:
        """The first solution, or None."""
        free = self.candidates & ~state.used & ~state.barred
        if state.blocked:
            free &= ~state.blocked[self.which]
        if not self.share:
            return self._first(free) if free.bit_count() >= self.count else None
        while free:
            low = free & -free
            # A value that matches nothing, not even itself, is accepted alone.
            alike = free & self.share[low.bit_length() - 1] | low
            if alike.bit_count() >= self.count:
                return self._first(alike)
            free &= ~alike
        return None

    def _first(self, free: int) -> Solution:
        taken = []
        which = self.which
        for _ in range(self.count):
            low = free & -free
            free ^= low
            taken.append((which, low.bit_length() - 1))
        return Solution((which,), tuple(taken))
