"""A TCP proxy on loopback that cuts what goes through it, as a network does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

__all__ = ["cutting_proxy"]


@contextlib.asynccontextmanager
async def cutting_proxy(port: int) -> AsyncIterator[tuple[int, Callable[[], None]]]:
    """A TCP proxy to a port of loopback: its own port, and a function that cuts what goes through it."""
    writers: set[asyncio.StreamWriter] = set()
    tasks: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            there, to = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            tasks.discard(task)
            return
        writers.update((writer, to))
        ways = [asyncio.ensure_future(carry(reader, to)), asyncio.ensure_future(carry(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # the stream's own callback would complain
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, to):
                end.transport.abort()
                writers.discard(end)
            tasks.discard(task)

    def cut() -> None:
        for writer in list(writers):
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], cut
    finally:
        server.close()
        cut()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
