"""kill -9 at every step of everything, and a reboot: nothing is lost, nothing is left, and the next call works.

Each case forks a process that kills itself at one step (`claim_crashes`); a new preparer then recovers.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from claim_crashes import Action, CrashNode
from draht.driver.claims.preparation import PreparedClaim, Preparer
from draht.driver.errors import DeviceInUseError
from draht.driver.framework import ClaimDevices
from toy_driver import ToyDriver, claim

PREPARE = [
    "recorded",
    "driver-prepare",
    "effects-done",
    "files-written",
    "metadata-written",
    "spec-written",
    "prepared",
]
UNDO = ["spec-removed", "driver-unprepare", "effects-undone", "metadata-removed", "freed"]


def prepare(place: Preparer, _driver: ToyDriver) -> PreparedClaim:
    """Prepare the claim of the test."""
    return place.prepare(claim("u1", "toy-0", "toy-1"))


def unprepare(place: Preparer, _driver: ToyDriver) -> None:
    """Unprepare it."""
    place.unprepare("u1")


def recover(place: Preparer, _driver: ToyDriver) -> object:
    """Recover."""
    return place.recover()


def fail(place: Preparer, driver: ToyDriver) -> None:
    """Prepare it with a driver that fails, which rolls it back."""
    step = driver.hook

    def hook(what: str, given: ClaimDevices) -> None:
        step(what, given)
        if what == "prepare":
            raise ValueError("no")

    driver.hook = hook
    with pytest.raises(Exception, match="ValueError: no"):
        place.prepare(claim("u1", "toy-0", "toy-1"))


def nothing(_node: CrashNode) -> None:
    """The claim is unknown."""


def prepared(node: CrashNode) -> None:
    """It is prepared."""
    prepare(*node.start())


def rebooted(node: CrashNode) -> None:
    """It was prepared before a reboot."""
    prepare(*node.start())
    node.reboot()


def half_done(node: CrashNode) -> None:
    """It was killed in the middle of a preparation."""
    node.kill_at(4, prepare)


def half_undone(node: CrashNode) -> None:
    """It was killed in the middle of its end."""
    prepare(*node.start())
    node.kill_at(2, unprepare)


def without_database(node: CrashNode) -> None:
    """It is prepared, and the database is gone."""
    prepare(*node.start())
    for path in (node.root / "state").glob("state.db*"):
        path.unlink()


def with_left_overs(node: CrashNode) -> None:
    """There are files of a claim that nobody knows."""
    (node.root / "metadata/toy.example.com/stray").mkdir(parents=True)
    (node.root / "metadata/toy.example.com/stray/toys.json").write_text("{}")


SCENARIOS: dict[str, tuple[Callable[[CrashNode], None], Action, list[str]]] = {
    "prepare": (nothing, prepare, PREPARE),
    "prepare that fails": (nothing, fail, ["recorded", "driver-prepare", *UNDO]),
    "prepare after a kill": (half_done, prepare, [*UNDO, *PREPARE]),
    "prepare after a killed end": (half_undone, prepare, [*UNDO, *PREPARE]),
    "prepare after a reboot": (rebooted, prepare, PREPARE[1:]),
    "prepare without the database": (without_database, prepare, ["adopted", *PREPARE[1:]]),
    "unprepare": (prepared, unprepare, ["unpreparing", *UNDO]),
    "unprepare after a reboot": (rebooted, unprepare, ["unpreparing", *UNDO]),
    "unprepare without the database": (without_database, unprepare, ["adopted", "unpreparing", *UNDO]),
    "recover after a kill": (half_done, recover, UNDO),
    "recover after a reboot": (rebooted, recover, PREPARE[1:] * 2),
    "recover without the database": (without_database, recover, ["adopted", *PREPARE[1:] * 2]),
    "recover with left-overs": (with_left_overs, recover, ["swept"]),
}
"""What is there before (beside a claim of somebody else) → what is done → its steps."""

CASES = [
    pytest.param(name, number, reboot, id=f"{name}, killed at {step} ({number}){', reboot' if reboot else ''}")
    for name, (_, _, steps) in SCENARIOS.items()
    for number, step in enumerate(steps)
    for reboot in (False, True)
]


@pytest.fixture(autouse=True)
def tmp_path() -> Iterator[Path]:
    """A directory in memory: what a killed process wrote survives there as on a disk, and a sync costs nothing."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def clean() -> Iterator[tuple[PreparedClaim, PreparedClaim]]:
    """What is answered for the claim of the test, and for the one beside it, when nothing is killed."""
    with tempfile.TemporaryDirectory() as directory:
        node = CrashNode(Path(directory))
        yield prepare(*node.start()), beside(node)


def beside(node: CrashNode) -> PreparedClaim:
    """Somebody else's claim, prepared."""
    place, _ = node.start()
    return place.prepare(claim("other", "toy-7"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_table_has_every_step(tmp_path: Path, name: str) -> None:
    """A step that is added has to be added to the table, and so is killed at."""
    before, action, steps = SCENARIOS[name]
    node = CrashNode(tmp_path)
    beside(node)
    before(node)
    assert node.steps_of(action) == steps


@pytest.mark.parametrize(("name", "number", "reboot"), CASES)
def test_killed_at_any_step_everything_comes_right(
    tmp_path: Path, clean: tuple[PreparedClaim, PreparedClaim], name: str, number: int, reboot: bool
) -> None:
    """After recovery the claim is prepared whole or not there at all, and everything works as ever."""
    before, action, _ = SCENARIOS[name]
    expected, untouched = clean
    node = CrashNode(tmp_path)
    assert beside(node) == untouched
    before(node)
    node.kill_at(number, action)
    if reboot:
        node.reboot()
    place, driver = node.start()
    found = place.recover()
    assert found.problems == ()
    known = {one.uid for one in place.prepared()}
    assert known in ({"other"}, {"other", "u1"})
    node.consistent(known)
    assert [one for one in place.prepared() if one.uid == "other"] == [untouched]
    assert place.recover().kept == tuple(sorted(known))
    assert place.prepare(claim("u1", "toy-0", "toy-1")) == expected
    node.consistent({"other", "u1"})
    calls = list(driver.calls)
    assert place.prepare(claim("u1", "toy-0", "toy-1")) == expected
    assert driver.calls == calls
    place.unprepare("u1")
    node.consistent({"other"})
    place.prepare(claim("u2", "toy-0"))


@pytest.mark.parametrize("number", range(len(PREPARE)))
def test_without_recovery_the_next_call_comes_right(
    tmp_path: Path, clean: tuple[PreparedClaim, PreparedClaim], number: int
) -> None:
    """Even an agent that forgets to recover leads the claim to the same answer, and to its end."""
    node = CrashNode(tmp_path)
    for action in (prepare, unprepare):
        node.kill_at(number, prepare)
        place, driver = node.start()
        if action is prepare:
            assert prepare(place, driver) == clean[0]
            node.consistent({"u1"})
        place.unprepare("u1")
        node.consistent(set())


def test_after_a_reboot_everything_is_made_again(tmp_path: Path) -> None:
    """Specs, metadata and the driver's effects are there before a container asks, and the answer is the same."""
    node = CrashNode(tmp_path)
    place, _ = node.start()
    answers = [place.prepare(claim(f"u{number}", f"toy-{number}")) for number in range(8)]
    node.reboot()
    place, driver = node.start()
    found = place.recover()
    assert found.restored == tuple(f"u{number}" for number in range(8))
    assert place.prepared() == answers
    assert [uid for what, uid in driver.calls if what == "prepare"] == list(found.restored)
    node.consistent(set(found.restored))


def test_a_device_that_is_gone_after_a_reboot_holds_up_nobody(tmp_path: Path) -> None:
    """The other claims are recovered; the status says that it isn't ready, until it is back and its time then moves."""
    node = CrashNode(tmp_path)
    place, _ = node.start()
    first = place.prepare(claim("u0", "toy-0"))
    place.prepare(claim("u1", "toy-1"))
    node.reboot()
    place, driver = node.start()
    place.database.clock = lambda: 2000.0
    driver.devices.remove("toy-0")
    found = place.recover()
    assert found.restored == ("u1",)
    assert found.problems == (
        "claim default/claim-u0: default/claim-u0: device toy-0 of pool node-1 isn't there any more",
    )
    (condition,) = place.prepared()[0].status[0].conditions
    assert (condition.status, condition.reason) == ("False", "DeviceMissing")
    assert condition.last_transition_time == "1970-01-01T00:33:20Z"
    with pytest.raises(DeviceInUseError):
        place.prepare(claim("u2", "toy-1"))
    driver.devices.append("toy-0")
    again = place.prepare(claim("u0", "toy-0"))
    assert again.devices == first.devices
    assert again.status[0].conditions[0].status == "True"
    assert again.status[0].conditions[0].last_transition_time == "1970-01-01T00:33:20Z"


def test_orphans_are_what_is_stuck_and_unknown(tmp_path: Path) -> None:
    """Prepared claims stay, whatever the API server says: the kubelet ends them. Living ones stay, too."""
    node = CrashNode(tmp_path)
    place, driver = node.start()
    place.prepare(claim("prepared", "toy-0"))

    def refuse(what: str, _claim: ClaimDevices) -> None:
        raise ValueError(what)

    driver.hook = refuse
    for uid, device in (("stuck", "toy-1"), ("alive", "toy-2")):
        with pytest.raises(Exception, match="ValueError"):
            place.prepare(claim(uid, device))
    assert place.orphans({"alive"}) == ()
    driver.hook = lambda _what, _claim: None
    assert place.orphans({"alive"}) == ("stuck",)
    assert place.orphans(lambda _uid: True) == ()
    assert place.orphans(set()) == ("alive",)
    node.consistent({"prepared"})


def test_a_claim_found_in_a_spec_is_an_orphan_if_nobody_knows_it(tmp_path: Path) -> None:
    """The kubelet may have ended it while the database was lost, and won't ask again."""
    node = CrashNode(tmp_path)
    without_database(node)
    place, _ = node.start()
    assert place.recover().adopted == ("u1",)
    assert place.orphans({"u1"}) == ()
    assert place.orphans(set()) == ("u1",)
    node.consistent(set())


def test_one_claim_from_many_processes_is_prepared_once(tmp_path: Path) -> None:
    """Two agents overlap during an upgrade; each call gets the same answer."""
    node = CrashNode(tmp_path)
    beside(node)
    children = [node.fork(prepare) for _ in range(8)]
    for child in children:
        node.join(child)
    node.consistent({"other", "u1"})
    children = [node.fork(unprepare) for _ in range(4)]
    for child in children:
        node.join(child)
    node.consistent({"other"})


def test_one_device_wanted_by_many_processes_goes_to_one(tmp_path: Path) -> None:
    """The others are told who has it."""
    node = CrashNode(tmp_path)
    beside(node)

    def want(uid: str, place: Preparer, _driver: ToyDriver) -> None:
        try:
            place.prepare(claim(uid, "toy-0"))
        except DeviceInUseError as error:
            assert "prepared for claim default/claim-u" in str(error)  # noqa: PT017 — either outcome is right

    children = [node.fork(partial(want, f"u{number}")) for number in range(8)]
    for child in children:
        node.join(child)
    place, _ = node.start()
    (winner,) = {one.uid for one in place.prepared()} - {"other"}
    for number in range(8):
        if f"u{number}" != winner:
            place.unprepare(f"u{number}")
    node.consistent({"other", winner})


@pytest.mark.parametrize("seed", range(3))
def test_chaos(tmp_path: Path, seed: int) -> None:
    """Agents that prepare and unprepare at random, some killed at random: afterwards everything is explained."""
    chance = random.Random(seed)
    node = CrashNode(tmp_path)
    beside(node)

    def work(own: int, place: Preparer, _driver: ToyDriver) -> None:
        mine = random.Random(own)
        place.recover()
        for _ in range(12):
            number = mine.randrange(6)
            try:
                if mine.random() < 0.6:
                    place.prepare(claim(f"u{number}", f"toy-{number % 3}"))
                else:
                    place.unprepare(f"u{number}")
            except DeviceInUseError:
                pass

    for _ in range(3):
        children = {}
        for _ in range(4):
            kill_at = chance.choice([None, chance.randrange(1, 60)])
            children[node.fork(partial(work, chance.randrange(2**30)), kill_at=kill_at)] = kill_at
        for child, kill_at in children.items():
            _, ended = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(ended) in ((0, -signal.SIGKILL) if kill_at is not None else (0,))
    place, _ = node.start()
    assert place.recover().problems == ()
    known = {one.uid for one in place.prepared()}
    node.consistent(known)
    for uid in known:
        place.unprepare(uid)
    node.consistent(set())
