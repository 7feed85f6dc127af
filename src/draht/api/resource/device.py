"""A device as a driver publishes it: attributes, capacity, counters, taints, node resources."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from draht.api.core.scheduling import NodeSelector
from draht.api.wire import Int64, QuantityValue, Time, Wire, always

__all__ = [
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceCounterConsumption",
    "DeviceTaint",
    "NodeAllocatableMapping",
    "NodeAllocatableOverhead",
    "NodeAllocatableResource",
]


class DeviceAttribute(Wire, frozen=True, kw_only=True):
    """A value of one type; exactly one member is set."""

    int_: Int64 | None = None
    bool_: bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[Int64, ...] = ()
    bools: tuple[bool, ...] = ()
    strings: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


class CapacityRequestPolicyRange(Wire, frozen=True, kw_only=True):
    """Amounts from ``min``, which must be there, to ``max`` in steps."""

    min: QuantityValue | None = None
    max: QuantityValue | None = None
    step: QuantityValue | None = None


class CapacityRequestPolicy(Wire, frozen=True, kw_only=True):
    """Which amounts of a capacity may be requested; anything where neither values nor range are given."""

    default: QuantityValue | None = None
    valid_values: tuple[QuantityValue, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, frozen=True, kw_only=True):
    """How much of something a device has; a server takes nothing for zero."""

    value: QuantityValue = always("0")
    request_policy: CapacityRequestPolicy | None = None


class Counter(Wire, frozen=True, kw_only=True):
    """An amount that partitions of a device share; a server takes nothing for zero."""

    value: QuantityValue = always("0")


class DeviceCounterConsumption(Wire, frozen=True, kw_only=True):
    """What a device takes from one counter set."""

    counter_set: str
    counters: Mapping[str, Counter]
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Wire, frozen=True, kw_only=True):
    """A mark on a device that keeps claims away that don't tolerate it."""

    key: str
    value: str = ""
    effect: str
    time_added: Time | None = None


class NodeAllocatableMapping(Wire, frozen=True, kw_only=True):
    """How device capacity or device count becomes an amount of a node resource."""

    capacity_key: str | None = None
    capacity_multiplier: QuantityValue | None = None
    device_multiplier: QuantityValue | None = None


class NodeAllocatableOverhead(Wire, frozen=True, kw_only=True):
    """Node resource used by each pod and by each container on top."""

    per_pod: QuantityValue | None = None
    per_container: QuantityValue | None = None


class NodeAllocatableResource(Wire, frozen=True, kw_only=True):
    """What using the device costs of one node resource."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Wire, frozen=True, kw_only=True):
    """One device of a pool."""

    name: str
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=dict)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: Mapping[str, NodeAllocatableResource] = field(default_factory=dict)


class CounterSet(Wire, frozen=True, kw_only=True):
    """A named group of counters."""

    name: str
    counters: Mapping[str, Counter]
