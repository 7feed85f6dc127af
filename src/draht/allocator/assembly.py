"""Assembly: from a plan and a row to choices and constraint tables, in upstream's order of checks.

Owns what upstream does between gathering pools and its search: collecting all devices for requests in mode All, the
limit of devices a claim, and whichever mistake comes first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from draht.allocator.capacity import CapacityFault, Shortage
from draht.allocator.choice import Choice, positions
from draht.allocator.constraint import ABSENT, ConstraintTable, elements
from draht.allocator.errors import Failure, FatalKind
from draht.allocator.pools import PoolStatus
from draht.allocator.request import MAX_RESULTS, Mode
from draht.allocator.testing import Tester

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from draht.allocator.expressions import Derivation
    from draht.allocator.plan import Plan
    from draht.allocator.request import Alternative
    from draht.allocator.row import Row
    from draht.api.quantity import Quantity

__all__ = ["Assembly"]

_INTERVAL = 16


@final
class Assembly:
    """Goes through requests and devices in upstream's order until the first failure.

    Attributes:
        tester: What tests devices.
        choices: By alternative, still without packed amounts.
        tables: By claim.
    """

    def __init__(self, plan: Plan, row: Row, deadline: Callable[[], bool] | None) -> None:
        self.plan = plan
        self.row = row
        self.tester = Tester(plan, row, deadline)
        self.choices: list[Choice] = []
        self.answered: dict[Any, Choice] = {}
        self.tables: list[tuple[ConstraintTable, ...]] = []

    def run(self) -> Failure | None:
        """Make all choices and tables, or say what is wrong first."""
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
        """One alternative, without constraints and packed amounts; those that ask the same are tested once."""
        amounts = alternative.amounts
        question = (
            tuple([test.expression for test in alternative.tests]),
            alternative.mode,
            alternative.tolerations,
            tuple([(name, str(amount)) for name, amount in amounts.items()]) if amounts else None,
        )
        known = self.answered.get(question)
        if known is not None:
            count = known.count if alternative.mode is Mode.ALL else alternative.count
            return replace(known, alternative=alternative, count=count)
        choice = self.tested(alternative)
        if isinstance(choice, Choice) and not choice.errors:
            # A failure names its request, so it isn't shared.
            self.answered[question] = choice
        return choice

    def tested(self, alternative: Alternative) -> Choice | Failure:
        """As `choice`, by testing every device."""
        everything = alternative.mode is Mode.ALL
        candidates = errors = collected = selected = 0
        failures: dict[int, Failure] = {}
        consumed: dict[int, Mapping[str, Quantity]] = {}
        tester = self.tester
        unusable = tester.inoperable | tester.partitions
        taints = tester.taints
        end = 0
        for index, pool in enumerate(self.row.pools):
            if pool.status is not PoolStatus.READY:
                if everything:
                    return _unready(alternative, index, pool.status)
                continue
            start, end = end, end + len(pool.devices)
            for position in range(start, end):
                if not (position - start) % _INTERVAL:
                    tester.hurry()
                bit = 1 << position
                verdict = self.tester.selectable(alternative, position)
                if verdict is True:
                    selected |= bit
                    if self.plan.needs_capacity:
                        taken = self.tester.taking(alternative, position)
                        if isinstance(taken, CapacityFault):
                            verdict = Failure(
                                taken.kind, taken.message, alternative.claim, alternative.reference, position
                            )
                        elif isinstance(taken, Shortage):
                            continue
                        elif self.tester.multi & bit:
                            consumed[position] = taken
                if isinstance(verdict, Failure):
                    if everything:
                        return verdict
                    errors |= bit
                    failures[position] = verdict
                elif verdict:
                    collected |= bit
                    if not unusable & bit and (not taints or alternative.tolerates(taints[position])):
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
                        value = self.tester.derived(derivation, position)
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
                attribute = self.tester.derived(derivation, position) if reached >> position & 1 else None
            if attribute is None or isinstance(attribute, Exception):
                found.append(ABSENT)
                continue
            listed = elements(attribute, lists)
            if lists and not listed:
                found.append(ABSENT)
            else:
                found.append(tuple(sorted({numbers.setdefault(element, len(numbers)) for element in listed})))
        return found


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
