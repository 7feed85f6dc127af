"""Pools as one node sees them: which slices count, in which order, and whether the pool may be used at all.

Follows upstream's ``GatherPools`` (v0.37.2): of the slices that reach the node only the highest generation counts; a
pool whose slices are not all there is incomplete and one that contradicts itself is invalid, and both are kept as
markers because they make requests for all devices fail. Pools come in the order of driver and name, those with binding
conditions last; slices in the order of their names; devices as listed.

A `Pool` holds no usage. One object serves every node for which it is the same.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from draht.allocator.column import Column, intern
from draht.allocator.nodes import SelectorError, node_matches
from draht.api.errors import DrahtError
from draht.api.quantity import Quantity, QuantityError
from draht.cel.device import attribute_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from draht.allocator.features import Features
    from draht.api.core.node import Node
    from draht.api.resource import Device, DeviceTaint, ResourceSlice

__all__ = ["Pool", "PoolId", "PoolStatus", "Reach", "blocking_taints", "build_pool", "gather", "pool_id"]

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
        return intern(("pool", self.id.driver, self.status, sets, tuple(parts), grouped))

    def __repr__(self) -> str:
        return f"Pool({self.id}, {self.status.value}, {len(self.devices)} devices)"


# Not shared, no conditions, no skipped operations, no taints, on every node of the slice, consuming nothing, readable.
_PLAIN: Final = (False, False, False, (), True, (), None)


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


def _uses_groups(piece: ResourceSlice) -> bool:
    for device in piece.spec.devices:
        for consumption in device.consumes_counters:
            if consumption.compatibility_groups:
                return True
    return False


def gather(
    node: Node,
    slices: Iterable[ResourceSlice],
    of_pool: Mapping[PoolId, Sequence[ResourceSlice]],
    features: Features,
    build: Any = None,
) -> tuple[Pool, ...]:
    """All pools that reach a node, in search order.

    Args:
        node: The node.
        slices: Slices of the node by name, then all that name no node.
        of_pool: All slices of the cluster by pool.
        features: What is switched on.
        build: Makes a pool from what was gathered, `build_pool` or something that remembers its results.

    Raises:
        SelectorError: A node selector is malformed; upstream gives the whole node up for it.
    """
    builder = build or build_pool
    pools: dict[PoolId, list[ResourceSlice]] = {}
    for piece in slices:
        spec = piece.spec
        if not features.partitionable_devices and (spec.per_device_node_selection is not None or spec.shared_counters):
            continue
        if not features.compatibility_groups and _uses_groups(piece):
            continue
        if not _reaches(node, piece):
            continue
        key = pool_id(piece)
        found = pools.get(key)
        if found is None or spec.pool.generation > found[0].spec.pool.generation:
            pools[key] = [piece]
        elif spec.pool.generation == found[0].spec.pool.generation:
            found.append(piece)
    first: list[Pool] = []
    last: list[Pool] = []
    for key, found in pools.items():
        count = found[0].spec.pool.resource_slice_count
        rest: list[ResourceSlice] = []
        if len(found) != count:
            generation = found[0].spec.pool.generation
            everything = of_pool.get(key, ())
            if any(piece.spec.pool.generation > generation for piece in everything):
                # The driver is replacing the pool; the new slices just don't reach this node.
                continue
            current = [
                piece
                for piece in everything
                if piece.spec.pool.generation == generation
                and (features.compatibility_groups or not _uses_groups(piece))
            ]
            if len(current) != count:
                first.append(Pool(key, PoolStatus.INCOMPLETE, source=tuple(found)))
                continue
            if len(found) < len(current):
                names = {piece.metadata.name for piece in found}
                rest = [piece for piece in current if piece.metadata.name not in names]
        pool = builder(key, node, found, rest, features)
        (last if pool.binding else first).append(pool)
    first.sort(key=lambda pool: pool.id)
    last.sort(key=lambda pool: pool.id)
    return (*first, *last)


def _reaches(node: Node, piece: ResourceSlice) -> bool:
    spec = piece.spec
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
    if spec.per_device_node_selection:
        return any(node_matches(node, d.node_name, d.all_nodes, d.node_selector) for d in spec.devices)
    # None of the known fields: an extension from the future, which must not hide other pools.
    return False


def build_pool(
    key: PoolId,
    node: Node,
    found: Sequence[ResourceSlice],
    rest: Sequence[ResourceSlice],
    features: Features,
    extra_taints: Any = None,
) -> Pool:
    """A complete pool from its slices.

    Args:
        key: Driver and name.
        node: Decides about devices that select nodes themselves.
        found: Slices that reach the node.
        rest: Slices of the same generation that don't.
        features: What is switched on.
        extra_taints: Called with a slice and a device; gives the taints that rules add, or None.
    """
    ordered = sorted(found, key=lambda piece: piece.metadata.name)
    partitioned = features.partitionable_devices
    offering = [piece for piece in ordered if not (partitioned and piece.spec.shared_counters)]
    elsewhere = [piece for piece in rest if not (partitioned and piece.spec.shared_counters)]
    declaring = [piece for piece in (*ordered, *rest) if piece.spec.shared_counters] if partitioned else []
    source = (*found, *rest)
    devices: list[Device] = []
    slices: list[ResourceSlice] = []
    for piece in offering:
        devices += piece.spec.devices
        slices += [piece] * len(piece.spec.devices)
    others = [device for piece in elsewhere for device in piece.spec.devices]
    sets: dict[str, dict[str, Quantity]] = {}
    reason = _repeated_name(devices)
    if reason is None and partitioned:
        reason = _declare(declaring, sets) or _unknown_counter(devices, sets) or _unknown_counter(others, sets)
    if reason is not None:
        return Pool(key, PoolStatus.INVALID, reason=reason, source=source)
    reach: tuple[Reach, ...] | None = None
    if any(piece.spec.per_device_node_selection for piece in offering):
        reach = tuple(
            _reach(node, device) if piece.spec.per_device_node_selection else True
            for piece, device in zip(slices, devices, strict=True)
        )
    taints: list[tuple[tuple[str, str, str], ...]] = [
        blocking_taints(device.taints) if device.taints else () for device in devices
    ]
    if extra_taints is not None:
        for index, device in enumerate(devices):
            taints[index] += blocking_taints(extra_taints(slices[index], device))
    return Pool(
        key,
        PoolStatus.READY,
        devices=tuple(devices),
        slices=tuple(slices),
        taints=tuple(taints),
        reach=reach,
        others=tuple(others),
        counter_sets=sets,
        source=source,
    )


def _reach(node: Node, device: Device) -> Reach:
    try:
        return node_matches(node, device.node_name, device.all_nodes, device.node_selector)
    except SelectorError as error:
        return str(error)


def _repeated_name(devices: Sequence[Device]) -> str | None:
    names = {device.name for device in devices}
    if len(names) == len(devices):
        return None
    names.clear()
    for device in devices:
        if device.name in names:
            return f"device {device.name} is there twice"
        names.add(device.name)
    return None


def _declare(declaring: Iterable[ResourceSlice], sets: dict[str, dict[str, Quantity]]) -> str | None:
    for piece in declaring:
        for declared in piece.spec.shared_counters:
            if declared.name in sets:
                return f"counter set {declared.name} is there twice"
            try:
                sets[declared.name] = {name: Quantity.from_wire(c.value) for name, c in declared.counters.items()}
            except QuantityError as error:
                return f"counter set {declared.name} has an amount that is none: {error}"
    return None


def _unknown_counter(devices: Iterable[Device], sets: Mapping[str, Mapping[str, Quantity]]) -> str | None:
    for device in devices:
        for consumption in device.consumes_counters:
            counters = sets.get(consumption.counter_set)
            if counters is None:
                return f"device {device.name} consumes of counter set {consumption.counter_set}, which is not declared"
            for name in consumption.counters:
                if name not in counters:
                    return (
                        f"device {device.name} consumes counter {name}, "
                        f"which counter set {consumption.counter_set} doesn't have"
                    )
            try:
                for counter in consumption.counters.values():
                    Quantity.from_wire(counter.value)
            except QuantityError as error:
                return f"device {device.name} consumes an amount that is none: {error}"
    return None
