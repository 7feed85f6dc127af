"""A kubelet as far as plugins see it: it finds them, asks them, and forgets them when it is started again.

Behaves as pkg/kubelet/pluginmanager, cm/dra/plugin and cm/devicemanager of Kubernetes 1.37 do: every socket of the
registry is asked once per file with a second to answer, the newest plugin of a name gets the calls, and a start empties
the directory of device plugins. It runs no pods.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from draht.node.kubelet.socket_server import SocketServer, channel, identity
from draht.node.wire import (
    device_plugin_pb2,
    dra_v1_pb2,
    dra_v1beta1_pb2,
    health_v1_pb2,
    health_v1alpha1_pb2,
    registration_pb2,
)

__all__ = ["FakeKubelet", "Plugin", "Resource", "claim", "eventually"]

DRA: dict[str, ModuleType] = {"v1": dra_v1_pb2, "v1beta1": dra_v1beta1_pb2}
HEALTH: dict[str, ModuleType] = {"v1": health_v1_pb2, "v1alpha1": health_v1alpha1_pb2}
CALL = 45.0
"""Seconds that the kubelet waits for Prepare and Unprepare."""


@dataclass
class Plugin:
    """A DRA plugin that the kubelet has registered."""

    socket: Path
    name: str
    endpoint: Path
    services: tuple[str, ...]
    channel: grpc.aio.Channel

    async def call(self, version: str, method: str, claims: Iterable[Any], patience: float = CALL) -> dict[str, Any]:
        """UID → answer."""
        wire = DRA[version]
        invoke = self.channel.unary_unary(
            f"/{wire.DESCRIPTOR.services_by_name['DRAPlugin'].full_name}/{method}",
            request_serializer=getattr(wire, f"{method}Request").SerializeToString,
            response_deserializer=getattr(wire, f"{method}Response").FromString,
        )
        references = [wire.Claim(namespace=each.namespace, name=each.name, uid=each.uid) for each in claims]
        return dict((await invoke(getattr(wire, f"{method}Request")(claims=references), timeout=patience)).claims)

    async def health(self, version: str = "v1") -> AsyncGenerator[Any, None]:
        """Every message of a health stream."""
        wire = HEALTH[version]
        watch = self.channel.unary_stream(
            f"/{wire.DESCRIPTOR.services_by_name['DRAResourceHealth'].full_name}/NodeWatchResources",
            request_serializer=wire.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=wire.NodeWatchResourcesResponse.FromString,
        )
        stream = watch(wire.NodeWatchResourcesRequest())
        try:
            async for message in stream:
                yield message
        finally:
            stream.cancel()


@dataclass
class Resource:
    """An extended resource that a device plugin has registered."""

    name: str
    endpoint: Path
    prefers: bool
    channel: grpc.aio.Channel
    lists: list[dict[str, str]] = field(default_factory=list)
    topology: dict[str, list[int]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    stream: Any = None

    async def watch(self) -> None:
        """Read the list of devices until the plugin goes."""
        list_and_watch = self.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=device_plugin_pb2.Empty.SerializeToString,
            response_deserializer=device_plugin_pb2.ListAndWatchResponse.FromString,
        )
        self.stream = list_and_watch(device_plugin_pb2.Empty())
        with contextlib.suppress(grpc.RpcError):
            async for message in self.stream:
                self.topology = {each.ID: [node.ID for node in each.topology.nodes] for each in message.devices}
                self._add({each.ID: each.health for each in message.devices})
        self._add({})

    def _add(self, devices: dict[str, str]) -> None:
        self.lists.append(devices)
        self.changed.set()
        self.changed = asyncio.Event()

    async def until(self, devices: dict[str, str]) -> None:
        """Wait until the last list is this one: id → health."""
        async with asyncio.timeout(20):
            while not self.lists or self.lists[-1] != devices:
                await self.changed.wait()

    async def allocate(self, *containers: Sequence[str]) -> list[Any]:
        """What each container gets."""
        wire = device_plugin_pb2
        request = wire.AllocateRequest(
            container_requests=[wire.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
        )
        call = self.channel.unary_unary(
            "/v1beta1.DevicePlugin/Allocate",
            request_serializer=wire.AllocateRequest.SerializeToString,
            response_deserializer=wire.AllocateResponse.FromString,
        )
        return list((await call(request, timeout=CALL)).container_responses)

    async def preferred(self, available: Sequence[str], must: Sequence[str], size: int) -> list[str]:
        """The ids that the plugin would like best."""
        wire = device_plugin_pb2
        asked = wire.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        call = self.channel.unary_unary(
            "/v1beta1.DevicePlugin/GetPreferredAllocation",
            request_serializer=wire.PreferredAllocationRequest.SerializeToString,
            response_deserializer=wire.PreferredAllocationResponse.FromString,
        )
        answer = await call(wire.PreferredAllocationRequest(container_requests=[asked]), timeout=CALL)
        return list(answer.container_responses[0].deviceIDs)


class FakeKubelet:
    """One kubelet; an asynchronous context manager.

    Args:
        root: Its root directory; short, since sockets lie below it.
        refuse: Name of a driver → why it isn't taken.
        interval: Seconds between two looks at the registry.
    """

    def __init__(self, root: Path, *, refuse: dict[str, str] | None = None, interval: float = 0.02) -> None:
        self.root = root
        self.registry = root / "plugins_registry"
        self.device_plugins = root / "device-plugins"
        self.refuse = refuse or {}
        self.plugins: dict[str, list[Plugin]] = {}
        self.resources: dict[str, Resource] = {}
        self.registrations: list[str] = []
        self.silent: set[Path] = set()
        self._interval = interval
        self._seen: dict[Path, object] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._server: SocketServer | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Empty the directory of device plugins and look for plugins."""
        self.registry.mkdir(mode=0o750, parents=True, exist_ok=True)
        self.device_plugins.mkdir(mode=0o750, parents=True, exist_ok=True)
        for path in self.device_plugins.iterdir():
            path.unlink()
        self._server = SocketServer(self.device_plugins / "kubelet.sock", [self._registration()])
        await self._server.start()
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """End; plugins keep running."""
        tasks = [task for task in (self._watching, *self._asking) if task is not None]
        tasks += [each.task for each in self.resources.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for plugin in [each for plugins in self.plugins.values() for each in plugins]:
            await plugin.channel.close()
        for resource in self.resources.values():
            await resource.channel.close()
        if self._server is not None:
            await self._server.stop()
        self.plugins.clear()
        self.resources.clear()
        self._seen.clear()

    async def restart(self) -> None:
        """End and start again."""
        await self.stop()
        await self.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def plugin(self, name: str, *, instances: int = 1) -> Plugin:
        """Wait until a driver is registered, and return the plugin that gets its calls."""
        await eventually(lambda: len(self.plugins.get(name, ())) == instances)
        return self.plugins[name][-1]

    async def resource(self, name: str) -> Resource:
        """Wait until an extended resource is registered."""
        await eventually(lambda: name in self.resources)
        return self.resources[name]

    async def prepare(self, driver: str, *claims: Any, version: str = "v1", patience: float = CALL) -> dict[str, Any]:
        """UID → answer of the driver's newest plugin."""
        return await (await self._newest(driver)).call(version, "NodePrepareResources", claims, patience)

    async def unprepare(self, driver: str, *claims: Any, version: str = "v1", patience: float = CALL) -> dict[str, Any]:
        """UID → answer of the driver's newest plugin."""
        return await (await self._newest(driver)).call(version, "NodeUnprepareResources", claims, patience)

    async def _newest(self, driver: str) -> Plugin:
        await eventually(lambda: bool(self.plugins.get(driver)))
        return self.plugins[driver][-1]

    async def _watch(self) -> None:
        while True:
            there = {path: identity(path) for path in self.registry.iterdir() if path.is_socket()}
            for path in [path for path, known in self._seen.items() if there.get(path) != known]:
                del self._seen[path]
                await self._forget(path)
            for path, found in there.items():
                if path not in self._seen:
                    self._seen[path] = found
                    task = asyncio.create_task(self._register(path))
                    self._asking.add(task)
                    task.add_done_callback(self._asking.discard)
            await asyncio.sleep(self._interval)

    async def _forget(self, socket: Path) -> None:
        for plugins in self.plugins.values():
            for plugin in [each for each in plugins if each.socket == socket]:
                plugins.remove(plugin)
                await plugin.channel.close()

    async def _register(self, socket: Path) -> None:
        wire = registration_pb2
        async with channel(socket) as peer:
            get_info: grpc.aio.UnaryUnaryMultiCallable[Any, bytes] = peer.unary_unary(
                "/pluginregistration.Registration/GetInfo",
                request_serializer=wire.InfoRequest.SerializeToString,
            )
            notify = peer.unary_unary(
                "/pluginregistration.Registration/NotifyRegistrationStatus",
                request_serializer=wire.RegistrationStatus.SerializeToString,
                response_deserializer=wire.RegistrationStatusResponse.FromString,
            )
            try:
                info = wire.PluginInfo.FromString(await get_info(wire.InfoRequest(), timeout=1.0))
            except (grpc.RpcError, DecodeError):
                self.silent.add(socket)
                return
            error = self.refuse.get(info.name, "")
            plugins = self.plugins.setdefault(info.name, [])
            if any(str(each.endpoint) == info.endpoint for each in plugins):
                error = f"endpoint {info.endpoint} already registered for DRA driver plugin {info.name}"
            if not error:
                services, endpoint = tuple(info.supported_versions), Path(info.endpoint)
                plugins.append(Plugin(socket, info.name, endpoint, services, channel(endpoint)))
                self.registrations.append(info.name)
            with contextlib.suppress(grpc.RpcError):
                await notify(wire.RegistrationStatus(plugin_registered=not error, error=error), timeout=5.0)

    def _registration(self) -> grpc.GenericRpcHandler:
        wire = device_plugin_pb2

        async def register(request: Any, context: Any) -> Any:
            if reason := self.refuse.get(request.resource_name):
                await context.abort(grpc.StatusCode.UNKNOWN, reason)
            endpoint = self.device_plugins / request.endpoint
            old = self.resources.get(request.resource_name)
            if old is not None and old.task is not None:
                old.task.cancel()
                await asyncio.gather(old.task, return_exceptions=True)
                await old.channel.close()
            resource = Resource(
                request.resource_name,
                endpoint,
                request.options.get_preferred_allocation_available,
                channel(endpoint),
            )
            self.resources[request.resource_name] = resource
            self.registrations.append(request.resource_name)
            resource.task = asyncio.create_task(resource.watch())
            return wire.Empty()

        method = grpc.unary_unary_rpc_method_handler(
            register, wire.RegisterRequest.FromString, wire.Empty.SerializeToString
        )
        return grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": method})


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something is the case."""
    async with asyncio.timeout(20):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def claim(uid: str, *, namespace: str = "team", name: str = "") -> Any:
    """A reference to a claim; its name is made of the UID."""
    return dra_v1_pb2.Claim(namespace=namespace, name=name or f"claim-{uid}", uid=uid)
