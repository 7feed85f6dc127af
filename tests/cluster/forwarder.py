"""The way from pods to the API server: accepts connections at the first service address and passes them on to loopback.

``python forwarder.py ADDRESS PORT TARGET_PORT``. It stands for the one rule of kube-proxy that every pod needs, without
a firewall rule on this machine. Bytes pass through unread; TLS is between the pod and the API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio import StreamReader, StreamWriter

CHUNK = 1 << 16


async def copy(reader: StreamReader, writer: StreamWriter) -> None:
    """Pass on bytes until there are no more, then say so to the other side."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def serve(address: str, port: int, target: int) -> None:
    """Forward until the process is ended."""

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:  # the API server is being restarted; the client tries again
            writer.close()
            return
        await asyncio.gather(copy(reader, target_writer), copy(target_reader, writer))
        for end in (writer, target_writer):
            end.close()

    server = await asyncio.start_server(connected, address, port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
