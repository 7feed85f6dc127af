"""Many runs at once, and a hand that kills at random; whether a device was ever in two containers, the kernel says.

Each container takes a file lock per device and keeps it as long as one of its processes lives, so two containers with
one device can't go unseen, however short they overlap.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path

from running import Workplace, wait_for

__all__ = ["chaos", "worker"]

EXPECTED = (
    "NotFreeError: ",
    "NoSuchContainerError: ",
    "HoldLostError: ",
    "EngineError: runc can't start the container",
)
"""Errors that a run may end with when others, or the hand, end its container or have the devices."""


def worker(locks: str, seconds: float) -> list[str]:
    """Take the lock of each device that the environment names, or report; then work for a while."""
    script = f"""
        cd '{locks}'
        set -- 3 4 5 6 7 8 9 0
        for device in $(echo "$DRAHT_DEVICES" | tr , ' '); do
            eval "exec $1>>$device"
            flock -n $1 || echo "$DRAHT_HOLD found $device in use" >> violations
            shift
        done
        echo "$DRAHT_HOLD $DRAHT_DEVICES" >> started
        sleep {seconds}
    """
    return ["sh", "-c", script]


def chaos(place: Workplace, seed: int, *, runs: int, locks: Path, seen_as: str, bound: float, losses: int = 0) -> None:
    """Start runs, kill a third of them or their containers, and check that nothing is lost, left or held twice.

    Args:
        place: The host.
        seed: Reproduces the choices, though not the timing.
        runs: How many.
        locks: Directory of the lock files.
        seen_as: Its path inside the containers.
        bound: Seconds after which the test gives up.
        losses: How often the database is destroyed meanwhile; its trail can't explain everything then.
    """
    chance = random.Random(seed)
    failures = place.root / "failures"
    children: set[int] = set()
    for _ in range(runs):
        order = place.order(
            worker(seen_as, chance.choice([0, 0.1, 0.3])),
            number=chance.choice([1, 1, 1, 2, 3, 8]),
            detach=chance.random() < 0.3,
            wait=chance.choice([0, bound, bound, bound, bound]),
        )
        children.add(place.fork(order, log=failures))
    end = time.monotonic() + bound
    left = losses
    killed = 0
    while children:
        assert time.monotonic() < end, f"seed {seed}: {len(children)} runs never ended"
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in children:
            children.discard(pid)
            assert os.waitstatus_to_exitcode(status) in (0, 125, 137, -signal.SIGKILL), f"seed {seed}"
            continue
        time.sleep(chance.uniform(0, 0.05))
        if len(children) < runs * left // (losses + 1):
            left -= 1
            _destroy(place, chance)
        # Not faster than the machine: where everything is slow, the hand would kill all before anything has run.
        if killed >= runs // 3 or not children or killed > _lines(locks / "started"):
            continue
        if chance.random() < 0.6:
            os.kill(chance.choice(sorted(children)), signal.SIGKILL)
            killed += 1
        elif running := [one.pid for one in place.containers() if one.pid and one.state == "running"]:
            with contextlib.suppress(ProcessLookupError):
                place.kill(chance.choice(running))
                killed += 1
    assert wait_for(place.fork(place.order(number=8, wait=bound), log=failures)) == 0, f"seed {seed}: a device is lost"
    place.reconcile()
    place.consistent(explained=not losses)
    assert place.holds() == []
    assert not left, f"seed {seed}: the database was destroyed {losses - left} times only"
    assert not (locks / "violations").exists(), (locks / "violations").read_text()
    started = [line.split() for line in (locks / "started").read_text().splitlines()]
    assert len(started) >= runs // 4, f"seed {seed}: too little has run to prove anything"
    if losses:
        return
    told = {entry.hold: entry.detail for entry in place.audit() if entry.event == "held"}
    for hold, devices in started:
        for device in devices.split(","):
            assert device.replace("GPU-", "GPU ") in told[hold], f"seed {seed}"
    ended = failures.read_text().splitlines() if failures.exists() else []
    surprises = [line for line in ended if not line.startswith(EXPECTED)]
    assert not surprises, f"seed {seed}: {surprises}"


def _lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def _destroy(place: Workplace, chance: random.Random) -> None:
    """Delete the database, or write garbage over it, while others use it."""
    path = place.database.path
    if chance.random() < 0.5:
        for one in path.parent.glob("state.db*"):
            one.unlink(missing_ok=True)
    elif path.exists():
        with path.open("r+b") as file:
            file.write(chance.randbytes(8192))
