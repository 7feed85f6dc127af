"""Health of devices, streamed to the kubelet (KEP-4680): v1 and v1alpha1 behind one socket.

Owns what the streams say and when. Every message is the complete list; it is sent when something changes, and so often
that the kubelet doesn't take silence for an unknown state. The kubelet counts from the moment a message arrives, so
repeating old news would keep a device healthy for ever: when nobody has looked for a while, the stream says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

import grpc
import grpc.aio

from draht.driver.framework import Health, Offer
from draht.node.wire import health_v1_pb2, health_v1alpha1_pb2

__all__ = ["LONGEST_MESSAGE", "HealthService"]

LONGEST_MESSAGE: Final = 1024
"""Bytes of a device's message (KEP-4680)."""
VERSIONS: Final[Mapping[str, ModuleType]] = {"v1": health_v1_pb2, "v1alpha1": health_v1alpha1_pb2}
"""Version → its messages, newest first."""

_STATES: Final = {"Unknown": "UNKNOWN", "Healthy": "HEALTHY", "Unhealthy": "UNHEALTHY"}
_Devices = Mapping[tuple[str, str], tuple[str, str]]
"""(pool, device) → (state, message)."""


class HealthService:
    """The services v1.DRAResourceHealth and v1alpha1.DRAResourceHealth of one driver.

    Args:
        node_name: The node; the name of its own pool.
        timeout: Seconds without news after which a device's state is unknown; `set` is called more often than this.
        clock: Seconds since 1970.
    """

    def __init__(self, node_name: str, *, timeout: float = 30.0, clock: Callable[[], float] = time.time) -> None:
        self._node_name = node_name
        self._timeout = timeout
        self._clock = clock
        self._devices: _Devices | None = None
        self._looked = 0.0
        self._changed = asyncio.Event()
        self._closed = False

    def set(self, offer: Offer, health: Iterable[Health]) -> None:
        """Say how the devices are now. Called after every look, from the event loop's thread.

        Args:
            offer: What the driver offers; its devices are healthy unless said otherwise.
            health: What is known about some devices, even such as aren't offered any more.
        """
        devices = {(pool or self._node_name, device): ("Healthy", "") for pool, device in offer.devices()}
        for each in health:
            devices[(each.pool or self._node_name, each.device)] = (each.state, _cut(each.message))
        changed = devices != self._devices
        self._devices = devices
        self._looked = self._clock()
        if changed:
            self._wake()

    def close(self) -> None:
        """End all streams; the kubelet asks again after 5 s, at whoever is registered then."""
        self._closed = True
        self._wake()

    def reopen(self) -> None:
        """Serve streams again."""
        self._closed = False

    def services(self) -> tuple[str, ...]:
        """What a registration says is behind the socket."""
        return tuple(f"{version}.DRAResourceHealth" for version in VERSIONS)

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """What a server needs to serve both versions."""
        return tuple(self._handler(wire) for wire in VERSIONS.values())

    def _handler(self, wire: ModuleType) -> grpc.GenericRpcHandler:
        async def watch(_request: Any, _context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
            while not self._closed:
                changed = self._changed
                if self._devices is not None:
                    yield self._message(wire, self._devices)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._timeout / 3):
                        await changed.wait()

        method = grpc.unary_stream_rpc_method_handler(
            watch,
            request_deserializer=wire.NodeWatchResourcesRequest.FromString,
            response_serializer=wire.NodeWatchResourcesResponse.SerializeToString,
        )
        service = wire.DESCRIPTOR.services_by_name["DRAResourceHealth"].full_name
        return grpc.method_handlers_generic_handler(service, {"NodeWatchResources": method})

    def _message(self, wire: ModuleType, devices: _Devices) -> Any:
        silence = self._clock() - self._looked
        stale = f"draht hasn't looked at this device for {silence:.0f} s" if silence > self._timeout else ""
        return wire.NodeWatchResourcesResponse(
            devices=[
                wire.DeviceHealth(
                    device=wire.DeviceIdentifier(pool_name=pool, device_name=device),
                    health="UNKNOWN" if stale else _STATES[state],
                    last_updated_time=int(self._looked),
                    health_check_timeout_seconds=max(1, round(self._timeout)),
                    message=stale or message,
                )
                for (pool, device), (state, message) in sorted(devices.items())
            ]
        )

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _cut(message: str) -> str:
    encoded = message.encode(errors="replace")
    if len(encoded) <= LONGEST_MESSAGE:
        return encoded.decode()
    return encoded[: LONGEST_MESSAGE - 3].decode(errors="ignore") + "..."
