"""A driver as the kubelet sees it: its service socket, its registration socket, and what becomes of them.

Owns names and order of the two sockets, the refusal to stand beside a foreign plugin, and putting the sockets back when
the kubelet's directory was wiped. Two instances of draht may serve a driver while one replaces the other (the kubelet
takes the one that registered last); anybody else under the same name would prepare claims that this one never sees.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import hashlib
import logging
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

import grpc
import grpc.aio

import draht
from draht.node.errors import DriverRegisteredError, SocketError
from draht.node.kubelet.dra_service import DRAService
from draht.node.kubelet.health_service import HealthService
from draht.node.kubelet.registered import DRA_PLUGIN, SERVICE, VERSION_KEY, registered_plugins
from draht.node.kubelet.socket_server import SocketServer, fitting, remove_if_dead
from draht.node.wire.registration_pb2 import InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse

__all__ = ["KUBELET", "KubeletPlugin", "registration_names", "service_names"]

KUBELET: Final = Path("/var/lib/kubelet")
"""The kubelet's root directory."""
LOCK: Final = "serialize.lock"
"""File in the plugin's directory whose lock the instances of a driver share (also those of upstream's Go library)."""
LOCK_PATIENCE: Final = 50.0
"""Seconds to wait for it; a Go plugin holds it for one call, which the kubelet ends after 45."""

LOCK_TRIES: Final = 500

_UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_log = logging.getLogger(__name__)


class KubeletPlugin:
    """One instance of a DRA driver at the kubelet.

    Args:
        service: Prepares and unprepares claims.
        health: Streams the devices' health, if the driver watches it.
        kubelet: The kubelet's root directory.
        instance: UID of the pod that this runs in: lets a new instance start before the old one ends (kubelet 1.33 and
            newer). Empty: there is one instance at a time.
        interval: Seconds between two looks at the sockets.
        grace: Seconds that calls under way have at the end.
    """

    def __init__(
        self,
        service: DRAService[Any],
        *,
        health: HealthService | None = None,
        kubelet: Path = KUBELET,
        instance: str = "",
        interval: float = 1.0,
        grace: float = 5.0,
    ) -> None:
        self.driver_name = service.driver_name
        self._service = service
        self._health = health
        self._interval = interval
        self._grace = grace
        self._registry = kubelet / "plugins_registry"
        self._directory = kubelet / "plugins" / self.driver_name
        self._endpoint = fitting(self._directory, service_names(instance))
        handlers = [*service.handlers(), *(health.handlers() if health is not None else ())]
        self._server = SocketServer(self._endpoint, handlers)
        socket = fitting(self._registry, registration_names(self.driver_name, instance))
        self._registration = SocketServer(socket, [self._registration_handler()])
        self._watching: asyncio.Task[None] | None = None
        self._registered = asyncio.Event()
        self._problem: str | None = "the kubelet hasn't asked for the plugin yet"

    @property
    def registered(self) -> bool:
        """Whether the kubelet has said that it takes this plugin."""
        return self._registered.is_set()

    @property
    def problem(self) -> str | None:
        """Why the plugin isn't registered, if it isn't."""
        return None if self.registered else self._problem

    async def wait_until_registered(self) -> None:
        """Return as soon as the kubelet has taken the plugin."""
        await self._registered.wait()

    async def start(self) -> None:
        """Serve, then register.

        Raises:
            DriverRegisteredError: Another plugin serves this driver's name.
            SocketError: A socket can't be made.
        """
        if self._health is not None:
            self._health.reopen()
        async with self._starts_alone():
            await self._refuse_others()
            await self._remove_leftovers()
            try:
                await self._server.start()
                await self._registration.start()
            except BaseException:
                await self._server.stop()
                raise
        self._watching = asyncio.create_task(self._watch(), name=f"sockets of {self.driver_name}")

    async def stop(self) -> None:
        """Leave the kubelet: wait for calls that are under way, then remove both sockets, the registration's first."""
        end = asyncio.get_running_loop().time() + self._grace
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        await self._service.drain(self._grace)
        await self._registration.stop()
        self._registered.clear()
        self._problem = "the plugin has been stopped"
        if self._health is not None:
            self._health.close()
        left = max(0.0, end - asyncio.get_running_loop().time())
        await self._server.stop(left)
        await self._service.close(left)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _registration_handler(self) -> grpc.GenericRpcHandler:
        services = [*self._service.services(), *(self._health.services() if self._health is not None else ())]
        info = PluginInfo(
            type=DRA_PLUGIN, name=self.driver_name, endpoint=str(self._endpoint), supported_versions=services
        )

        async def get_info(_request: InfoRequest, context: grpc.aio.ServicerContext[Any, Any]) -> PluginInfo:
            context.set_trailing_metadata(((VERSION_KEY, draht.__version__),))
            return info

        async def notify(
            status: RegistrationStatus, _context: grpc.aio.ServicerContext[Any, Any]
        ) -> RegistrationStatusResponse:
            extra = {"driver": self.driver_name}
            if status.plugin_registered:
                self._registered.set()
                _log.info("the kubelet has registered the plugin", extra=extra)
            else:
                self._registered.clear()
                self._problem = f"the kubelet refuses the plugin: {status.error}"
                _log.error("the kubelet refuses the plugin: %s", status.error, extra=extra)
            return RegistrationStatusResponse()

        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "GetInfo": grpc.unary_unary_rpc_method_handler(
                    get_info,
                    request_deserializer=InfoRequest.FromString,
                    response_serializer=PluginInfo.SerializeToString,
                ),
                "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                    notify,
                    request_deserializer=RegistrationStatus.FromString,
                    response_serializer=RegistrationStatusResponse.SerializeToString,
                ),
            },
        )

    @asynccontextmanager
    async def _starts_alone(self) -> AsyncIterator[None]:
        """Keep other instances from looking around and binding at the same time; their sockets would look dead."""
        path = self._directory / LOCK
        try:
            self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SocketError(
                f"the plugin's directory can't be used: {error.strerror}",
                where=str(path),
                hint="draht node runs as root, with the kubelet's directory mounted read-write",
            ) from None
        try:
            for _ in range(LOCK_TRIES):
                if _locked(lock):
                    break
                await asyncio.sleep(LOCK_PATIENCE / LOCK_TRIES)
            else:
                raise SocketError(
                    f"another instance of the driver has held its lock for {LOCK_PATIENCE:.0f} s",
                    where=str(path),
                    hint=f"see which process has it: fuser {path}",
                )
            yield
        finally:
            os.close(lock)

    async def _refuse_others(self) -> None:
        for plugin in await registered_plugins(self._registry):
            if plugin.type != DRA_PLUGIN or plugin.name != self.driver_name:
                continue
            if plugin.draht and plugin.endpoint.parent == self._directory and plugin.endpoint != self._endpoint:
                _log.info("another instance of draht %s serves until it ends", plugin.draht, extra=self._extra())
                continue
            who = f"draht {plugin.draht}" if plugin.draht else "another plugin"
            raise DriverRegisteredError(
                f"{who} serves the driver {self.driver_name} on this node, at {plugin.endpoint}",
                where=str(plugin.socket),
                hint="end it first: two would prepare the same claims (docs/kubelet.md, taking over a driver)",
            )

    async def _remove_leftovers(self) -> None:
        """Remove sockets of instances that were killed; each pod has names of its own, so nobody else would."""
        name = re.compile(re.escape(self.driver_name) + "-" + _UID.pattern + r"-reg\.sock")
        dead = [path for path in self._registry.glob("*-reg.sock") if name.fullmatch(path.name)]
        dead += [path for path in self._directory.glob("dra*.sock") if path != self._endpoint]
        for path in dead:
            with suppress(OSError):
                if await remove_if_dead(path):
                    _log.info("removed the socket of an instance that was killed: %s", path, extra=self._extra())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self._restore()
            except (SocketError, OSError) as error:
                self._problem = str(error)
                _log.error("%s", error, extra=self._extra())

    async def _restore(self) -> None:
        """Make sockets again that are gone: the service's first, since the kubelet dials it once it sees the other."""
        if self._server.present and self._registration.present:
            return
        self._registered.clear()
        self._problem = "the sockets were removed and have been made again; the kubelet hasn't asked yet"
        _log.warning("the sockets of the plugin were removed; making them again", extra=self._extra())
        await self._registration.stop()
        if not self._server.present:
            await self._server.stop()
            await self._server.start()
        await self._registration.start()

    def _extra(self) -> dict[str, str]:
        return {"driver": self.driver_name}


def registration_names(driver: str, instance: str = "") -> tuple[str, ...]:
    """Names of a registration socket, best first (those of upstream's Go library, k8s.io/dynamic-resource-allocation).

    Args:
        driver: Name of the driver.
        instance: UID of the pod, or empty.
    """
    unique = f"dra-{_short(chr(0).join((driver, instance)), 16)}-reg.sock"
    if not instance:
        return (f"{driver}-reg.sock", unique)
    return (f"{driver}-{instance}-reg.sock", f"{driver}-{_short(instance, 8)}-reg.sock", unique)


def service_names(instance: str = "") -> tuple[str, ...]:
    """Names of a service socket, best first; the last one is short enough for every driver in `KUBELET`.

    Args:
        instance: UID of the pod, or empty.
    """
    return (f"dra-{instance}.sock", f"dra-{_short(instance, 6)}.sock") if instance else ("dra.sock",)


def _short(text: str, size: int) -> str:
    digest = hashlib.sha256(text.encode()).digest()[:size]
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
