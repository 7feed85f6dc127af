"""Blocking work in threads: one at a time for a claim, never interrupted, never in the way of the process's end."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time

import pytest

from draht.node.kubelet.claim_work import ClaimWork, in_thread
from draht.node.kubelet.status_reports import StatusReports
from fake_kubelet import eventually


def test_the_same_is_done_once_and_another_thing_afterwards() -> None:
    """Two that ask for the same share the result; one that asks for something else waits for it."""

    async def main() -> None:
        work, gate, done = ClaimWork(), threading.Event(), list[str]()

        def slow(name: str) -> str:
            assert gate.wait(20)
            done.append(name)
            return name

        waiting = [
            asyncio.create_task(work.run("a", what, lambda name=name: slow(name)))  # type: ignore[misc]
            for what, name in [("prepare", "first"), ("prepare", "never"), ("unprepare", "second")]
        ]
        await asyncio.sleep(0.05)
        assert len(work) == 1
        gate.set()
        assert await asyncio.gather(*waiting) == ["first", "first", "second"]
        assert done == ["first", "second"]
        assert len(work) == 0

    asyncio.run(main())


def test_more_work_than_threads_waits() -> None:
    """The bound holds however many ask, and everything is done in the end."""

    async def main() -> None:
        work, lock = ClaimWork(threads=3), threading.Lock()
        now = most = 0

        def count() -> None:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.01)
            with lock:
                now -= 1

        await asyncio.gather(*(work.run(str(number), "x", count) for number in range(20)))
        assert 1 <= most <= 3

    asyncio.run(main())


@pytest.mark.parametrize("error", [KeyError("a"), StopIteration(), SystemExit(3), asyncio.CancelledError()])
def test_whatever_is_raised_in_a_thread_arrives(error: BaseException) -> None:
    """Also what Python treats specially: nothing is lost, and nobody waits for ever."""

    def failing() -> None:
        raise error

    async def main() -> None:
        async with asyncio.timeout(20):
            await in_thread(failing)

    expected = RuntimeError if isinstance(error, StopIteration) else type(error)
    with pytest.raises(expected):
        asyncio.run(main())


def test_work_that_fails_when_nobody_waits_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The call that asked for it is gone; its failure isn't lost."""

    async def main() -> None:
        work, gate = ClaimWork(), threading.Event()

        def failing() -> None:
            assert gate.wait(20)
            raise KeyError("minor")

        call = asyncio.create_task(work.run("a", "prepare", failing))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        gate.set()
        await eventually(lambda: len(work) == 0)

    with caplog.at_level(logging.WARNING, "draht.node"):
        asyncio.run(main())
    (record,) = caplog.records
    assert record.getMessage() == "work on a claim failed after its call had ended: 'minor'"
    assert record.__dict__["claim_uid"] == "a"


def test_a_call_that_never_returns_doesnt_keep_the_process() -> None:
    """Closing gives up after its patience, and the interpreter ends although the thread still hangs."""
    program = """
import asyncio, threading
from draht.node.kubelet.claim_work import ClaimWork

async def main():
    work = ClaimWork()
    call = asyncio.create_task(work.run("a", "prepare", threading.Event().wait))
    await asyncio.sleep(0.05)
    await work.close(0.05)
    await asyncio.gather(call, return_exceptions=True)
    print("closed")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "closed\n", "")


def test_a_newer_report_replaces_an_older_one() -> None:
    """Only the last word about a claim is written, and tried until it arrives."""

    async def main() -> None:
        written: list[str] = []
        failures = 2

        async def write(text: str) -> None:
            nonlocal failures
            if failures:
                failures -= 1
                raise OSError("no connection")
            written.append(text)

        reports: StatusReports[str] = StatusReports(write, delays=(0.02,))
        reports.put("a", "old")
        await eventually(lambda: failures == 1)
        assert reports.problems == {"a": "no connection"}
        reports.put("a", "new")
        await eventually(lambda: bool(written))
        await asyncio.sleep(0.05)
        assert written == ["new"]
        assert reports.problems == {}
        await reports.close()

    asyncio.run(main())
