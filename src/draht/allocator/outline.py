"""What a problem keeps of a row, known before the problem is made.

Nodes are grouped by the values that a plan mentions. All that a problem keeps of these values is which devices each
expression accepts, so hundreds of kinds of nodes that differ in model, memory or version need few problems, or one.

Owns: outlines, and the memory of what expressions accept. An outline is made only where it says everything: not where
an expression fails on a device (the failure has words for it), and not where derived attributes are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draht.allocator.errors import BudgetError
from draht.allocator.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from draht.allocator.expressions import Expression
    from draht.allocator.plan import Plan
    from draht.allocator.row import Row

__all__ = ["outline", "outlined"]

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
    key = outline(plan, row, columns, deadline)
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
