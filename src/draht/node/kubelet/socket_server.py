"""A gRPC server on one unix socket, and what a plugin has to know about such sockets.

Owns paths that fit, directories, stale sockets, and whether the file is still the one that was made. Why a check
before binding: gRPC takes the path of a socket that somebody serves away from him without a word.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from draht.node.errors import SocketError

__all__ = ["LONGEST_PATH", "Identity", "SocketServer", "channel", "fitting", "identity", "listens", "remove_if_dead"]

LONGEST_PATH: Final = 107
"""Bytes of a socket's path: 108 of ``sockaddr_un`` (unix(7)) with the zero at the end, which gRPC insists on."""

Identity = tuple[int, int, int]
"""Device, inode and time of change: what tells a file from one that was made in its place."""


class SocketServer:
    """One server on one socket. It can be started again after the file was taken away.

    Args:
        path: Absolute path of the socket.
        handlers: The services behind it.
    """

    def __init__(self, path: Path, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self.path = path
        self._handlers = tuple(handlers)
        self._server: grpc.aio.Server | None = None
        self._made: Identity | None = None

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            SocketError: The path is too long, the directory can't be written, or somebody serves this socket.
        """
        fitting(self.path.parent, (self.path.name,))
        try:
            self.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            await remove_if_dead(self.path)
        except OSError as error:
            raise _unusable(self.path, error) from None
        if self.path.exists():
            raise SocketError(
                "another process serves this socket"
                if self.path.is_socket()
                else "a file that is no socket is in the way",
                where=str(self.path),
                hint="end that process, or start with another instance name" if self.path.is_socket() else "remove it",
            )
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers(self._handlers)
        try:
            server.add_insecure_port(f"unix:{self.path}")
            self.path.chmod(0o600)
            await server.start()
        except (OSError, RuntimeError) as error:
            await server.stop(None)
            raise _unusable(self.path, error) from None
        self._server = server
        self._made = identity(self.path)

    @property
    def present(self) -> bool:
        """Whether the socket is served and its file is the one that was made."""
        return self._server is not None and self._made is not None and identity(self.path) == self._made

    async def stop(self, grace: float = 0.0) -> None:
        """Take no new calls, wait ``grace`` seconds for those under way, and remove the file."""
        server, self._server, self._made = self._server, None, None
        if server is not None:
            await server.stop(grace)


def fitting(directory: Path, names: Sequence[str]) -> Path:
    """The first of some names that makes a path short enough for a socket.

    Raises:
        SocketError: None does.
    """
    for name in names:
        path = directory / name
        if len(os.fsencode(path)) <= LONGEST_PATH:
            return path
    raise SocketError(
        f"the path of a socket is limited to {LONGEST_PATH} bytes, this has {len(os.fsencode(directory / names[-1]))}",
        where=str(directory / names[-1]),
        hint="use a shorter directory of the kubelet, or a shorter name of the driver",
    )


def identity(path: Path) -> Identity | None:
    """What tells the file at a path from another one at the same path; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_ctime_ns)


async def listens(path: Path, patience: float = 1.0) -> bool:
    """Whether somebody accepts connections at a socket; in doubt (no permission, no answer) somebody does."""
    try:
        async with asyncio.timeout(patience):
            _, writer = await asyncio.open_unix_connection(path)
    except TimeoutError:
        return True
    except OSError as error:
        return error.errno not in {errno.ECONNREFUSED, errno.ENOENT, errno.ENOTSOCK, errno.EPROTOTYPE}
    writer.close()
    return True


async def remove_if_dead(path: Path) -> bool:
    """Remove a socket that nobody serves, such as the one of a process that was killed; says whether it did.

    Raises:
        OSError: It can't be removed.
    """
    if not _is_socket(path) or await listens(path):
        return False
    _unlink(path)
    return True


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)


def channel(path: Path, options: Sequence[tuple[str, Any]] = ()) -> grpc.aio.Channel:
    """A channel to a socket.

    Without the authority, gRPC's C core sends the path as authority, which strict servers refuse.
    """
    return grpc.aio.insecure_channel(f"unix:{path}", options=[("grpc.default_authority", "localhost"), *options])


def _unusable(path: Path, error: OSError | RuntimeError) -> SocketError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition(";")[0]
    return SocketError(
        f"the socket can't be made: {reason}",
        where=str(path),
        hint="draht node runs as root, with the kubelet's directory mounted read-write",
    )
