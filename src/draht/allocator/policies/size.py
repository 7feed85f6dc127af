"""How large devices are and how full: what policies compare.

A partition's size is what it consumes of the counters of its set, as a part of what the set declares; any other
device's is its capacity, as a part of the largest on the node. Both are between 0 and 1 for one counter or capacity,
and sums over all of them, so that devices of one node can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from draht.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draht.allocator.policy import View

__all__ = ["neighbours", "sizes"]


def sizes(view: View) -> Sequence[float]:
    """For each position the size of its device."""
    largest: dict[str, float] = {}
    amounts: list[dict[str, float]] = []
    for position in range(view.size):
        device = view.device(position)
        own = {name: _number(Quantity.from_wire(entry.value)) for name, entry in device.capacity.items()}
        amounts.append(own)
        for name, amount in own.items():
            largest[name] = max(largest.get(name, 0.0), amount)
    found = []
    for position in range(view.size):
        device = view.device(position)
        pool = view.row.usable[view.row.pool_at(position)]
        size = 0.0
        for consumption in device.consumes_counters:
            declared = pool.counter_sets.get(consumption.counter_set, {})
            for name, counter in consumption.counters.items():
                whole = _number(declared[name]) if name in declared else 0.0
                size += _number(Quantity.from_wire(counter.value)) / whole if whole else 0.0
        size += sum(amount / largest[name] for name, amount in amounts[position].items() if largest[name])
        found.append(size)
    return found


def neighbours(view: View) -> Sequence[int]:
    """For each position how many used devices, or devices with shares, draw on the same counters or are it itself."""
    taken = view.state.used | view.state.shared
    by_set: dict[tuple[int, str], int] = {}
    keys: list[list[tuple[int, str]]] = []
    for position in range(view.size):
        pool = view.row.pool_at(position)
        own = [(pool, consumption.counter_set) for consumption in view.device(position).consumes_counters]
        keys.append(own)
        if taken >> position & 1:
            for key in own:
                by_set[key] = by_set.get(key, 0) + 1
    return [
        sum(by_set.get(key, 0) for key in keys[position]) + (view.state.shared >> position & 1)
        for position in range(view.size)
    ]


def _number(amount: Quantity) -> float:
    # A score needs no exact arithmetic; amounts beyond a float are all the same.
    return (
        float(amount.mantissa) * 10.0 ** max(-300, min(amount.exponent, 300)) if abs(amount.mantissa) < 1e300 else 1e300
    )
