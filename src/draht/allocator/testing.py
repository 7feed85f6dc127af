"""Testing one device for one alternative: everything that doesn't depend on what is in use.

Owns the order in which upstream tests, and the saving: a verdict is computed once for all devices that are equal in
what the expression mentions, on all rows of a plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from draht.allocator.capacity import CapacityFault, Shortage, consumption
from draht.allocator.errors import BudgetError, Failure, FatalKind
from draht.api.quantity import QuantityError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from draht.allocator.expressions import Derivation, Expression
    from draht.allocator.plan import Plan
    from draht.allocator.request import Alternative, Test
    from draht.allocator.row import Row
    from draht.api.quantity import Quantity

__all__ = ["Tester"]


@final
class Tester:
    """Tests devices of a row for a plan.

    Attributes:
        multi: Positions of multi-allocation devices, where that feature is on.
        hidden: Positions of devices with binding conditions, where that feature is off: they are not even selected.
        inoperable: Positions whose slice wants to skip node operations on a node or under a gate that can't.
        partitions: Positions of devices that consume counters, where that feature is off.
        taints: By position; empty where that feature is off.
    """

    def __init__(self, plan: Plan, row: Row, deadline: Callable[[], bool] | None = None) -> None:
        """Prepare to test.

        Args:
            plan: The plan.
            row: The row.
            deadline: Tells whether time is up; asked before every evaluation, which may cost as much as a tenth of a
                second.
        """
        self.deadline = deadline
        self.plan = plan
        self.row = row
        self.drivers = [pool.id.driver for pool in row.usable for _ in pool.devices]
        self.devices = [device for pool in row.usable for device in pool.devices]
        self.defects = [part[-1] for pool in row.usable for part in pool.frame.values[4]]
        self.columns: dict[Any, tuple[Any, ...]] = {}
        self.takings: dict[Hashable, Any] = {}
        features = plan.features
        self.multi = self.hidden = self.inoperable = self.partitions = 0
        bit = 1
        for pool in row.usable:
            for index, device in enumerate(pool.devices):
                if device.allow_multiple_allocations and features.consumable_capacity:
                    self.multi |= bit
                if device.binding_conditions and not features.device_binding_and_status:
                    self.hidden |= bit
                operations = pool.slices[index].spec.skip_node_operations
                allowed = features.optional_node_operations and row.skips_operations
                if operations and features.experimental and not allowed:
                    self.inoperable |= bit
                if device.consumes_counters and not features.partitionable_devices:
                    self.partitions |= bit
                bit <<= 1
        self.taints = [taints for pool in row.usable for taints in pool.taints] if features.device_taints else []
        self.reach = (
            [r for pool in row.usable for r in (pool.reach or (True,) * len(pool.devices))]
            if any(pool.reach is not None for pool in row.usable)
            else []
        )

    def selectable(self, alternative: Alternative, position: int) -> bool | Failure:
        """Whether selectors and the device's own node fields accept it."""
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
        """What a selector says about a device."""
        expression = test.expression
        known = self.plan.verdicts_of(expression)
        key = self.mentioned(expression, position)
        verdict = known.get(key)
        if verdict is None:
            self.hurry()
            verdict = known[key] = expression.test(self.drivers[position], self.devices[position])
        assert isinstance(verdict, (bool, Exception))
        return verdict

    def hurry(self) -> None:
        """Give up where time is up.

        Raises:
            BudgetError: It is.
        """
        if self.deadline is not None and self.deadline():
            raise BudgetError("no time was left while devices were tested", hint="allow more time")

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
            self.defects[position],
            *[values[position] for values in columns],
        )

    def taking(self, alternative: Alternative, position: int) -> Mapping[str, Quantity] | Shortage | CapacityFault:
        """What an alternative would consume of a device that nobody uses, or why it can't."""
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
            except QuantityError as error:
                taken = CapacityFault(
                    FatalKind.CAPACITY_UNREPRESENTABLE, f"the device has a capacity that is none: {error}"
                )
            self.takings[key] = taken
        assert isinstance(taken, (dict, Shortage, CapacityFault))
        return taken

    def derived(self, derivation: Derivation, position: int) -> Any:
        """The derived attribute of a device, or the exception that says why there is none."""
        known = self.plan.verdicts_of(derivation)
        key = self.mentioned(derivation, position)
        if key not in known:
            self.hurry()
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
