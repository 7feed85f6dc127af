"""Policies: which of several solutions to prefer. Whether there is one is never a policy's business.

Owns: what a policy is (`Policy`), what it may look at (`View`), and how a preference becomes a solution: positions are
renumbered in the order of preference and searched as always, so the first solution is the preferred one. A policy is
asked only where upstream's search found a solution; where the preferred search ends without one (for want of time, or
because the problem is one that can't be renumbered, see `draht.allocator.prune.strict`), upstream's solution stays.

Preference is greedy: the first device of the first request is as preferred as possible, then the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from draht.allocator.errors import BudgetError
from draht.allocator.prune.decide import is_strict, searched
from draht.allocator.prune.model import Choice, Model, Root, Rule
from draht.allocator.prune.translate import model_of, root_of
from draht.allocator.result import unjoined
from draht.allocator.search import NO_LIMITS, Limits, Solution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draht.allocator.problem import Problem, State
    from draht.allocator.row import Row
    from draht.api.resource import Device

__all__ = ["Policy", "View", "preferred"]


@dataclass(frozen=True, slots=True)
class View:
    """One node as a policy sees it: devices by position, and what is free.

    Args:
        problem: The claims on this node.
        row: What the node reaches.
        state: What is held there.
    """

    problem: Problem
    row: Row
    state: State

    @property
    def size(self) -> int:
        """Number of positions."""
        return self.problem.size

    @property
    def candidates(self) -> int:
        """The positions that some alternative could take now."""
        mask = 0
        for choice in self.problem.choices:
            mask |= (choice.candidates | choice.collected) & (-1 if choice.alternative.admin else ~self.state.used)
        return mask & ~self.state.barred

    @property
    def wanted(self) -> int:
        """The largest number of devices that one alternative asks for."""
        return max((choice.count for choice in self.problem.choices), default=0)

    def device(self, position: int) -> Device:
        """The device at a position."""
        return self.row.device(position)


class Policy(Protocol):
    """A preference among devices of a node, and among nodes."""

    def order(self, view: View) -> Sequence[int]:
        """All positions of a node, the preferred ones first."""
        ...

    def rank(self, view: View) -> float | None:
        """How much the node is to be avoided, as it is before the allocation; None for the order of nodes."""
        ...


def preferred(
    policy: Policy, problem: Problem, row: Row, state: State, solution: Solution, limits: Limits = NO_LIMITS
) -> Solution:
    """The solution that a policy prefers, given that there is one."""
    if is_strict(problem):
        return solution
    order = list(policy.order(View(problem, row, state)))
    if sorted(order) != list(range(problem.size)):
        raise AssertionError("a policy orders every position exactly once")
    if all(position == number for number, position in enumerate(order)):
        return solution
    model, root = renumbered(model_of(problem, state), root_of(state), order)
    try:
        found = searched(problem, model, root, limits)
    except BudgetError:
        return solution
    if not isinstance(found, Solution):
        return solution
    # Requests keep upstream's order of devices, whatever the order of preference.
    taken: list[tuple[int, int]] = []
    start = 0
    for which in found.chosen:
        here = []
        while start < len(found.taken) and found.taken[start][0] == which:
            here.append((which, order[found.taken[start][1]]))
            start += 1
        taken += sorted(here)
    preference = Solution(found.chosen, tuple(taken))
    if any(pool.crowded for pool in row.usable) and unjoined(row, problem, preference) is not None:
        # Its devices can't be used together on any node; upstream's can, or are an error whatever is preferred.
        return solution
    return preference


def renumbered(model: Model, root: Root, order: Sequence[int]) -> tuple[Model, Root]:
    """The same problem with position `order[i]` as position i, and without errors to be met."""
    places = [0] * model.size
    for number, position in enumerate(order):
        places[position] = number

    def mask(old: int) -> int:
        new = 0
        while old:
            low = old & -old
            old ^= low
            new |= 1 << places[low.bit_length() - 1]
        return new

    masks: dict[int, int] = {}

    def known(old: int) -> int:
        new = masks.get(old)
        if new is None:
            new = masks[old] = mask(old)
        return new

    def choice(old: Choice) -> Choice:
        fixed = None if old.fixed is None else tuple([places[position] for position in old.fixed])
        return replace(
            old,
            candidates=known(old.candidates),
            errors=0,
            fixed=fixed,
            fixed_mask=known(old.fixed_mask),
            takes=tuple([old.takes[position] for position in order]) if old.takes else (),
            take_guards=tuple([old.take_guards[position] for position in order]) if old.take_guards else (),
        )

    def rule(old: Rule) -> Rule:
        return Rule(
            old.distinct,
            tuple([known(old.same[position]) for position in order]),
            known(old.present),
            tuple([old.elements[position] for position in order]) if old.elements else (),
        )

    new = Model(
        model.size,
        tuple(tuple([choice(each) for each in slot]) for slot in model.slots),
        model.claim_of,
        tuple(tuple([rule(each) for each in rules]) for rules in model.rules),
        known(model.multi),
        tuple([model.needs[position] for position in order]) if model.needs else (),
        tuple([model.guards[position] for position in order]) if model.guards else (),
        tuple([model.fields[position] for position in order]) if model.fields else (),
        tuple([model.groups[position] for position in order]) if model.groups else (),
    )
    return new, Root(known(root.used), root.remaining, known(root.shared), root.groups)
