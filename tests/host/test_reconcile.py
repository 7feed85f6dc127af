from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from draht.driver import holds
from draht.driver.holds import Hold
from draht.driver.process import ProcessIdentity
from draht.host.engine import Container, EngineError
from draht.host.errors import NotOwnerError, SelectionError
from draht.host.reconcile import FACTS_LABEL, STATE_LABEL, Facts, reconcile
from draht.host.release import find, release
from draht.host.status import status, trail
from fake_engine import FakeEngine
from holding import DEAD, hold, myself
from running import Workplace

OTHER = os.getuid() + 1


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    engine = place.engine()
    for container in engine.containers():
        engine.remove(container.id)


def add(place: Workplace, one: Hold, *units: str) -> None:
    """Put a hold into the database as another process would have left it."""
    with place.database.transaction() as tx:
        holds.insert(tx, one, units or {f"unit-{one.id}"})
        if one.state != "starting":
            holds.set_state(tx, one.id, one.state, after=("starting",))
        if one.init is not None:
            holds.set_init(tx, one.id, one.init)


GONE = ProcessIdentity(pid=2**22 + 1, started=1, boot_id=DEAD.boot_id)
BEFORE_REBOOT = ProcessIdentity(pid=1, started=1, boot_id="another boot")


@pytest.mark.parametrize(
    ("change", "stays", "problem"),
    [
        pytest.param({"starter": myself()}, True, "", id="its draht lives"),
        pytest.param({"starter": DEAD}, False, "", id="starter dead, no container"),
        pytest.param({"starter": DEAD, "state": "running"}, False, "", id="container gone"),
        pytest.param({"starter": BEFORE_REBOOT, "state": "running"}, False, "", id="before a reboot"),
        pytest.param({"starter": DEAD, "engine": "absent"}, True, "absent, which has its container", id="engine gone"),
        pytest.param({"starter": DEAD, "uid": OTHER}, True, "can't be judged from here", id="another user's"),
        pytest.param({"starter": DEAD, "uid": OTHER, "init": myself()}, True, "", id="another user's, runs"),
        pytest.param({"starter": DEAD, "uid": OTHER, "init": GONE}, False, "", id="another user's, has ended"),
        pytest.param({"starter": BEFORE_REBOOT, "uid": OTHER}, False, "", id="another user's, before a reboot"),
    ],
)
def test_who_keeps_a_hold(place: Workplace, change: dict[str, object], stays: bool, problem: str) -> None:
    """Only what is known to have ended is freed; what can't be judged from here stays and is told."""
    add(place, msgspec.structs.replace(hold("h1"), **change))
    found = place.reconcile()
    assert [one.id for one in place.holds()] == (["h1"] if stays else [])
    assert [problem in text for text in found.problems] == ([True] if problem else [])


def test_a_hold_without_a_label_of_ours_is_not_touched(place: Workplace) -> None:
    """Containers that draht didn't make, or that another database holds, are nobody's business here."""
    engine = Listing(place, [Container(engine="fake", id="1", name="x", hold="h9", state="created", labels={})])
    reconcile(place.database, {"fake": engine})
    assert engine.removed == []


class Listing(FakeEngine):
    """An engine whose answers are given, one after the other; the last one is repeated."""

    def __init__(self, place: Workplace, *answers: list[Container]) -> None:
        super().__init__(place.root / "engine", place.cdi)
        self.answers = list(answers)
        self.removed: list[str] = []

    def containers(self) -> list[Container]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def remove(self, container_id: str) -> None:
        self.removed.append(container_id)


def ours(place: Workplace, identity: str, *, state: str = "running", **facts: object) -> Container:
    """A container with the labels that draht gives."""
    known = {
        "machine": "test",
        "simulated": True,
        "devices": (),
        "units": ("unit",),
        "cdi_names": (),
        "command": (),
        "uid": os.getuid(),
        "user": "ada",
        "starter": DEAD,
        "detached": False,
        "since": 1.0,
        **facts,
    }
    labels = {
        STATE_LABEL: str((place.root / "state").resolve()),
        FACTS_LABEL: msgspec.json.encode(msgspec.convert(known, Facts, from_attributes=True)).decode(),
    }
    return Container(engine="fake", id=f"c-{identity}", name=identity, hold=identity, state=state, labels=labels)  # type: ignore[arg-type]


def test_a_container_that_ends_while_we_look_is_not_adopted(place: Workplace) -> None:
    """It ran when it was listed, but its hold was freed because it has ended: the second look decides."""
    engine = Listing(place, [ours(place, "h1")], [ours(place, "h1", state="exited")])
    reconcile(place.database, {"fake": engine})
    assert place.holds() == []


def test_a_running_container_without_a_row_is_adopted_once(place: Workplace) -> None:
    """The labels give the hold back; doing it again changes nothing."""
    engine = Listing(place, [ours(place, "h1")])
    assert reconcile(place.database, {"fake": engine}).adopted == ["h1"]
    assert reconcile(place.database, {"fake": engine}).adopted == []
    assert [(one.id, one.state, one.user) for one in place.holds()] == [("h1", "running", "ada")]
    assert [entry.event for entry in place.audit("h1")] == ["adopted"]


def test_a_container_that_is_coming_is_adopted_unless_it_was_released(place: Workplace) -> None:
    """Its draht lives and will start it: it needs its hold; but if somebody freed that on purpose, it won't start."""
    coming = ours(place, "h1", state="created", starter=myself())
    engine = Listing(place, [coming])
    assert reconcile(place.database, {"fake": engine}).adopted == ["h1"]
    assert [one.state for one in place.holds()] == ["starting"]
    with place.database.transaction() as tx:
        holds.delete(tx, "h1", "released by hand")
    assert reconcile(place.database, {"fake": engine}).adopted == []
    assert place.holds() == []
    taken = ours(place, "h2", state="created", starter=myself())
    add(place, hold("h3"), "unit")
    assert reconcile(place.database, {"fake": Listing(place, [taken])}).problems == []
    assert [one.id for one in place.holds()] == ["h3"]


def test_two_running_containers_with_one_device_are_told(place: Workplace) -> None:
    """After the loss of a database that can't be undone by draht alone, but it is said, and written down once."""
    engine = Listing(place, [ours(place, "h1"), ours(place, "h2")])
    for _ in range(2):
        (problem,) = reconcile(place.database, {"fake": engine}).problems
        assert "h2" in problem
    assert [one.id for one in place.holds()] == ["h1"]
    assert [entry.event for entry in place.audit("h2")] == ["conflict"]
    assert engine.removed == []


def test_unreadable_facts_are_told(place: Workplace) -> None:
    """A running container of ours whose label somebody has damaged isn't adopted and isn't removed."""
    container = ours(place, "h1")
    labels = {**container.labels, FACTS_LABEL: "{"}
    damaged = Container(engine="fake", id="c", name="h1", hold="h1", state="running", labels=labels)
    engine = Listing(place, [damaged])
    assert "unreadable" in reconcile(place.database, {"fake": engine}).problems[0]
    assert engine.removed == []


@pytest.mark.parametrize(
    ("state", "facts", "removed"),
    [
        ("created", {"starter": DEAD}, True),
        ("created", {"starter": myself()}, False),
        ("exited", {"starter": DEAD}, True),
        ("exited", {"starter": myself()}, False),
        ("exited", {"starter": myself(), "detached": True}, True),
        ("created", {"starter": myself(), "detached": True}, False),
        ("unknown", {"starter": DEAD}, False),
    ],
)
def test_left_over_containers(place: Workplace, state: str, facts: dict[str, object], removed: bool) -> None:
    """Containers without a row go, unless the draht that made them lives and takes care of them itself."""
    engine = Listing(place, [ours(place, "h1", state=state, **facts)])
    reconcile(place.database, {"fake": engine})
    assert engine.removed == (["c-h1"] if removed else [])


class TestRelease:
    def test_stops_what_runs(self, place: Workplace) -> None:
        """The container goes first, then the devices are free; an attached draht sees its container end."""
        pid = place.fork(place.order(["sleep", "60"], number=8))
        while not any(container.state == "running" for container in place.engine().containers()):
            pass
        state = place.reconcile()
        release(place.host(), place.holds()[0], state)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 137
        place.consistent()
        assert place.holds() == []
        assert "released" in [entry.event for entry in place.audit()]

    def test_others_only_by_force(self, place: Workplace) -> None:
        """Somebody else's hold is refused with the way to do it."""
        add(place, hold("h1", uid=OTHER))
        state = place.reconcile()
        (held,) = place.holds()
        with pytest.raises(NotOwnerError, match="belongs to ada") as caught:
            release(place.host(), held, state)
        assert "--force" in str(caught.value.hint)
        release(place.host(), held, state, force=True)
        assert place.holds() == []

    def test_unseen_container_only_by_force(self, place: Workplace) -> None:
        """If the engine can't be asked, freeing the devices is a decision of the person."""
        add(place, hold("h1", engine="absent", starter=DEAD))
        state = place.reconcile()
        (held,) = place.holds()
        with pytest.raises(EngineError, match="can't be seen from here"):
            release(place.host(), held, state)
        assert len(place.holds()) == 1
        release(place.host(), held, state, force=True)
        assert place.holds() == []

    def test_container_that_stays(self, place: Workplace) -> None:
        """A container that can't be removed keeps its devices, except by force, and then the trail says so."""
        place.run(["sleep", "60"], detach=True)
        host = place.host()
        state = place.reconcile()
        (held,) = place.holds()
        host.engines["fake"].fails.add("remove")  # type: ignore[attr-defined]
        with pytest.raises(EngineError, match="fake failure"):
            release(host, held, state)
        assert [one.state for one in place.holds()] == ["releasing"]
        release(host, held, state, force=True)
        assert place.holds() == []
        assert [entry.detail for entry in place.audit(held.id)][
            -1
        ] == "released by hand, whatever became of the container"

    @pytest.mark.parametrize(
        ("text", "result"),
        [("h12", "h12"), ("h1", "h1"), ("h2", "h2"), ("c0ffee", "h2"), ("h", "3 holds"), ("x", "there is no hold")],
    )
    def test_find(self, text: str, result: str) -> None:
        """An id, or the beginning of one id or container."""
        held = [hold("h1"), hold("h12"), msgspec.structs.replace(hold("h2"), container="c0ffee123")]
        if " " not in result:
            assert find(held, text).id == result
            return
        with pytest.raises(SelectionError, match=result) as caught:
            find(held, text)
        assert caught.value.hint


def test_status_and_trail(place: Workplace) -> None:
    """What `draht ps` shows, from reading alone; without a database that is nothing."""
    assert (status(place.database).holds, trail(place.database)) == ((), ())
    outcome = place.run(["sleep", "60"], number=2, detach=True)
    found = status(place.database)
    assert [(one.id, one.state, one.devices, one.simulated) for one in found.holds] == [
        (outcome.hold, "running", ("GPU 0", "GPU 1"), True)
    ]
    assert found.holds[0].since.endswith("Z")
    assert [entry.event for entry in trail(place.database)] == ["held", "created", "started"]
