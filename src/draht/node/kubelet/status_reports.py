"""Reports to claims' status: sent once a claim is prepared, and again until they arrive.

Owns the trying again. A pod starts whether or not its claim's status can be written, so nothing here ever reaches the
kubelet; what doesn't arrive is listed in `StatusReports.problems`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

__all__ = ["DELAYS", "StatusReports"]

DELAYS: Final = (1.0, 5.0, 30.0, 120.0, 300.0)
"""Seconds before the next try; the last one counts for all later ones."""
AT_ONCE: Final = 4
"""Reports that are written side by side."""

_log = logging.getLogger(__name__)
_Claim = TypeVar("_Claim")


class StatusReports(Generic[_Claim]):
    """Reports that are under way, at most one per claim: a newer one replaces an older one.

    Args:
        write: Writes one; raises if it doesn't arrive.
        delays: Seconds before the second, third, … try.
    """

    def __init__(self, write: Callable[[_Claim], Awaitable[None]], *, delays: Sequence[float] = DELAYS) -> None:
        self._write = write
        self._delays = tuple(delays)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> dict[str, str]:
        """UID → why the last try to report this claim failed."""
        return dict(self._problems)

    def put(self, uid: str, claim: _Claim) -> None:
        """Report a claim, in the background."""
        self.drop(uid)
        task = asyncio.create_task(self._deliver(uid, claim), name=f"report {uid}")
        self._tasks[uid] = task
        task.add_done_callback(lambda done: self._ended(uid, done))

    def drop(self, uid: str) -> None:
        """Forget a claim: it isn't prepared any more."""
        if (task := self._tasks.pop(uid, None)) is not None:
            task.cancel()
        self._problems.pop(uid, None)

    async def close(self) -> None:
        """Stop trying."""
        tasks = list(self._tasks.values())
        for uid in list(self._tasks):
            self.drop(uid)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(uid) is task:
            del self._tasks[uid]

    async def _deliver(self, uid: str, claim: _Claim) -> None:
        tries = 0
        while True:
            try:
                async with self._slots:
                    await self._write(claim)
            except Exception as error:  # noqa: BLE001 - whatever it is, the report is tried again
                self._problems[uid] = str(error) or type(error).__name__
                _log.warning("a claim's status can't be written: %s", error, extra={"claim_uid": uid})
            else:
                self._problems.pop(uid, None)
                return
            await asyncio.sleep(self._delays[min(tries, len(self._delays) - 1)])
            tries += 1
