"""Reporters: who wants to know why devices were not chosen.

A reporter sees every rejection of a search with its cause, by name. The search pays nothing without one: causes are
found out afterwards, by asking the masks again in the order of upstream's tests.

It doesn't judge which cause matters most; that is `draht.allocator.explain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, final

from draht.allocator.capacity import CapacityFault, Shortage
from draht.allocator.choice import Choice, positions
from draht.allocator.testing import Tester

if TYPE_CHECKING:
    from collections.abc import Hashable

    from draht.allocator.problem import Problem, State
    from draht.allocator.row import DeviceId, Row

__all__ = ["Cause", "Observation", "Rejection", "Reporter", "SearchObserver"]


class Cause(StrEnum):
    """Why a device, or an alternative as a whole, was not taken; in the order of upstream's tests."""

    IN_USE = "in-use"
    """Allocated already."""
    CHOSEN = "chosen"
    """Taken by another request in the same attempt."""
    BINDING_CONDITIONS = "binding-conditions"
    """It has binding conditions, and the feature is off."""
    SELECTOR = "selector"
    """An expression of the class or the request is false."""
    NODE = "node"
    """The device itself selects other nodes."""
    CAPACITY = "capacity"
    """It lacks the capacity, its policy forbids the amount, or it is too small."""
    CAPACITY_IN_USE = "capacity-in-use"
    """Its capacity suffices, but what others consume doesn't leave enough."""
    NODE_OPERATIONS = "node-operations"
    """Its driver skips node operations, which the node or the release can't."""
    PARTITIONS = "partitions"
    """It consumes shared counters, and the feature is off."""
    COMPATIBILITY = "compatibility"
    """Devices on the same counter set have no compatibility group in common with it."""
    COUNTERS = "counters"
    """The counters it consumes are exhausted."""
    TAINT = "taint"
    """A taint isn't tolerated."""
    CONSTRAINT = "constraint"
    """A constraint with devices chosen before refuses it."""
    ATTRIBUTE_MISSING = "attribute-missing"
    """A constraint needs an attribute that it doesn't have."""
    NO_DEVICES = "no-devices"
    """All devices are asked for, and there are none. About the alternative."""
    RESULT_LIMIT = "result-limit"
    """The claim would get more than 32 devices. About the alternative."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One device, or one alternative, that was not taken.

    Args:
        claim: Index of the claim.
        request: ``request`` or ``request/subrequest``.
        device: None where the alternative as a whole was given up.
        cause: Why.
        detail: What exactly: the selector, the taint, the constraint, the capacity.
    """

    claim: int
    request: str
    device: DeviceId | None
    cause: Cause
    detail: str = ""


class Reporter(Protocol):
    """Whoever wants to know."""

    def rejected(self, rejection: Rejection) -> None:
        """A device or alternative was not taken; each distinct rejection of an attempt comes once."""
        ...


class SearchObserver(Protocol):
    """What a search tells, in numbers."""

    def opened(self, choice: Choice, values: tuple[object, ...], start: int, todo: int) -> None:
        """A device is wanted; of the positions from start on only those of the mask will be tried."""
        ...

    def refused(self, choice: Choice, values: tuple[object, ...], position: int) -> None:
        """A position was tried, and amounts or groups refused it."""
        ...

    def nothing(self, choice: Choice) -> None:
        """All devices are wanted, and there are none."""
        ...

    def exceeded(self, choice: Choice) -> None:
        """The claim would get too many devices."""
        ...


@final
class Observation:
    """Tells a reporter by name what a search tells in numbers."""

    def __init__(self, problem: Problem, state: State, row: Row, reporter: Reporter) -> None:
        self._problem = problem
        self._state = state
        self._row = row
        self._reporter = reporter
        self._tester = Tester(problem.plan, row)
        self._told: set[Hashable] = set()

    def opened(self, choice: Choice, values: tuple[object, ...], start: int, todo: int) -> None:
        """Report every position that isn't tried."""
        for position in positions(((1 << self._problem.size) - 1 & ~todo) >> start << start):
            self.refused(choice, values, position)

    def refused(self, choice: Choice, values: tuple[object, ...], position: int) -> None:
        """Report one position."""
        found = self._cause(choice, values, position)
        if found is not None:
            self._tell(choice, position, *found)

    def nothing(self, choice: Choice) -> None:
        """Report an alternative in mode All without devices, and why each device isn't one."""
        for position in range(self._problem.size):
            found = self._selection(choice, position) or self._capacity(choice, position)
            if found is not None:
                self._tell(choice, position, *found)
        self._tell(choice, None, Cause.NO_DEVICES, "")

    def exceeded(self, choice: Choice) -> None:
        """Report an alternative that is too large."""
        self._tell(choice, None, Cause.RESULT_LIMIT, f"{choice.count} devices")

    def _tell(self, choice: Choice, position: int | None, cause: Cause, detail: str) -> None:
        key = (choice.alternative.index, position, cause, detail)
        if key in self._told:
            return
        self._told.add(key)
        alternative = choice.alternative
        device = None if position is None else self._row.id(position)
        self._reporter.rejected(Rejection(alternative.claim, alternative.reference, device, cause, detail))

    def _cause(self, choice: Choice, values: tuple[object, ...], position: int) -> tuple[Cause, str] | None:
        used, mine, left, shared, states, groups = values[:6]
        assert isinstance(used, int)
        assert isinstance(mine, int)
        assert isinstance(left, int)
        assert isinstance(shared, int)
        assert isinstance(states, tuple)
        assert isinstance(groups, tuple)
        problem, tester, alternative = self._problem, self._tester, choice.alternative
        bit = 1 << position
        if (mine if alternative.admin else used) & bit:
            return (Cause.IN_USE if self._state.used & bit else Cause.CHOSEN), ""
        found = self._selection(choice, position) or self._capacity(choice, position)
        if found is not None:
            return found
        if self._state.blocked and self._state.blocked[alternative.index] & bit:
            return Cause.CAPACITY_IN_USE, "shares of it are still allocated"
        if choice.amounts:
            guard = choice.amount_guards[position]
            if left & guard != guard or (left - choice.amounts[position]) & guard != guard:
                return Cause.CAPACITY_IN_USE, ""
        if tester.inoperable & bit:
            return Cause.NODE_OPERATIONS, ""
        if tester.partitions & bit:
            return Cause.PARTITIONS, ""
        if not shared & bit:
            for number, bits in problem.group_sets[position] if problem.group_sets else ():
                if groups[number] is not None and not groups[number] & bits:
                    return Cause.COMPATIBILITY, ""
            guard = problem.guards[position] if problem.guards else 0
            if left & guard != guard or (guard and (left - problem.needs[position]) & guard != guard):
                return Cause.COUNTERS, ""
        if tester.taints and not alternative.tolerates(tester.taints[position]):
            key, value, effect = next(t for t in tester.taints[position] if not alternative.tolerates((t,)))
            return Cause.TAINT, f"{key}={value}:{effect}"
        for number, source in choice.sources:
            table = problem.tables[alternative.claim][number]
            if not table.allowed(states[number], source) & bit:
                constraint = table.constraint
                missing = table.lacks(source) & bit
                return (
                    Cause.ATTRIBUTE_MISSING if missing else Cause.CONSTRAINT,
                    f"{constraint.kind.value} {constraint.attribute}",
                )
        return None

    def _selection(self, choice: Choice, position: int) -> tuple[Cause, str] | None:
        tester = self._tester
        if tester.hidden >> position & 1:
            return Cause.BINDING_CONDITIONS, ""
        for test in choice.alternative.tests:
            if tester.verdict(test, position) is False:
                return Cause.SELECTOR, test.origin
        if tester.reach and tester.reach[position] is not True:
            return Cause.NODE, ""
        return None

    def _capacity(self, choice: Choice, position: int) -> tuple[Cause, str] | None:
        if not self._problem.plan.needs_capacity:
            return None
        taking = self._tester.taking(choice.alternative, position)
        if isinstance(taking, Shortage):
            return Cause.CAPACITY, taking.value
        if isinstance(taking, CapacityFault):
            return Cause.CAPACITY, taking.message
        return None
