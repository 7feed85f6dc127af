"""The plain search: depth first in upstream's order, every feature, first solution wins.

Follows upstream's ``allocateOne`` (v0.37.2). Requests are satisfied one after the other over all claims, each with
combinations of devices in ascending positions; a later request that can't be satisfied makes earlier ones choose again,
across claims too. Nothing is skipped that upstream would try, except positions that masks rule out: those would be
refused one by one.

Three signals come back from a branch: a solution, failure, or *exceeded*: the claim would get more than 32 devices. The
last ends all loops over devices above it, because other devices don't change counts; only another alternative of a
prioritised list in the same claim does. Out of the first claim it is an error, as upstream.

The stack is explicit, so depth is limited by memory alone. The search doesn't know names, nodes or results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from draht.allocator.choice import Choice, positions
from draht.allocator.errors import BudgetError, Failure, FatalKind
from draht.allocator.request import MAX_RESULTS, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from draht.allocator.problem import Problem, State
    from draht.allocator.reporter import SearchObserver

__all__ = ["Limits", "Solution", "solve"]

_INTERVAL: Final = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """What a search may cost.

    Args:
        steps: Most search steps, None for any number. A step is a request entered or a device tried; which number an
            instance needs isn't promised.
        deadline: Tells whether time is up; asked every few hundred steps.
    """

    steps: int | None = None
    deadline: Callable[[], bool] | None = None


NO_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Solution:
    """Which devices were found.

    Args:
        chosen: For each request of the plan the index of its alternative.
        taken: (index of the alternative, position) in the order of choice.
    """

    chosen: tuple[int, ...]
    taken: tuple[tuple[int, int], ...]


def solve(
    problem: Problem, state: State, limits: Limits = NO_LIMITS, observer: SearchObserver | None = None
) -> Solution | Failure | None:
    """The first solution in upstream's order, the fatal error that upstream would meet before it, or None.

    Raises:
        BudgetError: A limit was reached before there was an answer.
    """
    if problem.failure is not None:
        return problem.failure
    return _Search(problem, state, limits, observer).run()


class _Frame:
    """A request that goes through its alternatives (`choice` is None), or one device of an alternative."""

    __slots__ = ("choice", "claim", "exceeded", "number", "request", "saved", "taken", "todo")

    def __init__(
        self, request: int, claim: int, choice: Choice | None, number: int, saved: _Values, taken: int
    ) -> None:
        self.request = request
        self.claim = claim
        self.choice = choice
        # Which device of the request this is, or which alternative is next.
        self.number = number
        self.saved = saved
        self.taken = taken
        self.todo = 0
        self.exceeded = True


# used, mine, left, shared, constraint states, groups, results of the claim
_Values = tuple[int, int, int, int, tuple["Hashable", ...], tuple[int | None, ...], int]


class _Search:
    __slots__ = (
        "barred",
        "blocked",
        "chosen",
        "exceeded",
        "failure",
        "limits",
        "next_check",
        "observer",
        "plan",
        "problem",
        "stack",
        "steps",
        "taken",
        "values",
    )

    def __init__(self, problem: Problem, state: State, limits: Limits, observer: SearchObserver | None) -> None:
        self.problem = problem
        self.plan = problem.plan
        self.barred = state.barred
        self.blocked = state.blocked
        self.limits = limits
        self.observer = observer
        self.steps = 0
        self.next_check = _INTERVAL if limits.steps is None else min(_INTERVAL, limits.steps)
        self.stack: list[_Frame] = []
        self.taken: list[tuple[int, int]] = []
        self.chosen = [request.alternatives[0] for request in self.plan.requests]
        self.values: _Values = (state.used, 0, state.left, state.shared, (), state.groups, 0)
        self.failure: Failure | None = None
        # The claim that would get too many devices, while that is the signal.
        self.exceeded: int | None = None

    def run(self) -> Solution | Failure | None:
        """The answer."""
        if self.plan.straight and self.observer is None:
            first = self.straight()
            if first is not None:
                return first
        signal = self.proceed(0, None, 0, 0)
        while True:
            # Forward while branches open.
            while signal == _OPEN:
                signal = self.advance(self.stack[-1])
            if signal == _DONE:
                return Solution(tuple(self.chosen), tuple(self.taken))
            if self.failure is not None:
                return self.failure
            # Back to the frame that has something left to try.
            if not self.stack:
                return self.over()
            frame = self.stack[-1]
            if self.exceeded is not None:
                if frame.claim != self.exceeded:
                    self.exceeded = None
                elif frame.choice is not None:
                    self.stack.pop()
                    continue
            if frame.choice is None:
                if self.exceeded is None:
                    frame.exceeded = False
                self.exceeded = None
            signal = _OPEN

    def straight(self) -> Solution | Failure | None:
        """The first branch alone, without anything to go back to; None, with nothing changed, if it ends.

        Nearly all searches succeed here. It costs no steps, because it can't go on for long.
        """
        problem = self.problem
        before = self.values
        claim = -1
        for request in self.plan.requests:
            choice = problem.choices[request.alternatives[0]]
            if request.claim != claim:
                claim = request.claim
                self.begin(claim)
                if self.limits.deadline is not None and self.limits.deadline():
                    break
            if choice.count > MAX_RESULTS - self.values[6]:
                break
            todo = self.open(choice, self.values)
            missing = choice.count
            while missing > 0 and todo:
                low = todo & -todo
                todo ^= low
                position = low.bit_length() - 1
                if choice.errors & low:
                    return choice.failures[position]
                values = self.take(choice, position)
                if values is not None:
                    self.values = values
                    self.taken.append((choice.alternative.index, position))
                    missing -= 1
                    if choice.sources:
                        # Constraints have narrowed; without any, what was open still is.
                        todo = self.open(choice, values) >> position + 1 << position + 1
                elif self.failure is not None:
                    return self.failure
            if missing > 0:
                break
        else:
            return Solution(tuple(self.chosen), tuple(self.taken))
        self.values = before
        self.taken.clear()
        return None

    def begin(self, claim: int) -> None:
        """Forget what belongs to the claim before."""
        used, _, left, shared, _, groups, _ = self.values
        states = tuple([table.initial for table in self.problem.tables[claim]])
        self.values = (used, 0, left, shared, states, groups, 0)

    def over(self) -> Failure | None:
        if self.exceeded != 0:
            return None
        return Failure(
            FatalKind.TOO_MANY_DEVICES,
            f"every way to satisfy the requests takes more than {MAX_RESULTS} devices",
            0,
            hint=f"ask for at most {MAX_RESULTS} devices in a claim",
        )

    def step(self) -> None:
        self.steps += 1
        if self.steps < self.next_check:
            return
        limits = self.limits
        if limits.steps is not None and self.steps >= limits.steps:
            raise BudgetError(f"no answer after {self.steps} search steps", hint="allow more steps")
        if limits.deadline is not None and limits.deadline():
            raise BudgetError(f"no answer in time, after {self.steps} search steps", hint="allow more time")
        self.next_check = self.steps + _INTERVAL
        if limits.steps is not None:
            self.next_check = min(self.next_check, limits.steps)

    def proceed(self, index: int, choice: Choice | None, number: int, start: int) -> int:
        """Open the next branch.

        Args:
            index: Of the request.
            choice: The alternative in work, None to begin the request.
            number: How many devices the alternative has.
            start: The first position that may follow them.
        """
        plan = self.plan
        while True:
            self.step()
            if choice is None:
                if index == len(plan.requests):
                    return _DONE
                request = plan.requests[index]
                if request.claim != self.claim_of(index - 1):
                    self.begin(request.claim)
                if request.prioritised:
                    self.stack.append(_Frame(index, request.claim, None, 0, self.values, len(self.taken)))
                    return _OPEN
                choice = self.problem.choices[request.alternatives[0]]
                number = start = 0
            claim = choice.alternative.claim
            fixed = choice.alternative.mode is Mode.ALL
            if fixed and not choice.count:
                if self.observer is not None:
                    self.observer.nothing(choice)
                return _FAILED
            missing = choice.count - number
            if missing > 0:
                break
            index, choice = index + 1, None
        values = self.values
        if missing > MAX_RESULTS - values[6]:
            self.exceeded = claim
            if self.observer is not None:
                self.observer.exceeded(choice)
            return _FAILED
        frame = _Frame(index, claim, choice, number, values, len(self.taken))
        if fixed:
            frame.todo = 1 << positions(choice.collected)[number]
        else:
            frame.todo = self.open(choice, values) >> start << start
            if self.observer is not None:
                self.observer.opened(choice, values, start, frame.todo)
        self.stack.append(frame)
        return _OPEN

    def claim_of(self, index: int) -> int:
        return self.plan.requests[index].claim if index >= 0 else -1

    def open(self, choice: Choice, values: _Values) -> int:
        """The positions worth trying: those that masks don't refuse, and those with an error to meet."""
        states = values[4]
        taken = values[1] if choice.alternative.admin else values[0]
        mask = choice.candidates & ~self.barred
        if self.blocked:
            mask &= ~self.blocked[choice.alternative.index]
        late = 0
        tables = self.problem.tables[choice.alternative.claim]
        for order, (number, source) in enumerate(choice.sources):
            if choice.late:
                late |= mask & choice.late[order]
            mask &= tables[number].allowed(states[number], source)
        return (mask | late | choice.errors) & ~taken

    def advance(self, frame: _Frame) -> int:
        """Try what is next in a frame; without success the frame is gone."""
        self.values = frame.saved
        del self.taken[frame.taken :]
        choice = frame.choice
        if choice is None:
            alternatives = self.plan.requests[frame.request].alternatives
            if frame.number == len(alternatives):
                self.exceeded = frame.claim if frame.exceeded else None
                self.stack.pop()
                return _FAILED
            which = alternatives[frame.number]
            frame.number += 1
            self.chosen[frame.request] = which
            return self.proceed(frame.request, self.problem.choices[which], 0, 0)
        fixed = choice.alternative.mode is Mode.ALL
        while frame.todo:
            low = frame.todo & -frame.todo
            frame.todo ^= low
            position = low.bit_length() - 1
            self.step()
            if choice.errors & low:
                self.failure = choice.failures[position]
                return _FAILED
            values = self.must_take(choice, position) if fixed else self.take(choice, position)
            if values is not None:
                self.values = values
                self.taken.append((choice.alternative.index, position))
                return self.proceed(frame.request, choice, frame.number + 1, position + 1)
            if self.failure is not None:
                return _FAILED
        self.stack.pop()
        return _FAILED

    def take(self, choice: Choice, position: int) -> _Values | None:
        """The values after taking a position that `open` offered, or None where amounts or groups refuse it."""
        problem = self.problem
        used, mine, left, shared, states, groups, results = self.values
        bit = 1 << position
        first = not shared & bit
        need = guard = 0
        if first and problem.guards:
            need, guard = problem.needs[position], problem.guards[position]
        if choice.amounts:
            need += choice.amounts[position]
            guard |= choice.amount_guards[position]
        if guard:
            left -= need
            if left & guard != guard:
                if self.observer is not None:
                    self.observer.refused(choice, self.values, position)
                return None
        if first and problem.group_sets and problem.group_sets[position]:
            joined = _joined(groups, problem.group_sets[position])
            if joined is None:
                if self.observer is not None:
                    self.observer.refused(choice, self.values, position)
                return None
            groups = joined
        if choice.sources:
            if choice.late_failures:
                for order, late in enumerate(choice.late):
                    if late & bit:
                        self.failure = choice.late_failures[order, position]
                        return None
            states = self.constrained(choice, position, states)
        if problem.multi & bit:
            shared |= bit
        else:
            used |= bit
            mine |= bit
        return used, mine, left, shared, states, groups, results + 1

    def must_take(self, choice: Choice, position: int) -> _Values | None:
        """The values after taking a device of a request for all devices, which wants exactly this one.

        A constraint that refuses it is an error, so here the order of upstream's tests matters: use, gates, groups,
        counters and taints before constraints, capacity after them.
        """
        problem = self.problem
        used, mine, left, shared, states, groups, results = self.values
        bit = 1 << position
        taken = mine if choice.alternative.admin else used
        if taken & bit or not choice.candidates & bit:
            return self.unusable(choice, position)
        if not shared & bit and problem.guards:
            guard = problem.guards[position]
            # Overdrawn counters are refused before they are subtracted from: that would borrow from their neighbours.
            if left & guard != guard:
                return self.unusable(choice, position)
            left -= problem.needs[position]
            if left & guard != guard:
                return self.unusable(choice, position)
            if problem.group_sets and problem.group_sets[position]:
                joined = _joined(groups, problem.group_sets[position])
                if joined is None:
                    return self.unusable(choice, position)
                groups = joined
        tables = problem.tables[choice.alternative.claim]
        for order, (number, source) in enumerate(choice.sources):
            if choice.late and choice.late[order] & bit:
                self.failure = choice.late_failures[order, position]
                return None
            if not tables[number].allowed(states[number], source) & bit:
                constraint = tables[number].constraint
                self.failure = Failure(
                    FatalKind.CONSTRAINT_ALL,
                    f"all devices are asked for, but {constraint.kind.value} {constraint.attribute} refuses one",
                    choice.alternative.claim,
                    choice.alternative.reference,
                    position,
                    hint="narrow the request down to devices that satisfy the constraint, or drop the constraint",
                )
                return None
        states = self.constrained(choice, position, states)
        if self.blocked and self.blocked[choice.alternative.index] & bit:
            return self.unusable(choice, position)
        if choice.amounts:
            guard = choice.amount_guards[position]
            if left & guard != guard:
                return self.unusable(choice, position)
            left -= choice.amounts[position]
            if left & guard != guard:
                return self.unusable(choice, position)
        if problem.multi & bit:
            shared |= bit
        else:
            used |= bit
            mine |= bit
        return used, mine, left, shared, states, groups, results + 1

    def constrained(self, choice: Choice, position: int, states: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        if not choice.sources:
            return states
        tables = self.problem.tables[choice.alternative.claim]
        changed = list(states)
        for number, source in choice.sources:
            changed[number] = tables[number].after(changed[number], source, position)
        return tuple(changed)

    def unusable(self, choice: Choice, position: int) -> _Values | None:
        if self.observer is not None:
            self.observer.refused(choice, self.values, position)
        return None


_FAILED: Final = 0
_OPEN: Final = 1
_DONE: Final = 2


def _joined(groups: tuple[int | None, ...], wanted: tuple[tuple[int, int], ...]) -> tuple[int | None, ...] | None:
    """Groups after one more device on these counter sets, None where it has none in common with those on one."""
    placed = list(groups)
    for number, bits in wanted:
        before = placed[number]
        common = bits if before is None else before & bits
        if not common:
            return None
        placed[number] = common
    return tuple(placed)
