"""What a problem keeps of a row, known before the problem is made.

Nodes are grouped by the values that a plan mentions. All that a problem keeps of these values is which devices each
expression accepts, so hundreds of kinds of nodes that differ in model, memory or version need few problems, or one.

Owns: outlines, and the memory of what expressions accept. An outline is made only where it says everything: not where
an expression fails on a device (the failure has words for it), and not where derived attributes are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draht.allocator.constraint import ABSENT
from draht.allocator.errors import BudgetError
from draht.allocator.problem import Problem
from draht.allocator.prune.decide import easy_of
from draht.allocator.prune.easy import Easy
from draht.allocator.testing import Tester

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from draht.allocator.expressions import Expression
    from draht.allocator.plan import Plan
    from draht.allocator.row import Row

__all__ = ["easy_outlined", "outline", "outlined"]

Mentioned = tuple[str, Any]

_KEPT = 4096


def outlined(
    plan: Plan, row: Row, columns: Mapping[Mentioned, Hashable], deadline: Callable[[], bool] | None
) -> Problem:
    """The problem of a plan on a row, shared by all rows with the same outline.

    Args:
        plan: The plan.
        row: The row.
        columns: What the row has of what the plan mentions; see `draht.allocator.projection.mentions`.
        deadline: Tells whether time is up.

    Raises:
        BudgetError: Time was up before all devices were tested.
    """
    return _outlined(plan, row, outline(plan, row, columns, deadline), deadline)


def _outlined(plan: Plan, row: Row, key: tuple[Hashable, ...] | None, deadline: Callable[[], bool] | None) -> Problem:
    if key is None:
        return Problem.of(plan, row, deadline)
    found = plan.outlines.get(key)
    if found is None:
        found = Problem.of(plan, row, deadline)
        if len(plan.outlines) >= _KEPT:
            plan.outlines.clear()
        plan.outlines[key] = found
    assert isinstance(found, Problem)
    return found


def easy_outlined(
    plan: Plan, row: Row, columns: Mapping[Mentioned, Hashable], deadline: Callable[[], bool] | None
) -> Easy | None:
    """The problem of a plan on a row as one that needs no search, None if it isn't; arguments as above.

    Outlines that differ only in what expressions accept make problems that differ only in candidates, so one problem
    tells what all of them have in common. That needs that amounts reject no device; what expressions accept is then
    narrowed by the same positions everywhere, which is checked on that one problem.

    Raises:
        BudgetError: Time was up before all devices were tested.
    """
    key = outline(plan, row, columns, deadline)
    if key is None or len(plan.alternatives) != 1 or columns.get(("amounts", None)) is not None or plan.asks_amounts:
        return _easy(_outlined(plan, row, key, deadline))
    size = len(key) - len(plan.expressions)
    accepted = (1 << row.size) - 1
    for bits in key[size:]:
        assert isinstance(bits, int)
        accepted &= bits
    common = plan.easies.get(key[:size], plan)
    if common is plan:
        common = _common(plan, row, _easy(_outlined(plan, row, key, deadline)), accepted)
        if len(plan.easies) >= _KEPT:
            plan.easies.clear()
        plan.easies[key[:size]] = common
    if common is None:
        return _easy(_outlined(plan, row, key, deadline))
    assert isinstance(common, Easy)
    return Easy(common.which, common.count, common.candidates & accepted, common.share)


def _easy(problem: Problem) -> Easy | None:
    return None if problem.failure is not None or problem.has_invalid else easy_of(problem)


def _common(plan: Plan, row: Row, easy: Easy | None, accepted: int) -> Easy | None:
    """With all positions that would be candidates if expressions accepted everything; None where that isn't sure."""
    tester = Tester(plan, row)
    if easy is None or not all(reach is True or reach is False for reach in tester.reach):
        return None
    alternative = plan.alternatives[0]
    barred = tester.hidden | tester.inoperable | tester.partitions
    open_ = 0
    for position in range(row.size):
        taints = tester.taints[position] if tester.taints else ()
        if (not tester.reach or tester.reach[position] is True) and alternative.tolerates(taints):
            open_ |= 1 << position
    open_ &= ~barred
    for number in alternative.constraints:
        # A match needs the attribute.
        name = plan.claims[0].constraints[number].attribute
        values = row.pattern(name, plan.features.list_type_attributes).values
        open_ &= sum(1 << position for position, value in enumerate(values) if value != ABSENT)
    return Easy(easy.which, easy.count, open_, easy.share) if easy.candidates == open_ & accepted else None


def outline(
    plan: Plan, row: Row, columns: Mapping[Mentioned, Hashable], deadline: Callable[[], bool] | None
) -> tuple[Hashable, ...] | None:
    """All that a problem keeps of a row, None where that can't be told; arguments as above."""
    if plan.derives:
        return None
    parts: list[Hashable] = [
        column for (kind, _), column in columns.items() if kind in {"frame", "amounts", "capacities", "pattern"}
    ]
    for expression in plan.expressions:
        judged = columns.get(("verdict", expression))
        accepted = _accepted(plan, expression, row, columns, deadline) if judged is None else judged
        if not isinstance(accepted, int):
            return None
        parts.append(accepted)
    return tuple(parts)


def _accepted(
    plan: Plan,
    expression: Expression,
    row: Row,
    columns: Mapping[Mentioned, Hashable],
    deadline: Callable[[], bool] | None,
) -> int | None:
    """The positions that an expression accepts; None where it fails on a device."""
    mentioned: list[Any] = [columns["contents", None]] if expression.everything else []
    mentioned += [columns["attribute", name] for name in sorted(expression.attributes)]
    mentioned += [columns["capacity", name] for name in sorted(expression.capacities)]
    known = plan.accepted.setdefault(expression, {})
    key = (row.frame, *mentioned)
    accepted: int | None = known.get(key, -1)
    if accepted != -1:
        return accepted
    accepted = _evaluated(plan, expression, row, [column.values for column in mentioned], deadline)
    if len(known) >= _KEPT:
        known.clear()
    known[key] = accepted
    return accepted


def _evaluated(
    plan: Plan,
    expression: Expression,
    row: Row,
    values: Sequence[tuple[Any, ...]],
    deadline: Callable[[], bool] | None,
) -> int | None:
    verdicts = plan.verdicts_of(expression)
    # As in `draht.allocator.testing`: driver, whether the device is shared, and its defect, besides what is mentioned.
    about = [(pool.values[1], part[0], part[-1]) for pool in row.frame.values[3] for part in pool.values[4]]
    accepted = 0
    for position, key in enumerate([(*first, *rest) for first, *rest in zip(about, *values, strict=True)]):
        verdict = verdicts.get(key)
        if verdict is None:
            if deadline is not None and deadline():
                raise BudgetError("no time was left while devices were tested", hint="allow more time")
            verdict = verdicts[key] = expression.test(key[0], row.device(position))
        if verdict is True:
            accepted |= 1 << position
        elif verdict is not False:
            return None
    return accepted
