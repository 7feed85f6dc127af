"""Who may have a device beside whom: the database refuses the rest, whatever came before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from draht.driver import holds
from draht.driver.claims import rows as claims
from draht.driver.claims.preparation import Preparer
from draht.driver.claims.rows import Record, RecordedDevice
from draht.driver.database import Database
from draht.driver.errors import DeviceInUseError, HeldError
from draht.driver.framework import ClaimDevices
from holding import hold
from toy_driver import OtherToyDriver, ToyDriver, claim, device, preparer

UNITS = {
    "gpu": {"GPU-0/0", "GPU-0/1"},
    "part-0": {"GPU-0/0"},
    "part-1": {"GPU-0/1"},
    "far": {"GPU-1/0"},
}
"""A GPU, the two halves it can be cut into, and another one."""


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """The machine's database."""
    return Database(tmp_path / "state", clock=lambda: 1000.0, busy_seconds=30)


@pytest.fixture
def place(tmp_path: Path, database: Database) -> Preparer:
    """One driver of the machine."""
    return preparer(tmp_path, ToyDriver(tmp_path / "effects", UNITS, units=UNITS), database=database)


@pytest.fixture
def beside(tmp_path: Path, database: Database) -> Preparer:
    """Another driver of the same hardware."""
    driver = OtherToyDriver(tmp_path / "other", UNITS, units=UNITS)
    return preparer(tmp_path, driver, database=database)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        pytest.param(device("gpu"), device("far"), True, id="different devices"),
        pytest.param(device("gpu"), device("gpu"), False, id="the same device"),
        pytest.param(device("part-0"), device("part-1"), True, id="two parts of one GPU"),
        pytest.param(device("part-0"), device("gpu"), False, id="a GPU and a part of it"),
        pytest.param(device("gpu"), device("part-1"), False, id="a part of a GPU that is taken whole"),
        pytest.param(device("gpu", share="a"), device("gpu", share="b"), True, id="two shares"),
        pytest.param(device("gpu", share="a"), device("gpu", share="a"), False, id="the same share twice"),
        pytest.param(device("gpu", share="a"), device("gpu"), False, id="a share and the whole"),
        pytest.param(device("gpu"), device("gpu", share="a"), False, id="the whole and a share"),
        pytest.param(device("gpu", share="a"), device("part-0"), False, id="a share and a part"),
        pytest.param(device("gpu", share="a"), device("part-0", share="b"), False, id="a share and a share of a part"),
        pytest.param(device("gpu", admin=True), device("gpu"), True, id="administrative access first"),
        pytest.param(device("gpu"), device("gpu", admin=True), True, id="administrative access second"),
        pytest.param(device("gpu", admin=True), device("gpu", admin=True), True, id="administrative access twice"),
        pytest.param(device("gpu", admin=False), device("gpu"), False, id="no administrative access"),
    ],
)
def test_who_may_have_what_beside_whom(place: Preparer, first: object, second: object, together: bool) -> None:
    """The second claim gets it or is told who has it; once the first has ended it gets it anyway."""
    one, two = claim("u1", first), claim("u2", second)  # type: ignore[arg-type]  # a table of devices
    place.prepare(one)
    if not together:
        with pytest.raises(DeviceInUseError, match="is prepared for claim default/claim-u1") as caught:
            place.prepare(two)
        assert caught.value.where == "default/claim-u2"
        assert caught.value.hint
        place.unprepare("u1")
    place.prepare(two)
    for uid in ("u1", "u2"):
        place.unprepare(uid)
    with place.database.transaction() as tx:
        assert holds.held_units(tx) == {}


def test_one_claim_may_have_several_ways_to_a_device(place: Preparer) -> None:
    """What it has whole it may also have in part or look at; others still get nothing of it."""
    whole = [device("gpu"), device("part-0", request="part"), device("gpu", request="admin", admin=True)]
    answer = place.prepare(claim("u1", *whole))
    assert len(answer.devices) == 3
    assert len({name for one in answer.devices for name in one.cdi_device_ids}) == 3
    assert [one.device for one in answer.status] == ["gpu", "part-0"]
    with pytest.raises(DeviceInUseError):
        place.prepare(claim("u2", device("part-1", share="x")))


def test_drivers_of_the_same_hardware_exclude_each_other(place: Preparer, beside: Preparer) -> None:
    """Two drivers offer one GPU: the units say so, and the message says whose claim it is."""
    place.prepare(claim("u1", "gpu"))
    with pytest.raises(DeviceInUseError, match="device part-0 is prepared for claim default/claim-u1"):
        beside.prepare(claim("u2", "part-0", driver=OtherToyDriver.name))
    beside.prepare(claim("u3", "far", driver=OtherToyDriver.name))


def test_many_taken_devices_are_told_in_one_sentence(tmp_path: Path) -> None:
    """Events of pods are short: devices that one claim has are counted, and whose it is stays readable."""
    place = preparer(tmp_path, ToyDriver(tmp_path / "effects"))
    place.prepare(claim("u1", *(f"toy-{number}" for number in range(6))))
    place.prepare(claim("u2", "toy-6"))
    said = "devices toy-0, toy-1, toy-2, toy-3 and 2 more are prepared for claim default/claim-u1; device toy-6 is"
    with pytest.raises(DeviceInUseError, match=said):
        place.prepare(claim("u3", *(f"toy-{number}" for number in range(8))))


def test_one_claim_of_two_drivers_is_two_preparations(place: Preparer, beside: Preparer, tmp_path: Path) -> None:
    """Each driver prepares and ends its own part; the other's stays."""
    both = claim("u1", "part-0", device("far", driver=OtherToyDriver.name, request="more"))
    mine, other = place.prepare(both), beside.prepare(both)
    assert [one.device for one in mine.devices] == ["part-0"]
    assert [one.device for one in other.devices] == ["far"]
    place.unprepare("u1")
    assert beside.prepare(both) == other
    assert beside.recover().kept == ("u1",)
    assert place.recover().swept == ()
    assert [path.name for path in (tmp_path / "cdi").iterdir()] == ["k8s.other.example.com-claim_u1.json"]


def test_a_hold_and_a_claim_exclude_each_other(place: Preparer, database: Database) -> None:
    """A container of `draht run` blocks a pod with a message that names it, and the other way round."""
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"GPU-0/0"})
    for one in (device("gpu"), device("gpu", share="a"), device("part-0")):
        with pytest.raises(DeviceInUseError, match=r"is held by hold h1 of ada \(train --fast\)") as caught:
            place.prepare(claim("u1", one))
        assert "draht release h1" in str(caught.value.hint)
    place.prepare(claim("u2", device("gpu", admin=True)))
    place.prepare(claim("u3", device("far", share="a")))
    with database.transaction() as tx, pytest.raises(HeldError):
        holds.insert(tx, hold("h2"), {"GPU-0/1", "GPU-1/0"})
    with database.transaction() as tx:
        assert holds.held_units(tx) == {"GPU-0/0": "h1", "GPU-1/0": "u3"}
        holds.delete(tx, "h1", "ended")
    place.prepare(claim("u1", "gpu"))


def test_the_database_refuses_whatever_the_code_does(database: Database) -> None:
    """Rows of units can't be made that give one unit away twice."""
    records = {
        uid: Record(uid=uid, namespace="n", name=uid, driver="d", devices=(RecordedDevice(result=one, units=("x",)),))
        for uid, one in (
            ("whole", device("gpu")),
            ("share", device("gpu", share="a")),
            ("part", device("p", share="b")),
        )
    }
    inserts: dict[str, Callable[[], None]] = {}

    def insert(uid: str) -> None:
        with database.transaction() as tx:
            claims.insert(tx, records[uid])

    def insert_hold() -> None:
        with database.transaction() as tx:
            holds.insert(tx, hold("h"), {"x"})

    inserts = {"whole": lambda: insert("whole"), "share": lambda: insert("share"), "part": lambda: insert("part")}
    inserts["hold"] = insert_hold
    for first, begin in inserts.items():
        begin()
        for second, other in inserts.items():
            if second != first:
                with pytest.raises(HeldError):
                    other()
        with database.transaction() as tx:
            if first == "hold":
                holds.delete(tx, "h", "")
            else:
                claims.delete(tx, records[first], "")
            assert holds.held_units(tx) == {}


def test_threads_that_want_one_device_get_it_once(place: Preparer) -> None:
    """One call wins; the others name it."""
    outcomes: list[str] = []

    def want(uid: str) -> None:
        try:
            place.prepare(claim(uid, "gpu"))
            outcomes.append(uid)
        except DeviceInUseError as error:
            outcomes.append(f"refused: {error}")

    threads = [threading.Thread(target=want, args=(f"u{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [one for one in outcomes if not one.startswith("refused")]
    assert sum(f"default/claim-{winner}" in one for one in outcomes if one != winner) == 5


def test_claims_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Four claims are in the driver at the same time; a fifth that isn't prepared doesn't disturb them."""
    driver = ToyDriver(tmp_path / "effects")
    place = preparer(tmp_path, driver)
    meet = threading.Barrier(4, timeout=60)

    def hook(what: str, _claim: ClaimDevices) -> None:
        if what == "prepare":
            meet.wait()

    driver.hook = hook
    threads = [threading.Thread(target=place.prepare, args=(claim(f"u{n}", f"toy-{n}"),)) for n in range(4)]
    for thread in threads:
        thread.start()
    place.unprepare("never")
    for thread in threads:
        thread.join()
    assert not meet.broken
    assert len(place.prepared()) == 4


def test_threads_with_one_claim_prepare_it_once(tmp_path: Path) -> None:
    """The kubelet repeats a call that took too long while the first still works."""
    driver = ToyDriver(tmp_path / "effects")
    place = preparer(tmp_path, driver)
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.append(place.prepare(claim("u1", "toy-0")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [answers[0]] * 4
    assert driver.calls.count(("prepare", "u1")) == 1
