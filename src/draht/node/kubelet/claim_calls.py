"""What the kubelet asks for claims: read each one, have it prepared or undone, and answer for every one in time.

Owns the way of one call, apart from gRPC: references are looked up, claims run beside each other, what isn't ready at
the deadline is answered as such and goes on. Why an answer before the kubelet's own deadline: otherwise the kubelet
throws away the answers of all claims of the call because of one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from draht.api.errors import DrahtError
from draht.api.resource import ResourceClaim
from draht.node.errors import ClaimGoneError, ClaimReplacedError
from draht.node.kubelet.claim_work import ClaimWork
from draht.node.kubelet.observation import Observer

__all__ = ["ClaimCalls", "ClaimReference", "Failure", "Fetch", "PreparedClaim", "PreparedDevice", "Preparer"]

LONGEST_TEXT: Final = 2048
"""Characters of an error; it becomes a pod's event, whose message ends there anyway."""

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class PreparedDevice(Protocol):
    """One device of a prepared claim, as `draht.driver.claims.preparation` describes it."""

    @property
    def requests(self) -> Sequence[str]:
        """Requests it was given for; empty means all."""
        ...

    @property
    def pool(self) -> str:
        """Name of its pool, the node's own written out."""
        ...

    @property
    def device(self) -> str:
        """Its name in the pool."""
        ...

    @property
    def cdi_device_ids(self) -> Sequence[str]:
        """Fully qualified names for the container engine."""
        ...

    @property
    def share_id(self) -> str | None:
        """The share of the device, if it is shared by capacity."""
        ...


class PreparedClaim(Protocol):
    """What came of a preparation."""

    @property
    def uid(self) -> str:
        """UID of the claim."""
        ...

    @property
    def devices(self) -> Sequence[PreparedDevice]:
        """Its devices of this driver."""
        ...


_Claim = TypeVar("_Claim", bound=PreparedClaim)
_Claim_co = TypeVar("_Claim_co", bound=PreparedClaim, covariant=True)


class Preparer(Protocol[_Claim_co]):
    """Who prepares claims: blocking, idempotent, callable from several threads."""

    def prepare(self, claim: ResourceClaim) -> _Claim_co:
        """Prepare the devices of a claim.

        Raises:
            DrahtError: Says what the pod's events shall say.
        """
        ...

    def unprepare(self, uid: str) -> None:
        """Undo it, from what is stored only; a UID that isn't known is a success."""
        ...


Fetch = Callable[[str, str], Awaitable[ResourceClaim | None]]
"""(namespace, name) → the claim as the API server has it now, or None where it has none."""


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """A claim as the kubelet names it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a claim isn't prepared or undone: the text for the pod's events."""

    text: str


@dataclass(slots=True)
class _Call:
    """One claim of one call, for the log."""

    reference: ClaimReference
    extra: dict[str, object]
    waits_for: str = ""


class ClaimCalls(Generic[_Claim]):
    """Prepares and unprepares claims of one driver.

    Args:
        driver: Name of the driver.
        preparer: Who does it.
        fetch: Reads a claim.
        work: Where blocking calls run.
        observer: Who counts.
    """

    def __init__(
        self, driver: str, preparer: Preparer[_Claim], fetch: Fetch, *, work: ClaimWork, observer: Observer
    ) -> None:
        self._driver = driver
        self._preparer = preparer
        self._fetch = fetch
        self._work = work
        self._observer = observer
        self._numbers = itertools.count(1)
        self._late: set[asyncio.Task[Any]] = set()

    async def prepare(self, claims: Iterable[ClaimReference], budget: float) -> dict[str, _Claim | Failure]:
        """UID → what came of it, for every claim, within ``budget`` seconds."""
        return await self._each("prepare", claims, budget, self._prepare)

    async def unprepare(self, claims: Iterable[ClaimReference], budget: float) -> dict[str, Failure | None]:
        """UID → None or why not, for every claim, within ``budget`` seconds."""
        return await self._each("unprepare", claims, budget, self._unprepare)

    async def close(self) -> None:
        """Give up what waits for the API server."""
        for task in self._late:
            task.cancel()
        if self._late:
            await asyncio.wait(self._late, timeout=1.0)

    async def _prepare(self, call: _Call) -> _Claim:
        reference = call.reference
        call.waits_for = "the API server hasn't answered with it"
        claim = await self._fetch(reference.namespace, reference.name)
        if claim is None:
            raise ClaimGoneError("the claim doesn't exist any more", where=str(reference))
        if claim.metadata.uid != reference.uid:
            raise ClaimReplacedError(
                f"the claim was deleted and made again: the pod was given {reference.uid}, "
                f"the API server has {claim.metadata.uid}",
                where=str(reference),
                hint="delete the pod",
            )
        call.extra["pods"] = [consumer.name for consumer in claim.status.reserved_for if consumer.resource == "pods"]
        call.waits_for = "its devices are still being prepared"
        what = ("prepare", claim.status.allocation)
        return await self._work.run(reference.uid, what, lambda: self._preparer.prepare(claim))

    async def _unprepare(self, call: _Call) -> None:
        call.waits_for = "its devices are still being freed"
        uid = call.reference.uid
        await self._work.run(uid, "unprepare", lambda: self._preparer.unprepare(uid))

    async def _each(
        self,
        operation: str,
        claims: Iterable[ClaimReference],
        budget: float,
        do: Callable[[_Call], Coroutine[Any, Any, _Result]],
    ) -> dict[str, _Result | Failure]:
        extra = {"driver": self._driver, "operation": operation, "request_id": next(self._numbers)}
        calls = {
            claim.uid: _Call(claim, {**extra, "claim_uid": claim.uid, "claim": f"{claim.namespace}/{claim.name}"})
            for claim in claims
        }
        tasks = {
            uid: asyncio.create_task(self._answered(operation, call, do), name=f"{operation} {uid}")
            for uid, call in calls.items()
        }
        try:
            if tasks:
                await asyncio.wait(tasks.values(), timeout=budget)
        finally:
            # Neither those that are late nor, if the kubelet has hung up, the others are waited for: a fetch that can't
            # be cancelled would take the answer of all.
            for task in tasks.values():
                if not task.done():
                    task.cancel()
                    self._late.add(task)
                    task.add_done_callback(self._late.discard)
        answers: dict[str, _Result | Failure] = {}
        for uid, task in tasks.items():
            if task.done() and not task.cancelled():
                answers[uid] = task.result()
            else:
                call = calls[uid]
                answers[uid] = Failure(
                    f"{call.reference}: {call.waits_for} after {budget:.0f} s; it is asked for again"
                )
        return answers

    async def _answered(
        self, operation: str, call: _Call, do: Callable[[_Call], Coroutine[Any, Any, _Result]]
    ) -> _Result | Failure:
        """What came of one claim; never an exception, whatever a driver raises."""
        began = time.monotonic()
        failed = "CancelledError"
        extra = call.extra
        try:
            with self._observer.under_way(self._driver, operation):
                result = await do(call)
            failed = ""
        except DrahtError as error:
            failed = type(error).__name__
            _log.warning("%s: %s", operation, error, extra=extra)
            return Failure(_text(error))
        except Exception as error:  # noqa: BLE001 - one claim's bug doesn't cost the others their answers
            failed = type(error).__name__
            _log.exception("%s failed unexpectedly", operation, extra=extra)
            return Failure(_cut(f"{call.reference}: {failed}: {error} (unexpected; see the log of draht node)"))
        finally:
            seconds = time.monotonic() - began
            extra["seconds"] = round(seconds, 6)
            self._observer.observe(self._driver, operation, seconds, failed)
            if failed == "CancelledError":
                _log.warning("%s: not waited for any longer: %s", operation, call.waits_for, extra=extra)
        _log.info("%sd", operation, extra=extra)
        return result


def _text(error: DrahtError) -> str:
    return _cut(f"{error}; {error.hint}" if error.hint else str(error))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
