"""From a problem and a state to the model that the pruned search works on.

Owns: folding what doesn't change during a search into masks, and finding the fields in packed amounts. It keeps the
model with the problem, because the next state usually leads to the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draht.allocator.choice import positions
from draht.allocator.prune.model import Choice, Model, Root, Rule
from draht.allocator.request import Mode

if TYPE_CHECKING:
    from draht.allocator.choice import Choice as Masks
    from draht.allocator.constraint import ConstraintTable
    from draht.allocator.problem import Problem, State

__all__ = ["model_of", "root_of"]

_KEPT: Final = 4096
"""Models of a problem that are kept; with counters each state that is met may be one of its own."""


def root_of(state: State) -> Root:
    """Where the search starts."""
    return Root(state.used, state.left, state.shared, state.groups)


def model_of(problem: Problem, state: State) -> Model:
    """The model of a problem; of the state it depends only on positions that can't be chosen at all."""
    models, key = problem.memory.models, (state.barred, state.blocked)
    known = models.get(key)
    if known is None:
        if len(models) >= _KEPT:
            models.clear()
        known = models[key] = _model(problem, state.barred, state.blocked)
    return known


def _model(problem: Problem, barred: int, blocked: tuple[int, ...]) -> Model:
    plan = problem.plan
    spans = _spans(problem)
    fields = []
    if spans:
        for position in range(problem.size):
            charged = problem.needs[position] if problem.needs else 0
            if problem.multi >> position & 1:
                for choice in problem.choices:
                    # Fields are set or not; adding amounts of several alternatives would spill over.
                    charged |= choice.amounts[position] if choice.amounts else 0
            fields.append(tuple([span for span in spans if charged >> span[0] & span[1]]))
    return Model(
        problem.size,
        tuple(
            tuple([_choice(problem.choices[which], barred, blocked) for which in request.alternatives])
            for request in plan.requests
        ),
        tuple([request.claim for request in plan.requests]),
        tuple(tuple([_rule(table) for table in tables]) for tables in problem.tables),
        problem.multi,
        problem.needs,
        problem.guards,
        tuple(fields),
        problem.group_sets,
    )


def _spans(problem: Problem) -> list[tuple[int, int]]:
    """All fields as (shift, mask with the guard): one ends at a guard bit, the next one begins above it."""
    guards = 0
    for guard in problem.guards:
        guards |= guard
    for choice in problem.choices:
        for guard in choice.amount_guards:
            guards |= guard
    spans = []
    begin = 0
    while guards:
        low = guards & -guards
        guards ^= low
        end = low.bit_length()
        spans.append((begin, (1 << end - begin) - 1))
        begin = end
    return spans


def _choice(masks: Masks, barred: int, blocked: tuple[int, ...]) -> Choice:
    alternative = masks.alternative
    candidates = masks.candidates & ~barred
    if blocked:
        candidates &= ~blocked[alternative.index]
    fixed: tuple[int, ...] | None = None
    fixed_mask = 0
    rules = tuple([number for number, _ in masks.sources])
    if alternative.mode is Mode.ALL:
        # One device that can't be taken makes the whole request impossible. What constraints there are refuse none.
        if not masks.collected & ~candidates:
            fixed_mask = masks.collected
        fixed = tuple(positions(fixed_mask))
        candidates = 0
        rules = ()
    return Choice(
        # A negative count, which only an unchecked claim has, is satisfied by nothing, as upstream.
        max(masks.count, 0),
        candidates,
        masks.errors,
        alternative.admin,
        fixed,
        rules,
        masks.amounts,
        masks.amount_guards,
        fixed_mask,
    )


def _rule(table: ConstraintTable) -> Rule:
    numbers = table.numbers(0)
    present = 0
    for position, value in enumerate(numbers):
        if value:
            present |= 1 << position
    if any(len(value) > 1 for value in numbers):
        elements = tuple([sum(1 << number for number in value) for value in numbers])
        same = table.share if table.simple else _sharing(elements)
        return Rule(not table.match, same, table.allowed(table.initial, 0), elements)
    return Rule(not table.match, table.share, table.allowed(table.initial, 0))


def _sharing(elements: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([sum(1 << p for p, other in enumerate(elements) if other & value) for value in elements])
