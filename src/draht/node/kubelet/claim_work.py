"""Blocking work on claims, in threads: one at a time for a claim, all claims beside each other.

Owns who works on which claim in this process. Why not a thread pool: work that hangs in a driver must not keep other
claims waiting behind it, nor the process from ending; so every call has a thread of its own, and the bound is high.
Work is never interrupted: when the call that asked for it is gone, it goes on, and whoever asks for the same again gets
its result. Between processes, `draht.driver.claims.preparation` keeps order.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

__all__ = ["ClaimWork", "in_thread"]

THREADS: Final = 128
"""Calls at once; more wait. The kubelet runs 110 pods on a node by default."""

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


@dataclass(slots=True)
class _Running:
    """Work on one claim.

    Attributes:
        what: Equal values ask for the same.
        task: The work itself.
        waiting: How many calls wait for it.
    """

    what: object
    task: asyncio.Task[Any]
    waiting: int = 0


class ClaimWork:
    """What is under way, by the claim's UID. Used from one event loop.

    Args:
        threads: How many calls run at once.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self._slots = asyncio.Semaphore(threads)
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        """How many claims are worked on."""
        return len(self._running)

    async def run(self, uid: str, what: object, call: Callable[[], _Result]) -> _Result:
        """Do something for a claim, after what is under way for it; the same thing isn't done twice at once.

        Cancelling this doesn't end the work.

        Args:
            uid: UID of the claim.
            what: What is done. If work with an equal value is under way, its result is the answer.
            call: Blocking; runs in a thread.
        """
        while (running := self._running.get(uid)) is not None and running.what != what:
            await asyncio.wait({running.task})
        if running is None:
            running = _Running(what, asyncio.create_task(self._work(call), name=f"claim {uid}"))
            self._running[uid] = running
            running.task.add_done_callback(lambda task: self._ended(uid, task))
        running.waiting += 1
        try:
            return await asyncio.shield(running.task)
        finally:
            running.waiting -= 1

    async def _work(self, call: Callable[[], _Result]) -> _Result:
        async with self._slots:
            return await in_thread(call)

    def _ended(self, uid: str, task: asyncio.Task[Any]) -> None:
        running = self._running.pop(uid)
        if not task.cancelled() and (error := task.exception()) is not None and not running.waiting:
            _log.warning("work on a claim failed after its call had ended: %s", error, extra={"claim_uid": uid})

    async def close(self, patience: float) -> None:
        """Wait for work that is under way, at most ``patience`` seconds; what takes longer is left to its thread."""
        tasks = [running.task for running in self._running.values()]
        if tasks:
            _, hanging = await asyncio.wait(tasks, timeout=patience)
            for task in hanging:
                task.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)


async def in_thread(call: Callable[[], _Result]) -> _Result:
    """Run a blocking call in a thread of its own, which keeps running when the waiting is cancelled.

    The thread is a daemon: a call that never returns doesn't keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[_Result | None, BaseException | None]] = loop.create_future()

    def deliver(result: _Result | None, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - it is raised again where the result is awaited
            error = raised
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:
            _log.debug("the event loop ended before a call did")

    threading.Thread(target=run, name="draht-claim", daemon=True).start()
    result, error = await done
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # without an error there is a result
