"""ResourceSlice: the part of a pool of devices that a driver publishes in one object."""

from __future__ import annotations

from typing import Literal

from draht.api.core.scheduling import NodeSelector
from draht.api.meta import Object, ObjectList
from draht.api.resource.device import CounterSet, Device
from draht.api.wire import Int64, Wire, always

__all__ = ["ResourcePool", "ResourceSlice", "ResourceSliceList", "ResourceSliceSpec"]


class ResourcePool(Wire, frozen=True, kw_only=True):
    """Which pool a slice is part of, and how many slices make the pool whole."""

    name: str
    generation: Int64 = 0
    resource_slice_count: Int64


class ResourceSliceSpec(Wire, frozen=True, kw_only=True):
    """A part of a driver's pool; exactly one of the four node fields is set."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Object, frozen=True, kw_only=True):
    """Devices that a driver offers."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["ResourceSlice"] = always("ResourceSlice")
    spec: ResourceSliceSpec


class ResourceSliceList(ObjectList, frozen=True, kw_only=True):
    """Several slices."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["ResourceSliceList"] = always("ResourceSliceList")
    items: tuple[ResourceSlice, ...] = ()
