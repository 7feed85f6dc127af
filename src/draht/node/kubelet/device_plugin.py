"""A device plugin's life: serve, register at the kubelet, and do both again whenever the kubelet has started anew.

Owns the socket and the registration of one extended resource. A kubelet that starts empties the directory and forgets
every plugin; it doesn't call them, so the plugin looks whether its own socket and the kubelet's are still the ones it
knows.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

import grpc
import grpc.aio

from draht.node.errors import SocketError
from draht.node.kubelet.device_service import Allocate, DeviceService, PluginDevice, Prefer
from draht.node.kubelet.observation import Observer, Unobserved
from draht.node.kubelet.registration import KUBELET
from draht.node.kubelet.socket_server import Identity, SocketServer, channel, fitting, identity
from draht.node.wire import device_plugin_pb2 as wire

__all__ = ["DevicePlugin", "socket_names"]

API_VERSION: Final = "v1beta1"
REGISTER: Final = "/v1beta1.Registration/Register"
PATIENCE: Final = 10.0
"""Seconds for one registration; the kubelet calls the plugin back meanwhile."""
LONGEST_DELAY: Final = 30.0
"""Seconds between two tries to register, at most."""
UNWATCHED: Final = 10
"""Looks without an open stream after which the kubelet is told again."""

_log = logging.getLogger(__name__)


class DevicePlugin:
    """One extended resource at the kubelet.

    Args:
        resource_name: Such as ``nvidia.com/gpu``.
        allocate: What a container gets.
        prefer: Which devices go well together.
        kubelet: The kubelet's root directory.
        observer: Who counts; the resource's name stands in place of a driver's.
        interval: Seconds between two looks at the sockets.
        grace: Seconds that calls under way have at the end.
    """

    def __init__(
        self,
        resource_name: str,
        allocate: Allocate,
        *,
        prefer: Prefer | None = None,
        kubelet: Path = KUBELET,
        observer: Observer | None = None,
        interval: float = 1.0,
        grace: float = 5.0,
    ) -> None:
        self.resource_name = resource_name
        self._interval = interval
        self._grace = grace
        directory = kubelet / "device-plugins"
        self._kubelet = directory / "kubelet.sock"
        self._service = DeviceService(resource_name, allocate, prefer, observer or Unobserved())
        self._server = SocketServer(fitting(directory, socket_names(resource_name)), self._service.handlers())
        self._known: Identity | None = None
        self._unwatched = 0
        self._running: asyncio.Task[None] | None = None
        self._problem: str | None = "the kubelet hasn't been asked yet"
        self._refused: tuple[str, ...] = ()

    @property
    def registered(self) -> bool:
        """Whether the kubelet that is there now has taken the plugin."""
        return self._known is not None

    @property
    def problem(self) -> str | None:
        """Why the plugin isn't registered, or which devices are left out; None if all is well."""
        return self._problem or ("; ".join(self._refused) or None)

    def set(self, devices: Iterable[PluginDevice]) -> None:
        """Replace the list; the kubelet gets it at once. Called from the event loop's thread.

        Devices that the kubelet wouldn't take are left out and named in `problem`.
        """
        refused = self._service.set(devices)
        if refused != self._refused:
            self._refused = refused
            for reason in refused:
                _log.error("a device is left out: %s", reason, extra=self._extra())

    async def start(self) -> None:
        """Serve, and register as soon as a kubelet is there.

        Raises:
            SocketError: The socket can't be made.
        """
        self._service.reopen()
        await self._server.start()
        self._running = asyncio.create_task(self._run(), name=f"device plugin {self.resource_name}")

    async def stop(self) -> None:
        """End the streams, wait for calls that are under way, and remove the socket."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        self._known, self._problem = None, "the plugin has been stopped"
        self._service.close()
        await self._server.stop(self._grace)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _run(self) -> None:
        delay = self._interval
        while True:
            try:
                await self._look()
            except (SocketError, OSError, grpc.RpcError) as error:
                self._known = None
                text = str(error.details()) if isinstance(error, grpc.aio.AioRpcError) else str(error)
                problem = f"the plugin can't be registered: {text}"
                if problem != self._problem:
                    _log.warning("%s", problem, extra=self._extra())
                self._problem = problem
                delay = min(2 * delay, max(LONGEST_DELAY, self._interval))
            else:
                delay = self._interval
            await asyncio.sleep(delay)

    async def _look(self) -> None:
        """Put back what is missing: the own socket, then the registration."""
        if not self._server.present:
            _log.warning("the plugin's socket was removed; making it again", extra=self._extra())
            self._known = None
            self._service.close()
            await self._server.stop()
            self._service.reopen()
            await self._server.start()
        there = identity(self._kubelet)
        self._unwatched = 0 if self._service.streams else self._unwatched + 1
        if there is not None and there == self._known and self._unwatched < UNWATCHED:
            return
        self._known, self._unwatched = None, 0
        if there is None:
            self._problem = f"there is no kubelet at {self._kubelet}"
            return
        await self._register()
        self._known, self._problem = there, None
        _log.info("registered at the kubelet", extra=self._extra())

    async def _register(self) -> None:
        request = wire.RegisterRequest(
            version=API_VERSION,
            endpoint=self._server.path.name,
            resource_name=self.resource_name,
            options=self._service.options,
        )
        async with channel(self._kubelet) as kubelet:
            register = kubelet.unary_unary(
                REGISTER,
                request_serializer=wire.RegisterRequest.SerializeToString,
                response_deserializer=wire.Empty.FromString,
            )
            await register(request, timeout=PATIENCE)

    def _extra(self) -> dict[str, str]:
        return {"driver": self.resource_name}


def socket_names(resource_name: str) -> tuple[str, str]:
    """Names of a plugin's socket, best first: one that says what it is, and a short one."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(resource_name.encode()).digest()[:16]).rstrip(b"=").decode()
    return f"draht-{re.sub(r'[^A-Za-z0-9.-]', '_', resource_name)}.sock", f"draht-{digest}.sock"
