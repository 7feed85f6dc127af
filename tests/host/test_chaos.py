"""Fifty runs at once, and a hand that kills at random.

The invariant is checked by the kernel: each container takes a file lock per device for as long as one of its processes
lives, so two containers with one device can't go unseen.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Workplace, wait_for

RUNS = 50


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    (tmp_path / "locks").mkdir()
    yield place
    engine = place.engine()
    for container in engine.containers():
        engine.remove(container.id)


def worker(place: Workplace, seconds: float) -> list[str]:
    """Take the lock of each device that the environment names, or report; then work for a while."""
    script = f"""
        cd '{place.root}/locks'
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


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.fuzz) for seed in range(2, 12))])
def test_no_device_is_ever_held_twice(place: Workplace, seed: int) -> None:
    """Whatever is killed and when: never two containers with one device, and at the end nothing is lost or left."""
    chance = random.Random(seed)
    children: dict[int, str] = {}
    for _ in range(RUNS):
        order = place.order(
            worker(place, chance.choice([0, 0.1, 0.3])),
            number=chance.choice([1, 1, 1, 2, 3, 8]),
            detach=chance.random() < 0.3,
            wait=chance.choice([0, 60, 60, 60, 60]),
        )
        children[place.fork(order, log=place.root / "failures")] = "running"
    end = time.monotonic() + 90
    killed = 0
    while children:
        assert time.monotonic() < end, f"seed {seed}: {len(children)} runs never ended"
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid in children:
            del children[pid]
            assert os.waitstatus_to_exitcode(status) in (0, 125, 137, -signal.SIGKILL), f"seed {seed}"
            continue
        time.sleep(chance.uniform(0, 0.05))
        if killed < RUNS // 3 and children:
            if chance.random() < 0.6:
                os.kill(chance.choice(sorted(children)), signal.SIGKILL)
            else:
                running = [container.pid for container in place.engine().containers() if container.pid]
                if running:
                    try:
                        os.killpg(chance.choice(running), signal.SIGKILL)
                    except ProcessLookupError:
                        continue
            killed += 1
    assert wait_for(place.fork(place.order(number=8, wait=60))) == 0, f"seed {seed}: a device is lost"
    place.reconcile()
    place.consistent()
    assert place.holds() == []
    assert not (place.root / "locks/violations").exists(), (place.root / "locks/violations").read_text()
    started = [line.split() for line in (place.root / "locks/started").read_text().splitlines()]
    assert len(started) >= RUNS // 3, f"seed {seed}: too little has run to prove anything"
    told = {entry.hold: entry.detail for entry in place.audit() if entry.event == "held"}
    for hold, devices in started:
        for device in devices.split(","):
            assert device.replace("GPU-", "GPU ") in told[hold], f"seed {seed}"
    failures = (place.root / "failures").read_text().splitlines() if (place.root / "failures").exists() else []
    allowed = ("NotFreeError: ", "NoSuchContainerError: ", "HoldLostError: ")
    assert [line for line in failures if not line.startswith(allowed)] == [], f"seed {seed}"
