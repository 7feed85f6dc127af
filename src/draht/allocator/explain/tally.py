"""What one request finds on the nodes: how many devices, how many it could have, and why not the others.

Counts devices at the moment before anything is chosen, so that a number means devices and not tries. Nodes that look
the same to the request are counted once and multiplied.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from draht.allocator.explain.explanation import NodeGroup
from draht.allocator.explain.question import Question
from draht.allocator.problem import Problem
from draht.allocator.projection import held_on
from draht.allocator.reporter import Cause, Observation, Rejection
from draht.allocator.row import DeviceId, Row
from draht.allocator.testing import Tester

__all__ = ["Group", "Tally", "tally"]

_SHOWN = 4


@dataclass(slots=True)
class Group:
    """Nodes that look the same.

    Args:
        row: Of the first of them.
        nodes: How many.
        devices: How many devices of the request's class one of them has.
        usable: Devices that could be had.
        refused: Cause → devices.
        details: (cause, detail) → devices.
    """

    row: Row
    nodes: int = 0
    devices: int = 0
    usable: list[DeviceId] = field(default_factory=list)
    refused: dict[Cause, list[DeviceId]] = field(default_factory=dict)
    details: Counter[tuple[Cause, str]] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """The first node."""
        return self.row.node.metadata.name


@dataclass(frozen=True, slots=True)
class Tally:
    """All groups, and the sums over them."""

    groups: tuple[Group, ...]

    @property
    def devices(self) -> int:
        """Devices of the class on all nodes; one that several nodes reach counts for each."""
        return sum(group.nodes * group.devices for group in self.groups)

    @property
    def usable(self) -> int:
        """Devices that could be had."""
        return sum(group.nodes * len(group.usable) for group in self.groups)

    def number(self, *causes: Cause) -> int:
        """Devices that are refused for one of these causes."""
        return sum(group.nodes * len(group.refused.get(cause, ())) for group in self.groups for cause in causes)

    def details(self, cause: Cause) -> list[tuple[str, int]]:
        """The details of a cause with their number, the most frequent first."""
        found: Counter[str] = Counter()
        for group in self.groups:
            for (of, detail), number in group.details.items():
                if of is cause:
                    found[detail] += number * group.nodes
        return found.most_common()

    def shown(self) -> tuple[NodeGroup, ...]:
        """The largest groups, for an explanation."""
        ordered = sorted(self.groups, key=lambda group: (-len(group.usable), -group.nodes))
        return tuple(
            NodeGroup(
                nodes=group.nodes,
                example=group.name,
                devices=group.devices,
                usable=len(group.usable),
                causes={cause.value: len(found) for cause, found in group.refused.items() if found},
            )
            for group in ordered[:_SHOWN]
            if group.devices
        )


class _Notes:
    """A reporter that remembers the first rejection of each device."""

    def __init__(self) -> None:
        self.found: dict[DeviceId, Rejection] = {}

    def rejected(self, rejection: Rejection) -> None:
        """Note it."""
        if rejection.device is not None:
            self.found.setdefault(rejection.device, rejection)


def tally(question: Question) -> Tally:
    """Count for a question of a single request; of a prioritised list, its first alternative counts."""
    groups: dict[object, Group] = {}
    plan = question.snapshot.plan(question.claims)
    for name in question.nodes:
        row = question.snapshot.row(name)
        key = row if row.error is not None else (plan.key(row), held_on(row, question.snapshot.usage))
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(row)
            if row.error is None:
                _count(group, question)
        group.nodes += 1
    return Tally(tuple(groups.values()))


def _count(group: Group, question: Question) -> None:
    row = group.row
    problem = Problem.of(question.snapshot.plan(question.claims), row)
    if problem.failure is not None:
        return
    notes = _Notes()
    alternative = problem.choices[0].alternative
    selectors = alternative.device_class.spec.selectors if alternative.device_class else ()
    of_class = alternative.tests[: len(selectors)]
    tester = Tester(problem.plan, row)
    state = problem.state(row, question.snapshot.usage)
    initial = tuple(table.initial for table in problem.tables[0])
    observation = Observation(problem, state, row, notes)
    values = (state.used, 0, state.left, state.shared, initial, state.groups)
    # As if none of the positions were tried: then all that speaks against them is told.
    observation.opened(problem.choices[0], values, 0, 0)
    for position in range(problem.size):
        if any(tester.verdict(test, position) is False for test in of_class):
            continue
        device = row.id(position)
        rejection = notes.found.get(device)
        group.devices += 1
        if rejection is None:
            group.usable.append(device)
        else:
            group.refused.setdefault(rejection.cause, []).append(device)
            group.details[rejection.cause, rejection.detail] += 1
