"""The device plugin's service of one extended resource: which devices there are, and what a container gets of them.

Owns the messages of ``v1beta1.DevicePlugin``. How the kubelet learns of it is `draht.node.kubelet.device_plugin`. A
device's id is checked on its way in and out: the kubelet keeps ids across its restarts and may ask for one that is
long gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import grpc
import grpc.aio

from draht.api.errors import DrahtError
from draht.node.errors import DevicePluginError
from draht.node.kubelet.claim_work import in_thread
from draht.node.kubelet.observation import Observer
from draht.node.wire import device_plugin_pb2 as wire

__all__ = ["LONGEST_ID", "Allocate", "ContainerDevices", "DeviceService", "PluginDevice", "Prefer"]

LONGEST_ID: Final = 63
"""Characters of a device's id."""

_Context = grpc.aio.ServicerContext[Any, Any]
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class PluginDevice:
    """One device of an extended resource.

    Attributes:
        id: Unique within the resource, at most 63 characters, the same after a restart.
        healthy: Whether new containers may get it.
        numa_nodes: NUMA nodes it is near to, for the kubelet's topology manager.
    """

    id: str
    healthy: bool = True
    numa_nodes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerDevices:
    """What one container gets.

    Attributes:
        cdi_device_ids: Fully qualified names for the container engine.
        environment: Variables.
        annotations: For the container engine.
    """

    cdi_device_ids: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


Allocate = Callable[[Sequence[str]], ContainerDevices]
"""Ids of one container, in the kubelet's order → what it gets. Blocking; a `DrahtError` says why not."""
Prefer = Callable[[Sequence[str], Sequence[str], int], Sequence[str]]
"""(available ids, those that must be among them, how many) → the best ones. Blocking; only a wish."""


class DeviceService:
    """The service ``v1beta1.DevicePlugin``.

    Args:
        resource_name: The extended resource, such as ``nvidia.com/gpu``.
        allocate: What a container gets.
        prefer: Which devices go well together.
        observer: Who counts.
    """

    def __init__(self, resource_name: str, allocate: Allocate, prefer: Prefer | None, observer: Observer) -> None:
        self._resource_name = resource_name
        self._allocate = allocate
        self._prefer = prefer
        self._observer = observer
        self._devices: dict[str, PluginDevice] = {}
        self._changed = asyncio.Event()
        self._closed = False
        self.streams = 0

    @property
    def options(self) -> wire.DevicePluginOptions:
        """What the kubelet may ask for."""
        return wire.DevicePluginOptions(get_preferred_allocation_available=self._prefer is not None)

    def set(self, devices: Iterable[PluginDevice]) -> tuple[str, ...]:
        """Replace the list; open streams get it at once.

        Returns:
            Why some devices are left out: an id that the kubelet wouldn't take, or that two devices have.
        """
        kept: dict[str, PluginDevice] = {}
        refused = []
        for device in devices:
            if not 0 < len(device.id) <= LONGEST_ID:
                refused.append(f"the id {device.id!r} has {len(device.id)} characters, of 1 to {LONGEST_ID}")
            elif device.id in kept:
                refused.append(f"two devices have the id {device.id}; the first one counts")
            else:
                kept[device.id] = device
        if kept != self._devices:
            self._devices = kept
            self._wake()
        return tuple(refused)

    def close(self) -> None:
        """End all streams; `reopen` lets new ones begin."""
        self._closed = True
        self._wake()

    def reopen(self) -> None:
        """Serve streams again."""
        self._closed = False

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """What a server needs to serve it."""
        service = wire.DESCRIPTOR.services_by_name["DevicePlugin"].full_name
        unary = grpc.unary_unary_rpc_method_handler
        return (
            grpc.method_handlers_generic_handler(
                service,
                {
                    "GetDevicePluginOptions": unary(
                        self._get_options, wire.Empty.FromString, wire.DevicePluginOptions.SerializeToString
                    ),
                    "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                        self._list_and_watch, wire.Empty.FromString, wire.ListAndWatchResponse.SerializeToString
                    ),
                    "GetPreferredAllocation": unary(
                        self._get_preferred,
                        wire.PreferredAllocationRequest.FromString,
                        wire.PreferredAllocationResponse.SerializeToString,
                    ),
                    "Allocate": unary(
                        self._get_allocation, wire.AllocateRequest.FromString, wire.AllocateResponse.SerializeToString
                    ),
                    "PreStartContainer": unary(
                        self._pre_start,
                        wire.PreStartContainerRequest.FromString,
                        wire.PreStartContainerResponse.SerializeToString,
                    ),
                },
            ),
        )

    async def _get_options(self, _request: wire.Empty, _context: _Context) -> wire.DevicePluginOptions:
        return self.options

    async def _pre_start(
        self, _request: wire.PreStartContainerRequest, _context: _Context
    ) -> wire.PreStartContainerResponse:
        return wire.PreStartContainerResponse()

    async def _list_and_watch(
        self, _request: wire.Empty, _context: _Context
    ) -> AsyncIterator[wire.ListAndWatchResponse]:
        self.streams += 1
        try:
            while not self._closed:
                changed = self._changed
                yield wire.ListAndWatchResponse(devices=[_device(each) for each in self._devices.values()])
                await changed.wait()
        finally:
            self.streams -= 1

    async def _get_allocation(self, request: wire.AllocateRequest, context: _Context) -> wire.AllocateResponse:
        began = time.monotonic()
        failed = "CancelledError"
        try:
            with self._observer.under_way(self._resource_name, "allocate"):
                containers = [tuple(container.devices_ids) for container in request.container_requests]
                self._check(containers)
                given = [await in_thread(partial(self._allocate, ids)) for ids in containers]
            failed = ""
        except DrahtError as error:
            failed = type(error).__name__
            _log.warning("allocate: %s", error, extra=self._extra())
            text = f"{error}; {error.hint}" if error.hint else str(error)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)
        except Exception as error:  # noqa: BLE001 - a bug in a driver is an answer, never a broken stream
            failed = type(error).__name__
            _log.exception("allocate failed unexpectedly", extra=self._extra())
            await context.abort(grpc.StatusCode.INTERNAL, f"{failed}: {error} (unexpected; see the log of draht node)")
        finally:
            self._observer.observe(self._resource_name, "allocate", time.monotonic() - began, failed)
        return wire.AllocateResponse(
            container_responses=[
                wire.ContainerAllocateResponse(
                    envs=each.environment,
                    annotations=each.annotations,
                    cdi_devices=[wire.CDIDevice(name=name) for name in each.cdi_device_ids],
                )
                for each in given
            ]
        )

    def _check(self, containers: Sequence[Sequence[str]]) -> None:
        wanted = Counter(each for ids in containers for each in ids)
        if unknown := [each for each in wanted if each not in self._devices]:
            raise DevicePluginError(
                f"no such device: {', '.join(unknown)}",
                where=self._resource_name,
                hint=f"the devices are {', '.join(self._devices) or 'none'}; delete the pod if its device is gone",
            )
        if twice := [each for each, times in wanted.items() if times > 1]:
            raise DevicePluginError(f"asked for more than once: {', '.join(twice)}", where=self._resource_name)

    async def _get_preferred(
        self, request: wire.PreferredAllocationRequest, _context: _Context
    ) -> wire.PreferredAllocationResponse:
        return wire.PreferredAllocationResponse(
            container_responses=[
                wire.ContainerPreferredAllocationResponse(
                    deviceIDs=await self._preferred(
                        tuple(each.available_deviceIDs), tuple(each.must_include_deviceIDs), each.allocation_size
                    )
                )
                for each in request.container_requests
            ]
        )

    async def _preferred(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        """The best set, or what the kubelet would take anyway: a wish never keeps a pod from starting."""
        anyway = [*must, *(each for each in available if each not in set(must))][: max(size, 0)]
        prefer = self._prefer
        if prefer is None:
            return anyway
        try:
            best = tuple(await in_thread(lambda: prefer(available, must, size)))
        except Exception:  # noqa: BLE001 - see the docstring
            _log.exception("the best devices can't be chosen; the kubelet's order counts", extra=self._extra())
            return anyway
        if len(set(best)) != size or len(best) != size or not set(must) <= set(best) <= {*available, *must}:
            _log.error("the devices chosen as best don't fit: %s", ", ".join(best), extra=self._extra())
            return anyway
        return best

    def _extra(self) -> dict[str, str]:
        return {"driver": self._resource_name, "operation": "allocate"}

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _device(device: PluginDevice) -> wire.Device:
    topology = wire.TopologyInfo(nodes=[wire.NUMANode(ID=number) for number in device.numa_nodes])
    return wire.Device(
        ID=device.id,
        health="Healthy" if device.healthy else "Unhealthy",
        topology=topology if device.numa_nodes else None,
    )
