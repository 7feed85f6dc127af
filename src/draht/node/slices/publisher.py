"""Keeps the ResourceSlices of one driver on one node as the driver offers them.

Owns the loop: when to look, when to write, when to wait, and what to say about it. Which slices an offer asks for is
`draht.node.slices.wishes`, which writes lead there is `draht.node.slices.plan`, and how one is done is
`draht.node.slices.writer`.

Slices stay when the publisher ends: a restart of the agent must not disturb scheduling, and the kubelet removes them
when a driver stays away for 30 s. For the same reason generations go on from what is on the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from draht.api.errors import DrahtError
from draht.api.resource import ResourceSlice, ResourceSliceSpec
from draht.driver.framework import Health, Offer
from draht.driver.slices import is_local
from draht.kube import AlreadyExistsError, Backoff, Client, ConflictError, InvalidError, KubeError, StatusError
from draht.node.slices.answers import ServerAnswers
from draht.node.slices.errors import PublishError, TakenPoolError
from draht.node.slices.memory import SliceMemory
from draht.node.slices.plan import Delete, Plan, plan, remove
from draht.node.slices.watch import SliceWatch
from draht.node.slices.wishes import Wishes, combines_counters, wishes
from draht.node.slices.writer import STARTED, SliceWriter, Unfinished
from draht.node.taints import with_health

__all__ = ["Delays", "Publisher"]

_ROUNDS: Final = 8
"""Plans that may follow each other at once; more mean that slices don't stay as they are written."""
_QUIET: Final = 10
"""Times the longest wait for a repair without one, after which waits begin with the shortest again."""
_FIGHT: Final = 5
"""Repairs without a quiet time between them that are worth a word."""
_PASSING: Final = 3
"""Conflicts in a row that aren't worth a word."""


@dataclass(frozen=True, slots=True)
class Delays:
    """How long the publisher waits, in seconds.

    Args:
        repair: After a change by somebody else, before it is repaired; the longer the more often it happens.
        retry: After a write that failed, before the next try.
        handover: After a change by an agent that was started later, before it is repaired: during an upgrade two agents
            run side by side, and the older one must give way, but not for good if the other one fails.
        lag: How long the watch may take to show an own write before the server is asked directly.
        doubt: How long it is believed that the server drops or refuses something before it is asked again.
    """

    repair: Backoff = field(default_factory=lambda: Backoff(initial=1.0, maximum=30.0))
    retry: Backoff = field(default_factory=lambda: Backoff(initial=0.5, maximum=30.0))
    handover: float = 120.0
    lag: float = 60.0
    doubt: float = 600.0


class Publisher:
    """Keeps the API server's slices equal to what was set last.

    Args:
        client: A connected client; its clock and random source are used.
        driver: Name of the driver.
        node_name: The node; its Node object owns the slices.
        delays: How long to wait.
        combined: Counter sets go into the slices of the devices that consume them, as Kubernetes before 1.35 needs it;
            None asks the server for its version.
        started: When the agent was started; seconds since 1970, now if None.
    """

    def __init__(
        self,
        client: Client,
        driver: str,
        node_name: str,
        *,
        delays: Delays = Delays(),
        combined: bool | None = None,
        started: float | None = None,
    ) -> None:
        self._client = client
        self._driver = driver
        self._node_name = node_name
        self._delays = delays
        self._given_combined = self._combined = combined
        moment = datetime.fromtimestamp(time.time() if started is None else started, UTC)
        self._started = moment.isoformat(timespec="milliseconds")
        self._younger: frozenset[str] = frozenset()
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._local = SliceWatch(client, driver, node_name, self._wake.set)
        self._shared = SliceWatch(client, driver, "", self._wake.set)
        self._follows_shared = False
        self._writer = SliceWriter(
            client, driver, node_name, memory_of=self._memory_of, answers=ServerAnswers(), started=self._started
        )
        self._offer: Offer | None = None
        self._asked = 0
        self._done = -1
        self._wishes: Wishes | None = None
        self._generations: dict[str, int] = {}
        self._taken: tuple[PublishError, ...] = ()
        self._failure: DrahtError | None = None
        self._failures = self._rounds = self._repairs = 0
        self._retry_at = self._doubt_at = self._repaired_at = 0.0
        self._repair_at: float | None = None

    def set(self, offer: Offer, health: Iterable[Health] = ()) -> None:
        """What is to be published from now on; returns at once, and may be called from the event loop only."""
        offer = with_health(offer, health)
        if offer == self._offer:
            return
        self._offer = offer
        self._asked += 1
        self._wishes = None
        self._retry_at = 0.0
        self._settled.clear()
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled. Never raises for what a server says."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._local.run())
            await self._local.synced()
            while True:
                if not self._follows_shared and await self._needs_shared():
                    self._follows_shared = True
                    group.create_task(self._shared.run())
                    await self._shared.synced()
                await self._pause(await self._step())

    async def settled(self) -> None:
        """Wait until what was set last is on the server, as far as the server takes it."""
        await self._settled.wait()

    @property
    def synced(self) -> bool:
        """Whether the server has what was set last, as far as it is known here and as far as the server takes it."""
        return self._done == self._asked and self._repair_at is None

    @property
    def problems(self) -> tuple[DrahtError, ...]:
        """What is wrong now; empty when all is well."""
        left_out = self._wishes.left_out if self._wishes is not None else ()
        found: list[DrahtError | None] = [*left_out, *self._taken, *self._writer.answers.problems()]
        if self._repairs >= _FIGHT and not self._is_quiet(self._client.clock()):
            found.append(self._fought())
        found += [self._failure, self._local.problem, self._shared.problem]
        return tuple({str(each): each for each in found if each is not None}.values())

    @property
    def counters(self) -> Mapping[str, int]:
        """How often: ``create``, ``update``, ``delete`` (writes that were done), ``failed``, ``repairs``."""
        names = ("create", "update", "delete", "failed", "repairs")
        return {name: self._writer.counters[name] for name in names}

    # what is there

    def _memory_of(self, spec: ResourceSliceSpec) -> SliceMemory:
        return (self._local if spec.node_name else self._shared).memory

    async def _needs_shared(self) -> bool:
        """Whether there are pools for more nodes than this one: offered now, or left by an earlier run."""
        if self._offer is not None and not all(map(is_local, self._offer.pools)):
            return True
        if self._done < 0:
            try:
                return any(map(self._owns, await self._shared.ask()))
            except KubeError as error:
                self._failure = error
        return False

    def _owns(self, each: ResourceSlice) -> bool:
        """Slices of a node belong to it; those for several nodes to the one that owns them."""
        if each.spec.node_name:
            return each.spec.node_name == self._node_name
        return any(ref.kind == "Node" and ref.name == self._node_name for ref in each.metadata.owner_references)

    def _plans(self, wanted: Mapping[str, tuple[ResourceSliceSpec, ...]]) -> list[Plan]:
        present: dict[str, list[ResourceSlice]] = {}
        for each in (*self._local.present(), *(self._shared.present() if self._follows_shared else ())):
            present.setdefault(each.spec.pool.name, []).append(each)
        younger: set[str] = set()
        plans = []
        taken: list[PublishError] = []
        for name in dict.fromkeys([*present, *wanted]):
            slices = present.get(name, [])
            own = [each for each in slices if self._owns(each)]
            younger.update(
                each.metadata.resource_version
                for each in own
                if each.metadata.annotations.get(STARTED, "") > self._started
            )
            used = max([self._generations.get(name, 0), *(each.spec.pool.generation for each in own)])
            self._generations[name] = used
            if name not in wanted:
                plans.append(remove(own))
            elif wanted[name][0].node_name is None and len(own) < len(slices):
                taken.append(
                    TakenPoolError(
                        "somebody else publishes a pool of this name for other nodes",
                        where=f"pool {name}",
                        hint="give the pool a name that only this node uses",
                    )
                )
            else:
                plans.append(plan(wanted[name], own, same=self._writer.answers.same, used=used))
        self._taken = tuple(taken)
        if younger - self._younger:
            # It is alive: the time to give way begins anew.
            self._repair_at = None
        self._younger = frozenset(younger)
        return [each for each in plans if each.stages]

    # the loop

    async def _pause(self, seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    async def _step(self) -> float | None:
        """Bring the server one plan nearer; returns the seconds until it must be called again, None for not at all."""
        now = self._client.clock()
        if self._offer is None:
            return None
        if now < self._retry_at:
            return self._retry_at - now
        try:
            return await self._advance(self._offer, self._asked, now)
        except Unfinished:
            # What was learnt makes another plan; each device and slice can be learnt about only once.
            self._wishes = None
            self._rounds = max(0, self._rounds - 1)
            return 0.0
        except (KubeError, PublishError) as error:
            return self._failed(error, now)

    async def _advance(self, offer: Offer, asked: int, now: float) -> float | None:
        await self._check_memory(now)
        plans = self._plans((await self._wish(offer)).pools)
        if not plans:
            return self._finished(asked, now)
        if self._done == asked and not self._rounds:
            wait = self._repair_wait(now)
            if wait > 0:
                return wait
            self._writer.counters["repairs"] += 1
            self._repaired_at = now
        if self._rounds >= _ROUNDS:
            raise self._fought()
        self._rounds += 1
        await self._try_counters(plans)
        for each in plans:
            await self._writer.carry_out(each)
        if self._writer.answers.counters_kept is False:
            self._wishes = None
        return 0.0

    async def _check_memory(self, now: float) -> None:
        """Ask the server about what isn't sure any more."""
        watches = [self._local, *([self._shared] if self._follows_shared else [])]
        for watch in watches:
            oldest = watch.memory.oldest()
            if self._writer.uncertain or (oldest is not None and now - oldest >= self._delays.lag):
                await watch.ask()
        self._writer.uncertain = False
        if now >= self._doubt_at:
            self._doubt_at = now + self._delays.doubt
            if await self._writer.changed_its_mind():
                self._writer.answers = ServerAnswers()
                self._wishes = None

    async def _wish(self, offer: Offer) -> Wishes:
        if self._wishes is not None:
            return self._wishes
        if self._combined is None and any(pool.counter_sets for pool in offer.pools):
            self._combined = combines_counters(await self._client.version())
        answers = self._writer.answers
        # Judging some hundred devices takes long enough to keep the kubelet waiting.
        found = await asyncio.to_thread(
            wishes, offer, answers, driver=self._driver, node_name=self._node_name, combined=bool(self._combined)
        )
        devices = [offered.device for pool in offer.pools for group in pool.groups for offered in group]
        answers.forget_all_but(found.slices, devices)
        if offer is self._offer:
            # Otherwise something else was set meanwhile, and this is the last plan for the old offer.
            self._wishes = found
        return found

    async def _try_counters(self, plans: list[Plan]) -> None:
        """Before counters are published for the first time: see whether the server keeps them."""
        answers = self._writer.answers
        if answers.counters_kept is not None:
            return
        specs = [write.spec for each in plans for write in each.writes if not isinstance(write, Delete)]
        consuming = [spec for spec in specs if any(device.consumes_counters for device in spec.devices)]
        if not consuming:
            return
        try:
            lost = await self._writer.probe(consuming[0])
        except InvalidError:
            return  # the write itself will say which device it is
        if not answers.judge_counters(consuming[0], lost):
            raise Unfinished

    def _finished(self, asked: int, now: float) -> float | None:
        self._done = asked
        self._failure = None
        self._failures = self._rounds = 0
        self._repair_at = None
        if asked == self._asked:
            self._settled.set()
        times = [self._doubt_at] if self._writer.answers.doubts() else []
        for watch in (self._local, self._shared):
            oldest = watch.memory.oldest()
            if oldest is not None:
                times.append(oldest + self._delays.lag)
        return max(0.0, min(times) - now) if times else None

    def _repair_wait(self, now: float) -> float:
        """Seconds to wait before a change by somebody else is repaired."""
        if self._repair_at is None:
            if self._is_quiet(now):
                self._repairs = 0
            self._repairs += 1
            delay = self._delays.repair.delay(self._repairs, self._client.random)
            self._repair_at = now + (max(delay, self._delays.handover) if self._younger else delay)
        return self._repair_at - now

    def _is_quiet(self, now: float) -> bool:
        """Whether the last repair is long ago."""
        return now - self._repaired_at > _QUIET * self._delays.repair.maximum

    def _fought(self) -> PublishError:
        return PublishError(
            "slices don't stay as they are written: somebody changes them again and again",
            where=f"driver {self._driver}",
            hint="look for a webhook or another program: `kubectl get resourceslices --show-managed-fields -o yaml`",
        )

    def _failed(self, error: DrahtError, now: float) -> float:
        self._failures += 1
        passing = isinstance(error, ConflictError | AlreadyExistsError) and self._failures <= _PASSING
        if not passing:
            self._failure = error
        if isinstance(error, InvalidError):
            # The layout may be of another release: a server can be replaced while this runs.
            self._combined, self._wishes = self._given_combined, None
        self._rounds = 0
        delay = self._delays.retry.delay(self._failures, self._client.random)
        if isinstance(error, StatusError) and error.retry_after is not None:
            delay = max(delay, error.retry_after)
        self._retry_at = now + delay
        return delay
