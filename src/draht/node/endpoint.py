"""The agent's HTTP endpoint: ``/metrics``, ``/healthz``, ``/readyz``.

Owns the three paths. ``/healthz`` says that the agent's loop turns; ``/readyz`` that the kubelet knows its plugins and
that the API server has its slices, and names what is missing. It serves without TLS and without authentication, and
tells nothing that a device's labels don't.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from draht.api.errors import DrahtError
from draht.node.metrics import CONTENT_TYPE, Metrics

__all__ = ["serving"]


@asynccontextmanager
async def serving(
    address: str, port: int, *, metrics: Metrics, unready: Callable[[], Sequence[str]]
) -> AsyncIterator[int]:
    """Serve while the block lasts; yields the port, which is a free one if 0 was asked for.

    Args:
        address: Address to listen on.
        port: Port to listen on.
        metrics: What ``/metrics`` shows.
        unready: Why the agent isn't ready, as sentences; nothing means ready.

    Raises:
        DrahtError: The port can't be listened on.
    """

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_request: web.Request) -> web.Response:
        reasons = unready()
        return web.Response(text="\n".join(reasons or ["ok"]) + "\n", status=503 if reasons else 200)

    async def numbers(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", numbers)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port)
        try:
            await site.start()
        except OSError as error:
            raise DrahtError(
                f"the endpoint for metrics and probes can't listen: {error.strerror}",
                where=f"{address}:{port}",
                hint="choose another port with --listen",
            ) from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
