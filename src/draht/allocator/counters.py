"""Shared counters: what partitions of a device take from the pool's counter sets, and what is left of them.

Follows upstream's ``checkAvailableCounters`` (v0.37.2): a device that consumes counters fits if afterwards *every*
counter of its pool suffices, so a pool with one overdrawn counter gives out no consumer at all. A shared device
consumes its counters once, however many shares it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from draht.allocator.fields import Field, FieldPacker
from draht.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from draht.allocator.pools import Pool
    from draht.allocator.row import Row
    from draht.allocator.usage import PoolUsage
    from draht.api.resource import Device

__all__ = ["CounterLayout", "consumed"]


def consumed(device: Device) -> Iterator[tuple[str, str, Quantity]]:
    """What a device consumes, as set, counter and amount."""
    for consumption in device.consumes_counters:
        for name, counter in consumption.counters.items():
            yield consumption.counter_set, name, Quantity.from_wire(counter.value)


@final
class CounterLayout:
    """The counters of a row as packed fields.

    Attributes:
        needs: For each position what it subtracts.
        guards: For each position the guard bits of all counters of its pool; 0 where it consumes nothing.
        any: Whether there is anything to count.
    """

    __slots__ = ("_fields", "any", "guards", "needs")

    def __init__(self, row: Row, packer: FieldPacker) -> None:
        needs = [0] * row.size
        guards = [0] * row.size
        # Per usable pool, by set and counter.
        self._fields: list[dict[tuple[str, str], Field]] = []
        for pool, start in zip(row.usable, row.starts, strict=True):
            fields: dict[tuple[str, str], Field] = {}
            self._fields.append(fields)
            wanted: dict[tuple[str, str], list[Quantity]] = {}
            consumers: list[tuple[int, list[tuple[str, str, Quantity]]]] = []
            for offset, device in enumerate(pool.devices):
                if device.consumes_counters:
                    listed = list(consumed(device))
                    consumers.append((start + offset, listed))
                    for name, counter, amount in listed:
                        wanted.setdefault((name, counter), []).append(amount)
            if not consumers:
                continue
            guard = 0
            for name, counters in pool.counter_sets.items():
                for counter, value in counters.items():
                    field = packer.add(value, wanted.get((name, counter), ()))
                    fields[name, counter] = field
                    guard |= field.guard
            for position, listed in consumers:
                totals: dict[Field, list[tuple[int, Quantity]]] = {}
                for name, counter, amount in listed:
                    totals.setdefault(fields[name, counter], []).append((1, amount))
                needs[position] = sum(field.need(parts) for field, parts in totals.items())
                guards[position] = guard
        self.needs = tuple(needs)
        self.guards = tuple(guards)
        self.any = any(guards)

    def remaining(self, index: int, pool: Pool, usage: PoolUsage) -> int:
        """What is left of the counters of the usable pool with this index, packed.

        Devices that are allocated but no longer there take nothing, as upstream.
        """
        fields = self._fields[index]
        if not fields:
            return 0
        taken: dict[tuple[str, str], list[tuple[int, Quantity]]] = {
            (name, counter): [(1, pool.counter_sets[name][counter])] for name, counter in fields
        }
        if usage.whole or usage.shares:
            for device in (*pool.devices, *pool.others):
                if device.consumes_counters and usage.holds(device.name):
                    for name, counter, amount in consumed(device):
                        taken[name, counter].append((-1, amount))
        return sum(field.remaining(taken[key]) for key, field in fields.items())
