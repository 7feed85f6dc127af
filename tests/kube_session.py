"""A client connected to the server of the tests, for one test."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from draht.kube import Client, Config
from fake_apiserver import FakeApiServer

__all__ = ["connected", "run"]


@asynccontextmanager
async def connected(server: FakeApiServer, **options: Any) -> AsyncIterator[Client]:
    """A client that doesn't wait between attempts."""

    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    options.setdefault("sleep", at_once)
    async with Client(Config(server.address), source=random.Random(1), **options) as client:
        yield client


def run(test: Callable[[FakeApiServer, Client], Awaitable[None]], **options: Any) -> None:
    """Run a test with a server and a client of it."""

    async def main() -> None:
        async with FakeApiServer() as server, connected(server, **options) as client:
            await test(server, client)

    asyncio.run(main())
