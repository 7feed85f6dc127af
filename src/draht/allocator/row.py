"""A row: everything one node can reach, in the order in which upstream searches it. Position = bit number.

The search and the indexes work on bit sets, so what matters about a row is which position has which value. A row is
made of pools, and pools may be shared by rows; columns are unique objects (`draht.allocator.column`), so that rows are
compared by what a plan mentions without looking at devices.

A row holds no usage and never changes.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, final

from draht.allocator.column import Column, intern
from draht.allocator.pools import Pool, PoolStatus
from draht.api.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from draht.allocator.errors import FatalError
    from draht.api.core.node import Node
    from draht.api.resource import Device, ResourceSlice

__all__ = ["DeviceId", "Row", "amounts_of"]


class DeviceId(tuple[str, str, str]):
    """Driver, pool and device name; printed as upstream prints it."""

    __slots__ = ()

    def __str__(self) -> str:
        return "/".join(self)


@final
class Row:
    """What one node can reach.

    Attributes:
        node: The node.
        pools: All pools in search order, those that may not be used among them.
        usable: The ready pools; only they have positions.
        starts: For each usable pool the position of its first device.
        size: Number of positions.
        error: Why upstream would give the node up before the search, or None.
        last: What `draht.allocator.result` remembers: the last solution and what it made of it.
        problems: What `draht.allocator.outcome` remembers, by plan.
        frame: Unique object for everything but attributes, capacity and names; see `Pool.frame`.
    """

    __slots__ = (
        "__weakref__",
        "_amounts",
        "_columns",
        "_patterns",
        "error",
        "frame",
        "last",
        "node",
        "pools",
        "problems",
        "size",
        "starts",
        "usable",
    )

    def __init__(self, node: Node, pools: tuple[Pool, ...], error: FatalError | None = None) -> None:
        self.node = node
        self.pools = pools
        self.error = error
        self.usable = tuple(pool for pool in pools if pool.status is PoolStatus.READY)
        starts: list[int] = []
        size = 0
        for pool in self.usable:
            starts.append(size)
            size += len(pool.devices)
        self.starts = tuple(starts)
        self.size = size
        operations = "DRAOptionalNodeOperations" in node.status.declared_features
        self.frame = intern(("row", operations, error is None, tuple(pool.frame for pool in pools)))
        self.problems: dict[Any, Any] = {}
        self.last: Any = None
        self._amounts: Column | bool | None = False
        self._columns: dict[str, Column] = {}
        self._patterns: dict[tuple[str, bool], Column] = {}

    @property
    def skips_operations(self) -> bool:
        """Whether the node declares that it can skip node operations (DRAOptionalNodeOperations)."""
        return bool(self.frame.values[1])

    def pool_at(self, position: int) -> int:
        """Index in `usable` of the pool of a position."""
        return bisect_right(self.starts, position) - 1 if len(self.starts) > 1 else 0

    def device(self, position: int) -> Device:
        """The device at a position."""
        index = self.pool_at(position)
        return self.usable[index].devices[position - self.starts[index]]

    def slice(self, position: int) -> ResourceSlice:
        """The slice of the device at a position."""
        index = self.pool_at(position)
        return self.usable[index].slices[position - self.starts[index]]

    def id(self, position: int) -> DeviceId:
        """Driver, pool and name of the device at a position."""
        index = self.pool_at(position)
        pool = self.usable[index]
        return DeviceId((pool.id.driver, pool.id.name, pool.devices[position - self.starts[index]].name))

    def attribute(self, name: str) -> Column:
        """The column of an attribute over all positions; see `Pool.attribute`."""
        if len(self.usable) == 1:
            return self.usable[0].attribute(name)
        return self._joined("a" + name, tuple(pool.attribute(name) for pool in self.usable))

    def capacity(self, name: str) -> Column:
        """The column of a capacity over all positions; see `Pool.capacity`."""
        if len(self.usable) == 1:
            return self.usable[0].capacity(name)
        return self._joined("c" + name, tuple(pool.capacity(name) for pool in self.usable))

    def capacities(self) -> Column:
        """All capacities of each position; see `Pool.capacities`."""
        if len(self.usable) == 1:
            return self.usable[0].capacities()
        return self._joined("C", tuple(pool.capacities() for pool in self.usable))

    def amounts(self) -> Column | None:
        """What of `capacities` decides about claims that ask for no amounts; see `amounts_of`."""
        amounts = self._amounts
        if isinstance(amounts, bool):
            amounts = self._amounts = amounts_of(self.frame, self.capacities())
        return amounts

    def contents(self) -> Column:
        """Everything of each position that an expression can see."""
        if len(self.usable) == 1:
            return self.usable[0].contents()
        return self._joined("E", tuple(pool.contents() for pool in self.usable))

    def pattern(self, name: str, lists: bool) -> Column:
        """Which positions have equal values of an attribute, and which have none, without the values.

        Constraints only ask whether values are equal, so nodes whose PCI addresses differ in the same way have the
        same pattern. See `draht.allocator.constraint.pattern`.
        """
        key = (name, lists)
        column = self._patterns.get(key)
        if column is None:
            from draht.allocator.constraint import pattern

            column = self._patterns[key] = intern(pattern(self.attribute(name).values, lists))
        return column

    def _joined(self, key: str, parts: tuple[Column, ...]) -> Column:
        column = self._columns.get(key)
        if column is None:
            values: tuple[Any, ...] = ()
            for part in parts:
                values += part.values
            column = self._columns[key] = intern(values)
        return column

    def __repr__(self) -> str:
        return f"Row({self.node.metadata.name}, {self.size} devices)"


def amounts_of(frame: Column, capacities: Column) -> Column | None:
    """What of capacities decides about claims that ask for no amounts.

    Such a claim takes all of a device. None where that is always possible and nobody else can have a part of it: no
    device is shared, no capacity has a request policy, and all can be read and aren't negative. Else all capacities.

    Args:
        frame: See `Row.frame`.
        capacities: See `Row.capacities`.
    """
    for pool in frame.values[3]:
        if any(part[0] for part in pool.values[4]):
            return capacities
    entries = {entry for values in capacities.values for _, entry in values}
    try:
        if all(each.request_policy is None and Quantity.from_wire(each.value).sign() >= 0 for each in entries):
            return None
    except QuantityError:
        pass
    return capacities
