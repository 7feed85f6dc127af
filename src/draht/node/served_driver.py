"""One driver at work on one node: what it offers is published, what claims are given is prepared, its health is told.

Owns how the parts belong together and in which order they start and end: what a crash left behind is put right before
the kubelet can ask for anything, the kubelet can ask before anything is published, and at the end the slices stay. The
parts themselves are `draht.driver.claims.preparation`, `draht.node.kubelet.registration` and
`draht.node.slices.publisher`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from draht.api.errors import DrahtError
from draht.api.resource import ResourceClaim
from draht.driver.claims import driver_calls
from draht.driver.claims.preparation import Preparer
from draht.driver.claims.prepared import Places, PreparedClaim
from draht.driver.database import Database
from draht.driver.errors import DriverFailedError
from draht.driver.framework import Driver, Health, Offer
from draht.kube import CLAIMS, Client, NotFoundError
from draht.node.claim_report import report
from draht.node.kubelet.claim_work import in_thread
from draht.node.kubelet.dra_service import DRAService
from draht.node.kubelet.health_service import HealthService
from draht.node.kubelet.registration import KubeletPlugin
from draht.node.metrics import DriverNumbers, Metrics
from draht.node.slices.publisher import Publisher

__all__ = ["Intervals", "NodePlaces", "ServedDriver"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Intervals:
    """How often the agent looks, in seconds.

    Attributes:
        discover: For devices that came or went.
        health: For devices that fell ill or recovered.
        sweep: For claims that were interrupted half-way and that the API server doesn't have any more.
    """

    discover: float = 60.0
    health: float = 5.0
    sweep: float = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePlaces:
    """Directories of the node.

    Attributes:
        kubelet: The kubelet's root directory.
        claims: Where files for containers go.
    """

    kubelet: Path
    claims: Places


class ServedDriver:
    """A driver with everything around it.

    Args:
        driver: The vendor's driver.
        client: The API server, with the agent's identity.
        node_name: Name of the Node object.
        database: The machine's database.
        places: Directories of the node.
        metrics: Where calls are counted.
        instance: UID of the agent's pod, empty outside a pod; two instances of an upgrade overlap by it.
        intervals: How often to look.
    """

    def __init__(
        self,
        driver: Driver,
        *,
        client: Client,
        node_name: str,
        database: Database,
        places: NodePlaces,
        metrics: Metrics,
        instance: str = "",
        intervals: Intervals = Intervals(),
    ) -> None:
        self.driver = driver
        self._client = client
        self._intervals = intervals
        self.preparer = Preparer(driver, database, places.claims, node_name=node_name)
        self.publisher = Publisher(client, driver.name, node_name)
        self._health_service = HealthService(node_name)
        self._service = DRAService(
            driver.name, self.preparer, self._fetch, report=partial(report, client), observer=metrics
        )
        self.plugin = KubeletPlugin(
            self._service, health=self._health_service, kubelet=places.kubelet, instance=instance
        )
        self._offer = Offer()
        self._health: tuple[Health, ...] = ()
        self._troubles: dict[str, str] = {}
        """What looks in vain → why."""
        self._claims: list[PreparedClaim] = []

    async def start(self) -> None:
        """Put right what a crash or reboot left, then let the kubelet come, then publish.

        Raises:
            DrahtError: The driver finds nothing to look at, the database or a socket can't be used, or another plugin
                has the driver's name.
        """
        self._offer = await in_thread(self.preparer.refresh)
        recovered = await in_thread(self.preparer.recover)
        for sentence in (*recovered.notices, *recovered.problems):
            logger.warning(sentence, extra={"driver": self.driver.name})
        logger.info(
            "claims of earlier runs looked through",
            extra={
                "driver": self.driver.name,
                "kept": len(recovered.kept),
                "restored": len(recovered.restored),
                "rolled_back": len(recovered.rolled_back),
                "adopted": len(recovered.adopted),
                "swept": len(recovered.swept),
            },
        )
        for claim in await in_thread(self.preparer.prepared):
            if claim.uid in recovered.restored or _unready(claim):
                self._service.report(claim)
        await self._look_at_health()
        await self.plugin.start()
        self._tell()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.publisher.run())
            tasks.create_task(self._every(self._intervals.health, self._look_at_health))
            tasks.create_task(self._every(self._intervals.discover, self._discover))
            tasks.create_task(self._every(self._intervals.sweep, self._sweep))

    async def stop(self) -> None:
        """Leave the kubelet; slices and prepared claims stay as they are."""
        await self.plugin.stop()

    def unready(self) -> list[str]:
        """Why the driver isn't of full use now, as sentences."""
        name = self.driver.name
        reasons = []
        if not self.plugin.registered:
            reasons.append(f"{name}: {self.plugin.problem or 'the kubelet has not registered the plugin yet'}")
        if not self.publisher.synced:
            # Problems beside slices that are there, such as a device that the server refuses, may stay for weeks:
            # metrics and the log tell them, and a rollout goes on.
            problems = [str(problem) for problem in self.publisher.problems]
            reasons += [f"{name}: {each}" for each in problems or ["the ResourceSlices are not on the API server yet"]]
        return reasons + [f"{name}: {trouble}" for trouble in dict.fromkeys(self._troubles.values())]

    def numbers(self) -> DriverNumbers:
        """What metrics show of it."""
        try:
            self._claims = self.preparer.prepared()
            self._troubles.pop("numbers", None)
        except DrahtError as error:
            # A scrape shows what was known last, and everybody else's numbers.
            self._note("numbers", str(error))
        claims = self._claims
        return DriverNumbers(
            driver=self.driver.name,
            devices=len(self._offer.devices()),
            unhealthy=sum(each.state != "Healthy" for each in self._health),
            prepared_claims=len(claims),
            prepared_devices=sum(len(claim.devices) for claim in claims),
            registered=self.plugin.registered,
            synced=self.publisher.synced,
            problems=len(self.publisher.problems),
            slice_writes=dict(self.publisher.counters),
        )

    @property
    def offer(self) -> Offer:
        """What is offered now."""
        return self._offer

    @property
    def health(self) -> Sequence[Health]:
        """How the devices are now."""
        return self._health

    async def _fetch(self, namespace: str, name: str) -> ResourceClaim | None:
        try:
            return await self._client.get(CLAIMS, name, namespace=namespace)
        except NotFoundError:
            return None

    async def _discover(self) -> None:
        offer = await in_thread(self.preparer.refresh)
        if offer != self._offer:
            logger.info("the devices have changed", extra={"driver": self.driver.name, "devices": len(offer.devices())})
            self._offer = offer
            self._tell()

    async def _look_at_health(self) -> None:
        health = await in_thread(partial(driver_calls.health, self.driver))
        if health != self._health:
            for each in set(health) - set(self._health):
                logger.warning(
                    each.message or "the health of a device has changed",
                    extra={"driver": self.driver.name, "device": each.device, "state": each.state},
                )
            self._health = health
            self._tell()
        self._health_service.set(self._offer, health)

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        known: frozenset[str] | None = None

        async def listed() -> frozenset[str]:
            return frozenset(claim.metadata.uid for claim in (await self._client.list(CLAIMS)).items)

        def alive(uid: str) -> bool:
            # Asked only if something is stuck, which is rare, and then once for all.
            nonlocal known
            if known is None:
                known = asyncio.run_coroutine_threadsafe(listed(), loop).result(timeout=60)
            return uid in known

        gone = await in_thread(partial(self.preparer.orphans, alive))
        for uid in gone:
            logger.info("a claim that was interrupted is gone", extra={"driver": self.driver.name, "claim_uid": uid})

    def _tell(self) -> None:
        self.publisher.set(self._offer, self._health)
        self._health_service.set(self._offer, self._health)

    async def _every(self, seconds: float, look: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            # A cluster's agents start together; they needn't look together.
            await asyncio.sleep(seconds * random.uniform(0.9, 1.1))  # noqa: S311 — spreads load, decides nothing
            try:
                await look()
                self._troubles.pop(look.__name__, None)
            except (DrahtError, OSError) as error:
                self._note(look.__name__, str(error), error.__cause__ if isinstance(error, DriverFailedError) else None)
            except Exception as error:  # noqa: BLE001 — a bug in one driver doesn't cost the others
                self._note(look.__name__, f"{type(error).__name__}: {error} (unexpected; see the log)", error)

    def _note(self, what: str, trouble: str, bug: BaseException | None = None) -> None:
        """Keep a trouble for ``/readyz`` until the same look succeeds, and log it once."""
        if self._troubles.get(what) != trouble:
            logger.warning(trouble, exc_info=bug, extra={"driver": self.driver.name})
        self._troubles[what] = trouble


def _unready(claim: PreparedClaim) -> bool:
    """Whether a device of the claim isn't ready for containers, as when it couldn't be prepared again."""
    return any(condition.status != "True" for device in claim.status for condition in device.conditions)
