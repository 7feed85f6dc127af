"""A pool as one node sees it: its devices in search order, and what is needed of the devices it can't reach.

A `Pool` holds no usage and never changes. One object serves every node for which it is the same, and what its devices
have is kept by column (`draht.allocator.column`), so that pools are compared without looking at devices.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from draht.allocator.column import Column, intern
from draht.api.errors import DrahtError
from draht.cel.device import attribute_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from draht.api.quantity import Quantity
    from draht.api.resource import Device, DeviceTaint, ResourceSlice, ResourceSliceSpec

__all__ = ["Pool", "PoolId", "PoolStatus", "Reach", "blocking_taints", "pool_id"]

_BLOCKING = frozenset({"NoSchedule", "NoExecute"})


class PoolId(NamedTuple):
    """A pool is known by its driver and its name."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class PoolStatus(Enum):
    """Whether devices of a pool may be allocated."""

    READY = "ready"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


Reach = bool | str
"""Whether a device with its own node fields can be used on the node, or why that can't be told."""


@final
class Pool:
    """The devices of one pool that a node can reach, and what it needs to know of the others.

    Attributes:
        id: Driver and name.
        status: Devices of other than ready pools are never allocated; such a pool has no devices here.
        reason: Why it is invalid.
        devices: Devices in search order.
        slices: For each device its slice.
        taints: For each device the taints that keep claims away, its own and those of rules, as (key, value, effect).
        reach: For each device whether its own node fields allow the node; None where no slice selects per device.
        others: Devices of the pool on slices that don't reach the node; they consume counters too.
        counter_sets: Declared counters by set and name.
        binding: Whether a device has binding conditions.
        frame: Everything but attributes and capacity that decides about the devices, without any names of the pool and
            its devices: pools with the same frame differ in attributes and capacity only.
    """

    __slots__ = (
        "_columns",
        "_offsets",
        "binding",
        "counter_sets",
        "devices",
        "frame",
        "id",
        "others",
        "reach",
        "reason",
        "slices",
        "source",
        "status",
        "taints",
    )

    def __init__(
        self,
        identity: PoolId,
        status: PoolStatus,
        *,
        reason: str | None = None,
        devices: tuple[Device, ...] = (),
        slices: tuple[ResourceSlice, ...] = (),
        taints: tuple[tuple[tuple[str, str, str], ...], ...] = (),
        reach: tuple[Reach, ...] | None = None,
        others: tuple[Device, ...] = (),
        counter_sets: Mapping[str, Mapping[str, Quantity]] | None = None,
        source: tuple[ResourceSlice, ...] = (),
    ) -> None:
        self.id = identity
        self.status = status
        self.reason = reason
        self.devices = devices
        self.slices = slices
        self.taints = taints
        self.reach = reach
        self.others = others
        self.counter_sets: Mapping[str, Mapping[str, Quantity]] = counter_sets or {}
        self.binding = any(device.binding_conditions for device in devices)
        self.source = source
        self._columns: dict[str, Column] = {}
        self._offsets: dict[str, int] | None = None
        self.frame = self._frame()

    def offset(self, device: str) -> int | None:
        """Index of a device by its name, None where the node doesn't reach it."""
        if self._offsets is None:
            self._offsets = {d.name: index for index, d in enumerate(self.devices)}
        return self._offsets.get(device)

    def attribute(self, name: str) -> Column:
        """For each device the attribute of this fully qualified name.

        A value is a `DeviceAttribute`, None where there is none, or a pair of two where both the qualified and, in the
        driver's own domain, the bare name are set.
        """
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = intern(
                tuple(_lookup(d.attributes, name, self.id.driver) for d in self.devices)
            )
        return column

    def capacity(self, name: str) -> Column:
        """For each device the capacity of this fully qualified name; values as in `attribute`, of `DeviceCapacity`."""
        key = "\0" + name
        column = self._columns.get(key)
        if column is None:
            driver = self.id.driver
            column = self._columns[key] = intern(tuple(_lookup(d.capacity, name, driver) for d in self.devices))
        return column

    def capacities(self) -> Column:
        """For each device all its capacities, as a tuple of (name, `DeviceCapacity`) in the order of names."""
        column = self._columns.get("\0")
        if column is None:
            column = self._columns["\0"] = intern(tuple(tuple(sorted(d.capacity.items())) for d in self.devices))
        return column

    def contents(self) -> Column:
        """For each device all attributes and capacities: what an expression that looks at everything depends on."""
        column = self._columns.get("\1")
        if column is None:
            column = self._columns["\1"] = intern(
                tuple((tuple(sorted(d.attributes.items())), tuple(sorted(d.capacity.items()))) for d in self.devices)
            )
        return column

    def _frame(self) -> Column:
        parts: list[Any] = []
        reach = self.reach
        for index, device in enumerate(self.devices):
            defect = _defect(device)
            operations = self.slices[index].spec.skip_node_operations
            # Most devices have nothing of all this, and there are many devices.
            if not (
                device.consumes_counters
                or device.allow_multiple_allocations
                or device.binding_conditions
                or operations
                or self.taints[index]
                or reach
                or defect
            ):
                parts.append(_PLAIN)
                continue
            consumes = tuple(
                (c.counter_set, tuple((n, str(v.value)) for n, v in c.counters.items()), c.compatibility_groups)
                for c in device.consumes_counters
            )
            part = (
                bool(device.allow_multiple_allocations),
                bool(device.binding_conditions),
                bool(operations),
                self.taints[index],
                True if reach is None else reach[index],
                consumes,
                defect,
            )
            parts.append(part)
        sets = tuple(
            (name, tuple((n, str(v)) for n, v in counters.items())) for name, counters in self.counter_sets.items()
        )
        grouped = any(c.compatibility_groups for device in self.others for c in device.consumes_counters)
        return intern(("pool", self.id.driver, self.status, sets, tuple(parts), self._crowded(), grouped))

    @property
    def crowded(self) -> bool:
        """Whether a node selector has several terms, which makes the result of a solution fail."""
        return bool(self.frame.values[5])

    def _crowded(self) -> tuple[tuple[bool, bool], ...]:
        """For each device whether its selector has several terms and whether it pins; empty where none has several."""
        sources: dict[int, Any] = {id(piece): piece.spec for piece in self.slices}
        if self.reach is not None:
            sources |= {id(device): device for device in self.devices}
        if not any(_terms(source) > 1 for source in sources.values()):
            return ()
        parts = []
        for device, piece in zip(self.devices, self.slices, strict=True):
            source = device if piece.spec.per_device_node_selection else piece.spec
            parts.append((_terms(source) > 1, source.node_name is not None or bool(device.binds_to_node)))
        return tuple(parts)

    def __repr__(self) -> str:
        return f"Pool({self.id}, {self.status.value}, {len(self.devices)} devices)"


# Not shared, no conditions, no skipped operations, no taints, on every node of the slice, consuming nothing, readable.
_PLAIN: Final = (False, False, False, (), True, (), None)


def _terms(source: Device | ResourceSliceSpec) -> int:
    return 0 if source.node_selector is None else len(source.node_selector.node_selector_terms)


def _lookup(values: Mapping[str, Any], name: str, driver: str) -> Any:
    exact = values.get(name)
    domain, slash, bare = name.partition("/")
    if not slash or domain != driver:
        return exact
    own = values.get(bare)
    if own is None:
        return exact
    return own if exact is None else (exact, own)


def _defect(device: Device) -> str | None:
    """The first attribute that no expression can be evaluated with, whatever the expression asks for.

    Devices are judged by what an expression mentions, and by this.
    """
    for name, attribute in device.attributes.items():
        if (attribute.string is not None or attribute.int_ is not None or attribute.bool_ is not None) and (
            not attribute.versions
        ):
            continue
        try:
            attribute_value(attribute)
        except DrahtError:
            return name
    return None


def pool_id(piece: ResourceSlice) -> PoolId:
    """The pool a slice is part of."""
    return PoolId(piece.spec.driver, piece.spec.pool.name)


def blocking_taints(taints: Iterable[DeviceTaint]) -> tuple[tuple[str, str, str], ...]:
    """The taints that keep claims away: unknown effects and ``None`` are informational."""
    return tuple((t.key, t.value, t.effect) for t in taints if t.effect in _BLOCKING)
