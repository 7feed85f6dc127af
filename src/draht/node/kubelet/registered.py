"""Which plugins are registered on this node: whoever answers at a socket of the kubelet's registry directory.

Owns the question to them. A socket that nobody serves, that answers nonsense or not at all is no plugin; it is left
alone, since it may be another driver's that is just starting.
"""

from __future__ import annotations

import asyncio
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from draht.node.kubelet.socket_server import channel
from draht.node.wire.registration_pb2 import InfoRequest, PluginInfo

__all__ = ["DRA_PLUGIN", "GET_INFO", "SERVICE", "VERSION_KEY", "RegisteredPlugin", "registered_plugins"]

DRA_PLUGIN: Final = "DRAPlugin"
"""Type of a plugin that serves DRA."""
SERVICE: Final = "pluginregistration.Registration"
GET_INFO: Final = f"/{SERVICE}/GetInfo"
VERSION_KEY: Final = "draht-version"
"""Metadata that goes with the answers of draht's own plugins; the kubelet doesn't look at it."""

_AT_ONCE: Final = 16
_PATIENCE: Final = 1.0
"""Seconds; the kubelet gives a plugin as many."""


@dataclass(frozen=True, slots=True)
class RegisteredPlugin:
    """A plugin that answered.

    Attributes:
        socket: Its registration socket.
        type: ``DRAPlugin``, ``CSIPlugin``, ``DevicePlugin``.
        name: Name of the driver.
        endpoint: Its service socket.
        draht: Version of draht if it is one of draht's plugins, otherwise empty.
    """

    socket: Path
    type: str
    name: str
    endpoint: Path
    draht: str


async def registered_plugins(registry: Path, *, patience: float = _PATIENCE) -> list[RegisteredPlugin]:
    """Ask every socket of a registry directory who it is, several at once.

    Args:
        registry: The kubelet's ``plugins_registry``.
        patience: Seconds that each one has to answer.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(socket: Path) -> RegisteredPlugin | None:
        async with slots:
            return await _ask(socket, patience)

    answers = await asyncio.gather(*(ask(socket) for socket in _sockets(registry)))
    return [answer for answer in answers if answer is not None]


def _sockets(registry: Path) -> list[Path]:
    try:
        names = sorted(registry.iterdir())
    except OSError:
        return []
    found = []
    for path in names:
        try:
            if stat.S_ISSOCK(path.lstat().st_mode):
                found.append(path)
        except OSError:
            continue  # it went while we looked
    return found


async def _ask(socket: Path, patience: float) -> RegisteredPlugin | None:
    async with channel(socket) as peer:
        # Decoded here and not by gRPC, which logs a traceback and answers None for bytes that are no message.
        get_info: grpc.aio.UnaryUnaryMultiCallable[InfoRequest, bytes] = peer.unary_unary(
            GET_INFO, request_serializer=InfoRequest.SerializeToString
        )
        call = get_info(InfoRequest(), timeout=patience)
        try:
            info = PluginInfo.FromString(await call)
            trailing = await call.trailing_metadata() or ()
        except (grpc.RpcError, DecodeError):
            return None
    # Not a dict of it: releases of grpcio differ in what iterating over metadata as a mapping gives.
    version = next((str(value) for key, value in trailing if key == VERSION_KEY), "")
    return RegisteredPlugin(socket, info.type, info.name, Path(info.endpoint), version)
