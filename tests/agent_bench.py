"""`draht.node.agent.Agent` with a kubelet on one side and an API server on the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from draht.driver.framework import Driver
from draht.kube import Backoff, Client, Config
from draht.node.agent import Agent, Settings
from draht.node.served_driver import Intervals
from fake_kubelet import FakeKubelet, claim, eventually
from fake_node_server import NodeServer
from fake_slice_server import NODE
from toy_driver import OtherToyDriver, ToyDriver
from toy_driver import claim as allocated

__all__ = ["DRIVER", "OTHER", "TESTS", "Bench", "kubeconfig", "on_node", "sockets"]

DRIVER, OTHER = ToyDriver.name, OtherToyDriver.name
OFTEN = Intervals(discover=0.05, health=0.05, sweep=0.05)
TESTS = Path(__file__).resolve().parent


@dataclass
class Bench:
    """An agent with everything around it."""

    root: Path
    server: NodeServer
    kubelet: FakeKubelet
    client: Client
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    agent: Agent | None = None

    def driver(self, cls: type[ToyDriver] = ToyDriver, **options: Any) -> ToyDriver:
        """A driver with effects of its own."""
        return cls(self.root / f"effects-{cls.name}", **options)

    @property
    def settings(self) -> Settings:
        """Everything below the root."""
        return Settings(
            node_name=NODE,
            kubelet=self.root,
            cdi_directory=self.root / "cdi",
            metadata_directory=self.root / "metadata",
            state_directory=self.root / "state",
            address="127.0.0.1",
            port=0,
            intervals=OFTEN,
        )

    @asynccontextmanager
    async def running(self, *drivers: Driver, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
        """The agent while the block lasts; it is told to stop at the end."""
        self.stop.clear()
        self.port = 0
        self.agent = Agent(self.settings, drivers, self.client, **options)
        task = asyncio.create_task(self.agent.run(self.stop, started=lambda port: setattr(self, "port", port)))
        try:
            yield task
        finally:
            self.stop.set()
            async with asyncio.timeout(20):
                await asyncio.gather(task, return_exceptions=True)

    def unready(self) -> list[str]:
        """Why the agent isn't ready."""
        assert self.agent is not None
        return self.agent.unready()

    async def get(self, path: str) -> tuple[int, str]:
        """A page of the agent's endpoint."""
        await eventually(lambda: self.port != 0)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}") as answer,
        ):
            return answer.status, await answer.text()

    async def ready(self) -> None:
        """Wait until the agent says that it is."""
        async with asyncio.timeout(20):
            while (await self.get("/readyz"))[0] != 200:  # noqa: ASYNC110 — the endpoint tells only who asks
                await asyncio.sleep(0.01)

    async def numbers(self) -> dict[tuple[str, ...], float]:
        """(name, values of the labels by their names) → value."""
        _, text = await self.get("/metrics")
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return {(each.name, *(each.labels[name] for name in sorted(each.labels))): each.value for each in samples}

    def claim(self, *devices: str) -> Any:
        """An allocated claim on the API server, as the kubelet names it."""
        made: Any = msgspec.to_builtins(allocated("x", *devices, name=f"claim-{len(self.server.objects)}"))
        stored = self.server.put("resourceclaims", made)["metadata"]
        return claim(stored["uid"], namespace=stored["namespace"], name=stored["name"])

    def taints(self) -> list[str]:
        """Keys of the taints that are published."""
        return [taint.key for each in self.server.slices() for device in each.spec.devices for taint in device.taints]


def on_node(root: Path, test: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Run a test beside a kubelet and an API server."""

    async def main() -> None:
        async with NodeServer() as server, FakeKubelet(root) as kubelet:
            quick = Backoff(initial=0.01, maximum=0.05)
            async with Client(Config(server.address), backoff=quick) as client:
                await test(Bench(root, server, kubelet, client))

    asyncio.run(main())


def kubeconfig(address: str) -> str:
    """A kubeconfig for a server without authentication."""
    return json.dumps(
        {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
    )


def sockets(root: Path) -> list[Path]:
    """What plugins left in the kubelet's directories."""
    return sorted(root.glob("plugins*/**/*.sock"))
