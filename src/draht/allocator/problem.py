"""A problem: a plan on a row, as bit masks. What search, pruned search and fit index work on.

A `Problem` says for every alternative of every request which positions may be chosen, which positions end the attempt
with an error when they are reached, what a choice takes of shared amounts, and how choices restrict each other. It is
independent of what is in use and of names, immutable, and shared by all rows with the same `Plan.key`. A `State` is
what is in use, projected on the problem: a small hashable value, so that (problem, state) decides the outcome.

The order of upstream's checks is kept: `Problem.failure` is what upstream would report before its search, an error bit
is met when the search reaches a position that isn't in use, and requests in mode All have tested every device
beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from draht.allocator.assembly import Assembly
from draht.allocator.capacity import CapacityFault, Shortage, consumption
from draht.allocator.choice import Choice, positions
from draht.allocator.compatibility import Groups, fold
from draht.allocator.counters import CounterLayout
from draht.allocator.fields import Field, FieldPacker
from draht.allocator.memory import ProblemMemory
from draht.allocator.pools import PoolStatus
from draht.allocator.usage import EMPTY_POOL
from draht.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from draht.allocator.constraint import ConstraintTable
    from draht.allocator.plan import Plan
    from draht.allocator.row import Row
    from draht.allocator.usage import Usage

__all__ = ["Choice", "Problem", "State", "positions"]

_CACHED_PROBLEMS = 4096


@dataclass(frozen=True, slots=True)
class State:
    """What is in use of a row, as far as a problem can tell.

    Args:
        used: Positions of devices that are allocated as a whole.
        shared: Positions of multi-allocation devices of which a share is allocated: their counters are paid.
        left: Remaining counters and capacities, packed.
        barred: Positions that can't be chosen because counters or capacities are overdrawn already. For all others the
            guard bits that they need are set in `left`, which is what makes subtracting safe.
        blocked: By index of the alternative, further positions: dedicated devices of which shares are still allocated.
            Usually empty.
        groups: For each counter set with compatibility groups the bits that are still possible; None before the first.
    """

    used: int
    shared: int = 0
    left: int = 0
    barred: int = 0
    blocked: tuple[int, ...] = ()
    groups: tuple[int | None, ...] = ()


@final
class Problem:
    """A plan on every row with the same key.

    Attributes:
        plan: The plan.
        size: Number of positions.
        failure: What upstream reports before its search; then nothing else is set.
        choices: By alternative.
        tables: By claim, its constraints; see `ConstraintTable`.
        multi: Positions of multi-allocation devices: choosing them doesn't make them used.
        needs: For each position what it subtracts of counters the first time; () where nothing does.
        guards: For each position the guard bits of its pool's counters; () as above.
        group_sets: For each position the compatibility groups of what it consumes, as (index into `State.groups`,
            bits); () where no device has any.
        negative: Whether a device consumes a negative amount, so that taking it makes room for others.
        memory: What others work out about the problem and keep with it.
        has_invalid: Whether a pool is invalid: without a solution that is a `NodeError`.
        strict: Whether something about the problem forbids any reasoning by symmetry (mode All with constraints, or
            order-dependent constraints, errors in derived attributes, compatibility groups).
    """

    __slots__ = (
        "_all_guards",
        "_capacity_fields",
        "_counters",
        "_group_indexes",
        "_groups",
        "_unused",
        "choices",
        "failure",
        "group_sets",
        "guards",
        "has_invalid",
        "memory",
        "multi",
        "needs",
        "negative",
        "plan",
        "size",
        "strict",
        "tables",
    )

    @staticmethod
    def of(plan: Plan, row: Row, deadline: Callable[[], bool] | None = None) -> Problem:
        """The problem of a plan on a row, from the plan's cache if a row with the same key was seen.

        Args:
            plan: The plan.
            row: The row.
            deadline: Tells whether time is up; asked between expressions.

        Raises:
            BudgetError: Time was up before all devices were tested. Nothing half-done is kept.
        """
        key = plan.key(row)
        found = plan.problems.get(key)
        if found is None:
            found = Problem(plan, row, deadline)
            if len(plan.problems) >= _CACHED_PROBLEMS:
                plan.problems.clear()
            plan.problems[key] = found
        assert isinstance(found, Problem)
        return found

    def __init__(self, plan: Plan, row: Row, deadline: Callable[[], bool] | None) -> None:
        assembly = Assembly(plan, row, deadline)
        self.plan = plan
        self.size = row.size
        self.has_invalid = any(pool.status is PoolStatus.INVALID for pool in row.pools)
        self.failure = assembly.run()
        self.choices: tuple[Choice, ...] = ()
        self.tables: tuple[tuple[ConstraintTable, ...], ...] = ()
        self.multi = assembly.tester.multi
        self.needs: tuple[int, ...] = ()
        self.guards: tuple[int, ...] = ()
        self.group_sets: tuple[tuple[tuple[int, int], ...], ...] = ()
        self.strict = True
        self.negative = False
        self.memory = ProblemMemory()
        self._groups = Groups()
        self._group_indexes: dict[tuple[int, str], int] = {}
        self._capacity_fields: dict[tuple[int, str], Field] = {}
        self._counters: CounterLayout | None = None
        # Packed amounts where nothing is in use: for each usable pool its counters, then all capacities.
        self._unused: tuple[int, ...] = (0,)
        self._all_guards = 0
        if self.failure is not None:
            return
        packer = FieldPacker()
        if plan.features.partitionable_devices:
            counters = CounterLayout(row, packer)
            if counters.any:
                self._counters = counters
                self.needs, self.guards = counters.needs, counters.guards
                if plan.features.compatibility_groups:
                    self.group_sets = self._grouped(row)
        self.tables = tuple(assembly.tables)
        self.choices = self._packed(row, assembly.choices, packer)
        self._unused, self._all_guards = self._initial(row)
        self.negative = packer.negative
        self.strict = (
            self.negative
            or any(self.group_sets)
            or any(table.ordered for tables in self.tables for table in tables)
            or any(choice.late_failures or (choice.collected and choice.sources) for choice in self.choices)
        )

    def _initial(self, row: Row) -> tuple[tuple[int, ...], int]:
        unused: list[int] = []
        guards = 0
        if self._counters is not None:
            unused = [self._counters.remaining(index, pool, EMPTY_POOL) for index, pool in enumerate(row.usable)]
            for guard in self.guards:
                guards |= guard
        amounts = 0
        for (position, name), field in self._capacity_fields.items():
            amounts |= field.remaining(((1, Quantity.from_wire(row.device(position).capacity[name].value)),))
            guards |= field.guard
        return (*unused, amounts), guards

    def state(self, row: Row, usage: Usage) -> State:
        """What is in use, for a row of this problem.

        Args:
            row: A row with the problem's key.
            usage: Of the cluster.
        """
        used = shared = left = barred = 0
        leftover: list[tuple[int, Mapping[str, Quantity]]] = []
        held: dict[int, Mapping[str, Quantity]] = {}
        groups: list[int | None] = [None] * len(self._group_indexes)
        for index, (pool, start) in enumerate(zip(row.usable, row.starts, strict=True)):
            taken = usage.pool(*pool.id)
            for name in taken.whole:
                offset = pool.offset(name)
                if offset is not None:
                    used |= 1 << (start + offset)
            for name, share in taken.shares.items():
                offset = pool.offset(name)
                if offset is None:
                    continue
                position = start + offset
                if self.multi >> position & 1:
                    shared |= 1 << position
                    held[position] = share.consumed
                elif share.consumed:
                    leftover.append((position, share.consumed))
            if self._counters is not None:
                if taken.whole or taken.shares:
                    left |= self._counters.remaining(index, pool, taken)
                    if groups:
                        self._baseline(groups, index, pool, taken)
                else:
                    left |= self._unused[index]
        left |= self._unused[-1]
        for position, consumed in held.items():
            for name, entry in row.device(position).capacity.items():
                field = self._capacity_fields.get((position, name))
                if field is not None and name in consumed:
                    value = Quantity.from_wire(entry.value)
                    left -= field.remaining(((1, value),)) - field.remaining(((1, value), (-1, consumed[name])))
        if left & self._all_guards != self._all_guards:
            for position in range(self.size):
                guard = self._capacity_guard(position)
                if self.guards and not shared >> position & 1:
                    guard |= self.guards[position]
                if left & guard != guard:
                    barred |= 1 << position
        return State(used, shared, left, barred, self._blocked(row, leftover), tuple(groups))

    def _blocked(self, row: Row, leftover: list[tuple[int, Mapping[str, Quantity]]]) -> tuple[int, ...]:
        """Dedicated devices of which somebody still has shares, per alternative, where what is left doesn't suffice."""
        if not leftover or not self.plan.features.consumable_capacity:
            return ()
        masks: list[int] = []
        for choice in self.choices:
            mask = 0
            for position, consumed in leftover:
                capacity = row.device(position).capacity
                try:
                    taken = consumption(
                        choice.alternative.amounts,
                        capacity,
                        fractional=self.plan.features.fractional_capacity_range,
                    )
                except CapacityFault:
                    continue
                if not isinstance(taken, Shortage) and any(
                    name in consumed and consumed[name] + amount > Quantity.from_wire(capacity[name].value)
                    for name, amount in taken.items()
                ):
                    mask |= 1 << position
            masks.append(mask)
        return tuple(masks) if any(masks) else ()

    def _grouped(self, row: Row) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Number counter sets and groups, if any device of a pool declares groups at all."""
        found: list[tuple[tuple[int, int], ...]] = []
        grouped = False
        for index, pool in enumerate(row.usable):
            if bool(pool.frame.values[-1]) or any(
                c.compatibility_groups for device in pool.devices for c in device.consumes_counters
            ):
                grouped = True
            for device in pool.devices:
                sets = []
                for c in device.consumes_counters:
                    number = self._group_indexes.setdefault((index, c.counter_set), len(self._group_indexes))
                    sets.append((number, self._groups.mask(c.compatibility_groups)))
                found.append(tuple(sets))
        if grouped:
            return tuple(found)
        self._group_indexes.clear()
        return ()

    def _baseline(self, groups: list[int | None], index: int, pool: Any, taken: Any) -> None:
        for device in (*pool.devices, *pool.others):
            if taken.holds(device.name):
                for c in device.consumes_counters:
                    number = self._group_indexes.get((index, c.counter_set))
                    if number is not None:
                        groups[number] = fold(groups[number], self._groups.known(c.compatibility_groups))

    def _capacity_guard(self, position: int) -> int:
        for choice in self.choices:
            if choice.amount_guards:
                return choice.amount_guards[position]
        return 0

    def _packed(self, row: Row, drafts: list[Choice], packer: FieldPacker) -> tuple[Choice, ...]:
        """Lay out the capacities of multi-allocation devices and say what each choice takes of them."""
        wanted: dict[tuple[int, str], list[Quantity]] = {}
        for draft in drafts:
            for position, consumed in draft.consumed.items():
                for name, amount in consumed.items():
                    wanted.setdefault((position, name), []).append(amount)
        if not wanted:
            return tuple(drafts)
        guards = [0] * self.size
        for position, name in sorted(wanted):
            value = Quantity.from_wire(row.device(position).capacity[name].value)
            field = packer.add(value, wanted[position, name])
            self._capacity_fields[position, name] = field
            guards[position] |= field.guard
        shared_guards = tuple(guards)
        choices: list[Choice] = []
        for draft in drafts:
            amounts = [0] * self.size
            for position, consumed in draft.consumed.items():
                amounts[position] = sum(
                    self._capacity_fields[position, name].need(((1, amount),)) for name, amount in consumed.items()
                )
            choices.append(replace(draft, amounts=tuple(amounts), amount_guards=shared_guards))
        return tuple(choices)
