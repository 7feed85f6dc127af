from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from draht.driver.errors import StateError
from draht.host.errors import NotFreeError
from running import Workplace, until, wait_for


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    engine = place.engine()
    for container in engine.containers():
        engine.remove(container.id)


def gate(place: Workplace, name: str) -> list[str]:
    """A command that notes its start in the file `order` and runs until the file of that name exists."""
    script = f'echo {name} >> "{place.root}/order"; while [ ! -e "{place.root}/{name}" ]; do sleep 0.02; done'
    return ["sh", "-c", script]


def order(place: Workplace) -> list[str]:
    """The names of the commands that have started, in their order."""
    path = place.root / "order"
    return path.read_text().split() if path.exists() else []


def test_waiters_are_served_in_their_order(place: Workplace) -> None:
    """A large request at the head isn't passed by the small ones behind it, and all are served."""
    first = place.fork(place.order(gate(place, "first"), number=4))
    second = place.fork(place.order(gate(place, "second"), number=4))
    until(lambda: sorted(order(place)) == ["first", "second"])
    pids = []
    for number, name in ((8, "large"), (1, "small"), (1, "tiny")):
        pids.append(place.fork(place.order(gate(place, name), number=number, wait=60)))
        until(lambda: len(place.tickets()) == len(pids))
    with pytest.raises(NotFreeError):
        place.run(number=1)
    (place.root / "first").touch()
    assert wait_for(first) == 0
    # Four are free and the small ones would fit, but the large one is before them; who doesn't wait is told so.
    with pytest.raises(NotFreeError, match=r"free devices are for ticket \d+ of"):
        place.run(number=1)
    time.sleep(1.5)
    assert sorted(order(place)) == ["first", "second"]
    (place.root / "second").touch()
    until(lambda: "large" in order(place))
    assert order(place)[2:] == ["large"]
    for name in ("large", "small", "tiny"):
        (place.root / name).touch()
    assert [wait_for(pid) for pid in (second, *pids)] == [0, 0, 0, 0]
    assert sorted(order(place)[3:]) == ["small", "tiny"]
    place.consistent()


def test_a_free_device_is_not_kept_for_those_who_want_others(place: Workplace) -> None:
    """Waiting for certain devices blocks nobody who wants different ones."""
    holder = place.fork(place.order(gate(place, "holder"), number=0, names=["GPU-0"]))
    until(lambda: order(place) == ["holder"])
    waiter = place.fork(place.order(["true"], number=0, names=["GPU-0"], wait=60))
    until(lambda: len(place.tickets()) == 1)
    assert place.run(number=0, names=["GPU-1"]).status == 0
    assert place.run(number=7).status == 0
    (place.root / "holder").touch()
    assert (wait_for(holder), wait_for(waiter)) == (0, 0)
    place.consistent()


def test_giving_up(place: Workplace) -> None:
    """After the time is over the answer is the same as without waiting, with who has what; the ticket is gone."""
    place.run(["sleep", "60"], number=8, detach=True)
    with pytest.raises(NotFreeError, match=r"taken after 0\.2 s: 1 wanted, 0 of 8 free; .* held by"):
        place.run(number=1, wait=0.2)
    assert "waiting as ticket 1, first in line for at most 0.2 s" in place.said[-1]
    assert place.tickets() == []
    assert [entry.detail for entry in place.audit() if entry.event == "withdrawn"] == ["ticket 1: it gave up"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_dead_waiters_hold_up_nobody(place: Workplace, number: signal.Signals) -> None:
    """A waiter that is killed loses its place, whether it can say so or not."""
    place.run(["sleep", "60"], number=8, detach=True)
    dead = place.fork(place.order(number=8, wait=60))
    until(lambda: len(place.tickets()) == 1)
    waiter = place.fork(place.order(number=1, wait=60))
    until(lambda: len(place.tickets()) == 2)
    os.kill(dead, number)
    wait_for(dead)
    place.engine().remove(place.engine().containers()[0].id)
    assert wait_for(waiter) == 0
    assert place.tickets() == []
    withdrawn = [entry.detail for entry in place.audit() if entry.event == "withdrawn"]
    assert any(detail.startswith("ticket 1: ") for detail in withdrawn)
    place.consistent()


def test_a_stopped_waiter_keeps_its_place_but_lets_others_pass(place: Workplace) -> None:
    """Ctrl-Z on a waiter must not stop the machine; when it goes on, it is served."""
    place.run(["sleep", "60"], number=8, detach=True)
    stopped = place.fork(place.order(number=8, wait=60))
    until(lambda: len(place.tickets()) == 1)
    os.kill(stopped, signal.SIGSTOP)
    os.waitid(os.P_PID, stopped, os.WSTOPPED | os.WNOWAIT)
    place.engine().remove(place.engine().containers()[0].id)
    assert place.run(number=8).status == 0
    assert len(place.tickets()) == 1
    os.kill(stopped, signal.SIGCONT)
    assert wait_for(stopped) == 0
    place.consistent()


@pytest.mark.parametrize("how", ["gone", "garbage"])
def test_waiting_survives_the_loss_of_the_database(place: Workplace, how: str) -> None:
    """Everybody queues again, running containers keep their GPUs, and all are served in the end."""
    place.run(gate(place, "holder"), number=8, detach=True)
    until(lambda: order(place) == ["holder"])
    before, log = place.holds(), place.root / "failures"
    waiters = [place.fork(place.order(number=8, wait=60), log=log) for _ in range(2)]
    until(lambda: len(place.tickets()) == 2)
    for path in (place.root / "state").glob("state.db*"):
        path.unlink()
    if how == "garbage":
        place.database.path.write_bytes(b"garbage" * 1000)

    def queued_again() -> bool:
        with suppress(StateError):
            return len(place.tickets()) == 2 and bool(place.reconcile()) and bool(place.holds())
        return False

    until(queued_again)
    assert [one.devices for one in place.holds()] == [held.devices for held in before]
    (place.root / "holder").touch()
    assert [wait_for(pid) for pid in waiters] == [0, 0], log.read_text()
    place.consistent()


def test_the_first_waiter_notices_a_container_that_ended_unwatched(place: Workplace) -> None:
    """Nobody watches a detached container; while somebody waits, its end is found without another command."""
    place.run(gate(place, "holder"), number=8, detach=True)
    until(lambda: order(place) == ["holder"])
    waiters = [place.fork(place.order(number=8, wait=60)) for _ in range(3)]
    until(lambda: len(place.tickets()) == 3)
    (place.root / "holder").touch()
    assert [wait_for(pid) for pid in waiters] == [0, 0, 0]
    place.consistent()
