"""The node agent: one process that serves the drivers of a node until it is told to stop.

Owns the life of the process: starting the drivers side by side, the endpoint for probes and metrics,
and stopping so that nothing running notices. One driver that can't start never keeps the others from serving; it is
tried again and named by ``/readyz``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draht.api.errors import DrahtError
from draht.driver.claims.prepared import Places
from draht.driver.database import Database
from draht.driver.errors import DriverFailedError
from draht.driver.framework import Driver
from draht.kube import Client
from draht.node.endpoint import serving
from draht.node.errors import DriverRegisteredError
from draht.node.metrics import Metrics
from draht.node.node_labels import NodeLabels
from draht.node.plugin_resource import PluginResource
from draht.node.served_driver import Intervals, NodePlaces, ServedDriver

__all__ = ["Agent", "Settings"]

logger = logging.getLogger(__name__)

RETRY_SECONDS = 10.0
"""Between tries to start a driver that couldn't: a taken socket or a full disk is mended by a person."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Where and how an agent runs.

    Attributes:
        node_name: Name of the Node object.
        kubelet: The kubelet's root directory.
        cdi_directory: Where the container runtime looks for CDI specs.
        metadata_directory: Where device metadata goes (KEP-5304).
        state_directory: Directory of the machine's database.
        address: Address of the endpoint.
        port: Port of the endpoint; 0 is a free one.
        instance: UID of the agent's pod; empty outside a pod.
        intervals: How often the drivers look.
    """

    node_name: str
    kubelet: Path
    cdi_directory: Path
    metadata_directory: Path
    state_directory: Path
    address: str = "0.0.0.0"  # noqa: S104 — the kubelet and Prometheus ask from outside the pod
    port: int = 8080
    instance: str = ""
    intervals: Intervals = field(default_factory=Intervals)


class Agent:
    """Serves drivers on one node.

    Args:
        settings: Where and how.
        drivers: The drivers.
        client: The API server, with the agent's identity.
        resources: Extended resources that a device plugin serves beside the drivers.
        labels: The labels that the node gets; None leaves the node's labels alone.
    """

    def __init__(
        self,
        settings: Settings,
        drivers: Sequence[Driver],
        client: Client,
        *,
        resources: Sequence[PluginResource] = (),
        labels: NodeLabels | None = None,
    ) -> None:
        self._settings = settings
        self._drivers = drivers
        self._client = client
        self._resources = resources
        self._labels = labels
        self._served: dict[str, ServedDriver] = {}
        self._reasons = {driver.name: f"{driver.name}: not started yet" for driver in drivers}
        self._metrics = Metrics(lambda: [served.numbers() for served in self._served.values()])

    async def run(self, stop: asyncio.Event, *, started: Callable[[int], None] = lambda _port: None) -> None:
        """Serve until ``stop`` is set; slices and prepared claims stay as they are.

        Args:
            stop: Set it to end.
            started: Told the endpoint's port.

        Raises:
            DrahtError: The database can't be used, or the endpoint can't listen.
            DriverRegisteredError: Another plugin serves one of the drivers on this node.
        """
        settings = self._settings
        async with serving(settings.address, settings.port, metrics=self._metrics, unready=self.unready) as port:
            started(port)
            database = Database(settings.state_directory)
            await asyncio.to_thread(database.check)
            with database.kept_open():
                works = [self._serve(driver, database) for driver in self._drivers]
                works += [self._serve_resource(resource) for resource in self._resources]
                if self._labels is not None:
                    works.append(self._labels.run(self._client, settings.node_name))
                await _until(stop, works)
            logger.info("stopped; slices and prepared claims stay")

    def unready(self) -> list[str]:
        """Why the agent isn't of full use now, as sentences."""
        reasons = list(self._reasons.values())
        for served in self._served.values():
            reasons += served.unready()
        for resource in self._resources:
            reasons += resource.unready()
        return reasons

    async def _serve(self, driver: Driver, database: Database) -> None:
        settings = self._settings
        places = Places(
            cdi_directory=settings.cdi_directory,
            metadata_directory=settings.metadata_directory,
            files_directory=settings.state_directory / "files" / driver.name,
        )
        served = ServedDriver(
            driver,
            client=self._client,
            node_name=settings.node_name,
            database=database,
            places=NodePlaces(kubelet=settings.kubelet, claims=places),
            metrics=self._metrics,
            instance=settings.instance,
            intervals=settings.intervals,
        )
        while True:
            try:
                await served.start()
                break
            except DriverRegisteredError:
                # Two plugins under one name prepare the same devices; only a person can say which one stays.
                raise
            except Exception as error:  # noqa: BLE001 — a bug in one driver doesn't cost the others
                self._told(driver.name, error)
                await asyncio.sleep(RETRY_SECONDS)
        del self._reasons[driver.name]
        self._served[driver.name] = served
        logger.info("serving", extra={"driver": driver.name, "devices": len(served.offer.devices())})
        try:
            await served.run()
        finally:
            del self._served[driver.name]
            await served.stop()

    async def _serve_resource(self, resource: PluginResource) -> None:
        while True:
            try:
                await resource.serve(self._settings.kubelet, self._metrics)
            except (DrahtError, OSError) as error:
                self._told(resource.name, error)
                await asyncio.sleep(RETRY_SECONDS)
                self._reasons.pop(resource.name, None)

    def _told(self, name: str, error: Exception) -> None:
        """Say why something isn't served, and keep it for ``/readyz``."""
        extra = {"driver": name, "hint": error.hint if isinstance(error, DrahtError) else None}
        if isinstance(error, DrahtError | OSError):
            self._reasons[name] = f"{name}: {error}"
            bug = error.__cause__ if isinstance(error, DriverFailedError) else None
            logger.error(str(error), exc_info=bug, extra=extra)
        else:
            self._reasons[name] = f"{name}: {type(error).__name__}: {error} (unexpected; see the log)"
            logger.error("it can't be started", exc_info=error, extra=extra)


async def _until(stop: asyncio.Event, works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run everything until ``stop`` is set or one of them fails, then end all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
            await stop.wait()
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as failed:
        # The first failure ended the others; what a person reads is that one.
        first: BaseException = failed
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
