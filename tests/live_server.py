"""A fake API server in a thread of its own, for commands that run an event loop themselves."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from fake_apiserver import FakeApiServer

__all__ = ["LiveServer", "live"]

Server = TypeVar("Server", bound=FakeApiServer)
T = TypeVar("T")

PLURALS = {
    "Pod": "pods",
    "Node": "nodes",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "DeviceTaintRule": "devicetaintrules",
}


class LiveServer(Generic[Server]):
    """A server that runs, seen from another thread."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self._loop = loop

    def do(self, what: Callable[[Server], T]) -> T:
        """Do something with the server in its own thread."""

        async def done() -> T:
            return what(self.server)

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(20)

    def apply(self, *texts: str) -> None:
        """Store the objects of YAML texts."""
        for text in texts:
            for obj in yaml.safe_load_all(text):
                if obj:
                    made: Any = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}
                    self.put(PLURALS[obj["kind"]], made)

    def put(self, plural: str, obj: Any) -> Any:
        """Store an object; returns it as it is then."""
        return self.do(lambda server: server.put(plural, obj))

    def kubeconfig(self, directory: Path, *, namespace: str = "default") -> str:
        """A kubeconfig for it."""
        path = directory / "kubeconfig"
        context = {"cluster": "c", "user": "u", "namespace": namespace}
        parts = {
            "current-context": "here",
            "clusters": [{"name": "c", "cluster": {"server": self.server.address}}],
            "contexts": [{"name": "here", "context": context}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        path.write_text(json.dumps(parts), encoding="utf-8")
        return str(path)


@contextmanager
def live(make: Callable[[], Server]) -> Iterator[LiveServer[Server]]:
    """A server while the block lasts.

    Args:
        make: Makes it; called in its own thread.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def started() -> Server:
        server = make()
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(started(), loop).result(20)
    try:
        yield LiveServer(server, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()
