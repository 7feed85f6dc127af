"""Gathering: which pools reach a node, in which order, and whether they may be used at all.

Follows upstream's ``GatherPools`` (v0.37.2): of the slices that reach the node only the highest generation counts; a
pool whose slices are not all there is incomplete and one that contradicts itself is invalid, and both are kept as
markers because they make requests for all devices fail. Pools come in the order of driver and name, those with binding
conditions last; slices in the order of their names; devices as listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from draht.allocator.nodes import SelectorError, node_matches
from draht.allocator.pools import Pool, PoolId, PoolStatus, Reach, blocking_taints, pool_id
from draht.api.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from draht.allocator.features import Features
    from draht.api.core.node import Node
    from draht.api.resource import Device, ResourceSlice

__all__ = ["build_pool", "gather"]


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
