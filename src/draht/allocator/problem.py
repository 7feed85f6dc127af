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

from draht.allocator.capacity import CapacityFault, Shortage, consumption
from draht.allocator.compatibility import Groups, fold
from draht.allocator.constraint import ABSENT, ConstraintTable, elements
from draht.allocator.counters import CounterLayout
from draht.allocator.errors import BudgetError, Failure, FatalKind
from draht.allocator.fields import Field, FieldPacker
from draht.allocator.plan import MAX_RESULTS, Mode, Plan, Test
from draht.allocator.pools import PoolStatus
from draht.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from draht.allocator.expressions import Derivation, Expression
    from draht.allocator.plan import Alternative
    from draht.allocator.row import Row
    from draht.allocator.usage import Usage

__all__ = ["Choice", "Problem", "State", "positions"]

_CACHED_PROBLEMS = 4096
_CACHED_VERDICTS = 65536


def positions(mask: int) -> list[int]:
    """The bit numbers of a mask, ascending."""
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """An alternative on a row.

    Attributes:
        alternative: What it was made from.
        count: Devices needed; for mode All as many as were collected.
        candidates: Positions that may be chosen, leaving aside what is in use, amounts and constraints. Selectors,
            static capacity, taints, node operations and gates have been tested.
        errors: Positions at which the attempt ends with `failures` when the search reaches them and they aren't in use.
            Disjoint from `candidates`. For mode All these were met before the search (`Problem.failure`), so it is 0.
        failures: By position, for `errors`.
        collected: Mode All: the positions to take, all of them, in order; those that aren't candidates make the request
            unsatisfiable when they are reached. 0 for exact counts.
        selected: Positions that pass selectors and node fields, whatever else is against them; for explanations.
        sources: For each constraint of the claim that is about it, in order: (index in the claim's tables, source).
        late: Positions whose derived attribute for a constraint can't be computed, by index into `sources`. The attempt
            ends there if everything before that constraint is satisfied.
        late_failures: By (index into `sources`, position).
        amounts: For each position what a choice subtracts of capacity fields; () where nothing does.
        amount_guards: For each position the guard bits of its capacity fields; () as above.
        consumed: By position, what a multi-allocation device gives, by capacity name; only those that can.
    """

    alternative: Alternative
    count: int
    candidates: int
    errors: int
    failures: Mapping[int, Failure]
    collected: int
    selected: int
    sources: tuple[tuple[int, int], ...]
    late: tuple[int, ...]
    late_failures: Mapping[tuple[int, int], Failure]
    amounts: tuple[int, ...]
    amount_guards: tuple[int, ...]
    consumed: Mapping[int, Mapping[str, Quantity]]


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
        has_invalid: Whether a pool is invalid: without a solution that is a `NodeError`.
        strict: Whether something about the problem forbids any reasoning by symmetry (mode All with constraints, or
            order-dependent constraints, errors in derived attributes, compatibility groups).
    """

    __slots__ = (
        "_capacity_fields",
        "_counters",
        "_group_indexes",
        "_groups",
        "choices",
        "failure",
        "group_sets",
        "guards",
        "has_invalid",
        "multi",
        "needs",
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
        builder = _Builder(plan, row, deadline)
        self.plan = plan
        self.size = row.size
        self.has_invalid = any(pool.status is PoolStatus.INVALID for pool in row.pools)
        self.failure = builder.run()
        self.choices: tuple[Choice, ...] = ()
        self.tables: tuple[tuple[ConstraintTable, ...], ...] = ()
        self.multi = builder.multi
        self.needs: tuple[int, ...] = ()
        self.guards: tuple[int, ...] = ()
        self.group_sets: tuple[tuple[tuple[int, int], ...], ...] = ()
        self.strict = True
        self._groups = Groups()
        self._group_indexes: dict[tuple[int, str], int] = {}
        self._capacity_fields: dict[tuple[int, str], Field] = {}
        self._counters: CounterLayout | None = None
        if self.failure is not None:
            return
        packer = FieldPacker()
        if plan.features.partitionable_devices:
            counters = CounterLayout(row, packer)
            if counters.any:
                self._counters = counters
                self.needs, self.guards = counters.needs, counters.guards
                if plan.features.compatibility_groups:
                    self._group_sets(row)
        self.tables = tuple(builder.tables)
        self.choices = self._packed(row, builder.choices, packer)
        self.strict = (
            len(self.group_sets) > 0
            or any(table.ordered for tables in self.tables for table in tables)
            or any(choice.late_failures or (choice.collected and choice.sources) for choice in self.choices)
        )

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
                left |= self._counters.remaining(index, pool, taken)
                if groups and (taken.whole or taken.shares):
                    self._baseline(groups, index, pool, taken)
        for (position, name), field in self._capacity_fields.items():
            value = Quantity.from_wire(row.device(position).capacity[name].value)
            amount = held.get(position, {}).get(name)
            left |= field.remaining(((1, value),) if amount is None else ((1, value), (-1, amount)))
        for position in range(self.size) if self.guards or self._capacity_fields else ():
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

    def _group_sets(self, row: Row) -> None:
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
            self.group_sets = tuple(found)
        else:
            self._group_indexes.clear()

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


class _Builder:
    """Goes through requests and devices in upstream's order until the first failure."""

    def __init__(self, plan: Plan, row: Row, deadline: Callable[[], bool] | None) -> None:
        self.plan = plan
        self.row = row
        self.deadline = deadline
        self.choices: list[Choice] = []
        self.tables: list[tuple[ConstraintTable, ...]] = []
        self.drivers = [pool.id.driver for pool in row.usable for _ in pool.devices]
        self.devices = [device for pool in row.usable for device in pool.devices]
        self.columns: dict[Any, tuple[Any, ...]] = {}
        self.takings: dict[Hashable, Any] = {}
        self.derivations: dict[tuple[str, int], Any] = {}
        features = plan.features
        multi = hidden = unusable = 0
        bit = 1
        for pool in row.usable:
            for index, device in enumerate(pool.devices):
                if device.allow_multiple_allocations and features.consumable_capacity:
                    multi |= bit
                if device.binding_conditions and not features.device_binding_and_status:
                    hidden |= bit
                operations = pool.slices[index].spec.skip_node_operations
                if operations and not (features.optional_node_operations and row.skips_operations):
                    unusable |= bit
                if device.consumes_counters and not features.partitionable_devices:
                    unusable |= bit
                bit <<= 1
        self.multi = multi
        self.hidden = hidden
        self.unusable = unusable
        self.taints = [taints for pool in row.usable for taints in pool.taints] if features.device_taints else []
        self.reach = (
            [r for pool in row.usable for r in (pool.reach or (True,) * len(pool.devices))]
            if any(pool.reach is not None for pool in row.usable)
            else []
        )

    def run(self) -> Failure | None:
        plan = self.plan
        for number, claim in enumerate(plan.claims):
            total = 0
            for index in claim.requests:
                request = plan.requests[index]
                if request.failure is not None:
                    return request.failure
                least: int | None = None
                for which in request.alternatives:
                    alternative = plan.alternatives[which]
                    if alternative.failure is not None:
                        return alternative.failure
                    choice = self.choice(alternative)
                    if isinstance(choice, Failure):
                        return choice
                    self.choices.append(choice)
                    least = choice.count if least is None else min(least, choice.count)
                assert least is not None
                if least > MAX_RESULTS - total:
                    name = plan.alternatives[request.alternatives[0]].reference.partition("/")[0]
                    return Failure(
                        FatalKind.TOO_MANY_DEVICES,
                        f"the claim would get more than {MAX_RESULTS} devices: {least} more than the {total} before",
                        number,
                        name,
                        hint=f"ask for at most {MAX_RESULTS} devices in a claim",
                    )
                total += least
            if claim.failure is not None:
                return claim.failure
            self.constrain(number)
        return None

    def choice(self, alternative: Alternative) -> Choice | Failure:
        """One alternative, without constraints and packed amounts."""
        everything = alternative.mode is Mode.ALL
        candidates = errors = collected = selected = 0
        failures: dict[int, Failure] = {}
        consumed: dict[int, Mapping[str, Quantity]] = {}
        end = 0
        for index, pool in enumerate(self.row.pools):
            if pool.status is not PoolStatus.READY:
                if everything:
                    return _unready(alternative, index, pool.status)
                continue
            if self.deadline is not None and self.deadline():
                raise BudgetError("no time was left while devices were tested", hint="allow more time")
            start, end = end, end + len(pool.devices)
            for position in range(start, end):
                bit = 1 << position
                verdict = self.selectable(alternative, position)
                if verdict is True:
                    selected |= bit
                    if self.plan.needs_capacity:
                        taken = self.taking(alternative, position)
                        if isinstance(taken, CapacityFault):
                            verdict = Failure(
                                taken.kind, taken.message, alternative.claim, alternative.reference, position
                            )
                        elif isinstance(taken, Shortage):
                            continue
                        elif self.multi & bit:
                            consumed[position] = taken
                if isinstance(verdict, Failure):
                    if everything:
                        return verdict
                    errors |= bit
                    failures[position] = verdict
                elif verdict:
                    collected |= bit
                    if not self.unusable & bit and (not self.taints or alternative.tolerates(self.taints[position])):
                        candidates |= bit
        return Choice(
            alternative=alternative,
            count=collected.bit_count() if everything else alternative.count,
            candidates=candidates,
            errors=errors,
            failures=failures,
            collected=collected if everything else 0,
            selected=selected,
            sources=(),
            late=(),
            late_failures={},
            amounts=(),
            amount_guards=(),
            consumed=consumed,
        )

    def selectable(self, alternative: Alternative, position: int) -> bool | Failure:
        if self.hidden >> position & 1:
            return False
        for test in alternative.tests:
            verdict = self.verdict(test, position)
            if verdict is False:
                return False
            if verdict is not True:
                return _failed(test, verdict, alternative, position)
        if not self.reach or self.reach[position] is True:
            return True
        reach = self.reach[position]
        if reach is False:
            return False
        return Failure(
            FatalKind.NODE_SELECTOR,
            f"the node selector of the device is malformed: {reach}",
            alternative.claim,
            alternative.reference,
            position,
            hint="ask the driver's authors",
        )

    def verdict(self, test: Test, position: int) -> bool | Exception:
        expression = test.expression
        known = self.plan.verdicts.get(expression)
        if known is None or len(known) > _CACHED_VERDICTS:
            known = self.plan.verdicts[expression] = {}
        key = self.mentioned(expression, position)
        verdict = known.get(key)
        if verdict is None:
            verdict = known[key] = expression.test(self.drivers[position], self.devices[position])
        assert isinstance(verdict, (bool, Exception))
        return verdict

    def mentioned(self, expression: Expression | Derivation, position: int) -> tuple[Any, ...]:
        """Everything the verdict can depend on."""
        columns = self.columns.get(expression)
        if columns is None:
            row = self.row
            listed = [row.contents().values] if expression.everything else []
            listed += [row.attribute(name).values for name in sorted(expression.attributes)]
            listed += [row.capacity(name).values for name in sorted(expression.capacities)]
            columns = self.columns[expression] = tuple(listed)
        return (
            self.drivers[position],
            bool(self.devices[position].allow_multiple_allocations),
            *[values[position] for values in columns],
        )

    def taking(self, alternative: Alternative, position: int) -> Mapping[str, Quantity] | Shortage | CapacityFault:
        amounts = alternative.amounts
        key = (self.row.capacities().values[position], alternative.index if amounts else -1)
        taken = self.takings.get(key)
        if taken is None:
            try:
                taken = consumption(
                    amounts,
                    self.devices[position].capacity,
                    fractional=self.plan.features.fractional_capacity_range,
                )
            except CapacityFault as fault:
                taken = fault
            self.takings[key] = taken
        assert isinstance(taken, (dict, Shortage, CapacityFault))
        return taken

    def constrain(self, claim: int) -> None:
        """Make the tables of a claim and connect its choices to them."""
        plan = self.plan
        constraints = plan.claims[claim].constraints
        lists = plan.features.list_type_attributes
        mine = [c for c in self.choices if c.alternative.claim == claim]
        sources: dict[int, list[tuple[int, int]]] = {c.alternative.index: [] for c in mine}
        late: dict[int, list[int]] = {c.alternative.index: [] for c in mine}
        failures: dict[int, dict[tuple[int, int], Failure]] = {c.alternative.index: {} for c in mine}
        tables: list[ConstraintTable] = []
        for number, constraint in enumerate(constraints):
            own: list[Any] = []
            numbers: dict[Any, int] = {}
            by_derivation: dict[Any, int] = {}
            about = [c for c in mine if number in c.alternative.constraints]
            plain = not any(constraint.attribute in (c.alternative.derived or {}) for c in about)
            if plain:
                own.append(self.row.pattern(constraint.attribute, lists).values)
            for choice in about:
                alternative = choice.alternative
                derivation = (alternative.derived or {}).get(constraint.attribute)
                source = 0 if plain else by_derivation.get(derivation)
                if source is None:
                    source = by_derivation[derivation] = len(own)
                    reached = 0
                    for other in about:
                        if (other.alternative.derived or {}).get(constraint.attribute) is derivation:
                            reached |= other.candidates
                    own.append(self.values(constraint.attribute, derivation, reached, numbers, lists))
                broken = 0
                if derivation is not None:
                    for position in positions(choice.candidates):
                        value = self.derived(derivation, position)
                        if isinstance(value, Exception):
                            broken |= 1 << position
                            failures[alternative.index][len(sources[alternative.index]), position] = Failure(
                                FatalKind.DERIVED_COMPILE if derivation.problem else FatalKind.DERIVED_RUNTIME,
                                f"derived attribute {constraint.attribute} failed: {value}",
                                claim,
                                alternative.reference,
                                position,
                                hint=getattr(value, "hint", None),
                                cause=value,
                            )
                sources[alternative.index].append((number, source))
                late[alternative.index].append(broken)
            tables.append(ConstraintTable(constraint, own))
        self.tables.append(tuple(tables))
        if constraints:
            for index, choice in enumerate(self.choices):
                which = choice.alternative.index
                if choice.alternative.claim == claim and sources[which]:
                    self.choices[index] = replace(
                        choice,
                        sources=tuple(sources[which]),
                        late=tuple(late[which]) if failures[which] else (),
                        late_failures=failures[which],
                    )

    def values(
        self, name: str, derivation: Derivation | None, reached: int, numbers: dict[Any, int], lists: bool
    ) -> list[Any]:
        """A source of a constraint: element numbers by position, from the devices or from a derived attribute."""
        found: list[Any] = []
        column = self.row.attribute(name).values if derivation is None else ()
        for position in range(self.row.size):
            if derivation is None:
                value = column[position]
                attribute = value[0] if isinstance(value, tuple) else value
            else:
                attribute = self.derived(derivation, position) if reached >> position & 1 else None
            if attribute is None or isinstance(attribute, Exception):
                found.append(ABSENT)
                continue
            listed = elements(attribute, lists)
            if lists and not listed:
                found.append(ABSENT)
            else:
                found.append(tuple(sorted({numbers.setdefault(element, len(numbers)) for element in listed})))
        return found

    def derived(self, derivation: Derivation, position: int) -> Any:
        known = self.plan.verdicts.get(derivation)
        if known is None or len(known) > _CACHED_VERDICTS:
            known = self.plan.verdicts[derivation] = {}
        key = self.mentioned(derivation, position)
        if key not in known:
            known[key] = derivation.derive(self.drivers[position], self.devices[position])
        return known[key]


def _failed(test: Test, error: Exception, alternative: Alternative, position: int) -> Failure:
    compiles = test.expression.problem is None
    return Failure(
        FatalKind.SELECTOR_RUNTIME if compiles else FatalKind.SELECTOR_COMPILE,
        f"{test.origin} failed: {error}" if compiles else f"{test.origin} doesn't compile: {error}",
        alternative.claim,
        alternative.reference,
        position,
        hint=getattr(error, "hint", None),
        cause=error,
    )


def _unready(alternative: Alternative, pool: int, status: PoolStatus) -> Failure:
    incomplete = status is PoolStatus.INCOMPLETE
    return Failure(
        FatalKind.POOL_INCOMPLETE if incomplete else FatalKind.POOL_INVALID,
        "all devices are asked for, but a pool is being updated"
        if incomplete
        else "all devices are asked for, but a pool is invalid",
        alternative.claim,
        alternative.reference,
        pool=pool,
        hint="wait until the driver has written all slices of the pool" if incomplete else "ask the driver's authors",
    )
