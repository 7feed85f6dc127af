"""Disks that are full, read-only or emptied, and databases that are lost: what is told, and what comes back."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from claim_crashes import CrashNode
from disks import fill, read_only, small_disk
from draht.driver import holds
from draht.driver.claims import recovery
from draht.driver.claims import rows as claims
from draht.driver.database import Database
from draht.driver.errors import DeviceInUseError, PlacesError, StateError
from holding import hold
from toy_driver import ToyDriver, claim, device, preparer


@pytest.mark.parametrize("place_name", ["cdi", "metadata", "files"])
def test_a_full_disk_is_one_sentence_and_undone(tmp_path: Path, place_name: str) -> None:
    """Nothing half-written is left, and once there is room the next try succeeds."""
    with small_disk(tmp_path / place_name) as disk:
        driver = ToyDriver(tmp_path / "effects")
        place = preparer(tmp_path, driver)
        filler = fill(disk)
        with pytest.raises(PlacesError, match="No space left") as caught:
            place.prepare(claim("u1", "toy-0"))
        assert "make some room" in str(caught.value.hint)
        assert driver.prepared() == {}
        assert [path for path in disk.rglob("*") if path.is_file() and path != filler] == []
        filler.unlink()
        place.prepare(claim("u1", "toy-0"))
        place.unprepare("u1")


def test_a_read_only_directory_is_one_sentence_and_undone(tmp_path: Path) -> None:
    """The same where files can't be written at all; a claim that has a file there can't be unprepared until it can."""
    with small_disk(tmp_path / "cdi") as disk:
        driver = ToyDriver(tmp_path / "effects")
        place = preparer(tmp_path, driver)
        place.prepare(claim("u1", "toy-0"))
        read_only(disk)
        with pytest.raises(PlacesError, match="Read-only file system") as caught:
            place.prepare(claim("u2", "toy-1"))
        assert caught.value.hint
        assert list(driver.prepared()) == ["u1"]
        with pytest.raises(PlacesError, match="removed: Read-only file system"):
            place.unprepare("u1")
        # Nothing of it was undone: containers that run keep what they have, and the device isn't free.
        assert "u1" in driver.prepared()
        with pytest.raises(DeviceInUseError, match="not yet free"):
            place.prepare(claim("u3", "toy-0"))
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        place.unprepare("u1")
        assert driver.prepared() == {}


def test_a_full_disk_of_the_database_changes_nothing(tmp_path: Path) -> None:
    """No row, no effect."""
    with small_disk(tmp_path / "state", "2m") as disk:
        driver = ToyDriver(tmp_path / "effects")
        place = preparer(tmp_path, driver)
        place.prepare(claim("u1", "toy-0"))
        filler = fill(disk)

        def use_up() -> None:
            for number in range(2, 40):
                place.prepare(claim(f"u{number}", "toy-1"))
                place.unprepare(f"u{number}")

        with pytest.raises(StateError):
            use_up()
        filler.unlink()
        place.recover()
        assert sorted(driver.prepared()) == sorted(one.uid for one in place.prepared())


def lose(node: CrashNode, how: str) -> None:
    """Destroy the database."""
    path = node.root / "state/state.db"
    if how == "garbage":
        path.write_bytes(b"no database" * 1000)
    else:
        path.unlink()


@pytest.mark.parametrize("how", ["garbage", "deleted"])
def test_a_lost_database_is_rebuilt_from_specs_and_says_so(tmp_path: Path, how: str) -> None:
    """At the start: claims and their units are there again, nobody else gets the devices."""
    node = CrashNode(tmp_path)
    place, _ = node.start()
    answers = [place.prepare(claim(f"u{number}", f"toy-{number}")) for number in range(3)]
    lose(node, how)
    place, _ = node.start()
    found = place.recover()
    assert found.adopted == found.restored == ("u0", "u1", "u2")
    assert found.problems == ()
    said = " ".join(found.notices)
    assert "default/claim-u0, default/claim-u1, default/claim-u2" in said
    assert ("unreadable" in said) == (how == "garbage")
    assert place.prepared() == answers
    node.consistent({"u0", "u1", "u2"})
    with pytest.raises(DeviceInUseError):
        place.prepare(claim("u3", "toy-0"))


@pytest.mark.parametrize("how", ["garbage", "deleted"])
def test_a_database_lost_under_a_running_agent_gives_nothing_away(tmp_path: Path, how: str) -> None:
    """No restart, no recovery: the next call notices by itself and brings the claims back before it takes anything."""
    node = CrashNode(tmp_path)
    place, driver = node.start()
    first = place.prepare(claim("u1", "toy-0"))
    lose(node, how)
    with pytest.raises(DeviceInUseError, match="claim default/claim-u1"):
        place.prepare(claim("u2", "toy-0"))
    assert place.prepare(claim("u1", "toy-0")) == first
    lose(node, how)
    place.unprepare("u1")
    assert driver.prepared() == {}
    assert any("claim-u1" in notice for notice in place.database.notices)
    node.consistent(set())


def test_a_database_lost_in_the_middle_of_a_call(tmp_path: Path) -> None:
    """The call brings the claim back from the spec that it has just written, and answers."""
    node = CrashNode(tmp_path)

    def step(name: str) -> None:
        if name == "spec-written" and not lost:
            lost.append(name)
            lose(node, "deleted")

    lost: list[str] = []
    place, _ = node.start(step)
    answer = place.prepare(claim("u1", "toy-0"))
    assert place.prepared() == [answer]
    node.consistent({"u1"})


def test_a_claim_without_a_note_is_kept_where_nothing_is_known(tmp_path: Path) -> None:
    """An old runtime reads no annotations: after a loss the claim isn't known, but its pod may still run."""
    preparer(tmp_path, cdi_version="0.5.0").prepare(claim("u1", "toy-0"))
    for path in (tmp_path / "state").glob("state.db*"):
        path.unlink()
    place = preparer(tmp_path, cdi_version="0.5.0")
    found = place.recover()
    assert found.adopted == found.swept == ()
    assert "the claim isn't known; it is kept" in found.notices[0]
    assert (tmp_path / "cdi/k8s.toy.example.com-claim_u1.json").exists()
    place.prepare(claim("u1", "toy-0"))
    place.unprepare("u1")
    assert not list((tmp_path / "cdi").iterdir())


def test_a_lost_claim_whose_device_was_given_away_is_a_told_conflict(tmp_path: Path) -> None:
    """It keeps its files, since its pod runs; the device belongs to who has it now until one of them ends."""
    units = {"toy-0": {"GPU-0"}}
    place = preparer(tmp_path, ToyDriver(tmp_path / "effects", units=units))
    place.prepare(claim("u1", "toy-0"))
    for path in (tmp_path / "state").glob("state.db*"):
        path.unlink()
    with place.database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"GPU-0"})
    found = preparer(tmp_path, ToyDriver(tmp_path / "effects", units=units)).recover()
    assert found.adopted == found.restored == ("u1",)
    (problem,) = found.problems
    assert "claim default/claim-u1 was prepared with toy-0, which somebody else has now" in problem
    with place.database.transaction() as tx:
        assert holds.held_units(tx) == {"GPU-0": "h1"}


def test_another_state_directorys_claims_are_not_taken_by_everybody(tmp_path: Path) -> None:
    """`draht run` of a user reads the same CDI directory, but only the machine's database has the claims."""
    place = preparer(tmp_path)
    place.prepare(claim("u1", "toy-0"))
    users = Database(tmp_path / "user")
    assert recovery.adopt(users, [tmp_path / "cdi"]).claims == []
    for path in (tmp_path / "state").glob("state.db*"):
        path.unlink()
    adopted = recovery.adopt(place.database, [tmp_path / "absent", tmp_path / "cdi"])
    assert [record.title for record in adopted.claims] == ["default/claim-u1"]
    with place.database.transaction() as tx:
        assert claims.keys(tx) == {("u1", "toy.example.com")}


def test_a_claim_that_ends_while_it_is_read_stays_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody unprepares it between the look at its spec and the row: no row comes back that nobody would end."""
    place = preparer(tmp_path)
    place.prepare(claim("u1", "toy-0"))
    for path in (tmp_path / "state").glob("state.db*"):
        path.unlink()
    really_read = recovery._note

    def read(path: Path) -> object:
        note = really_read(path)
        path.unlink()
        return note

    monkeypatch.setattr(recovery, "_note", read)
    assert recovery.adopt(place.database, [tmp_path / "cdi"]).claims == []
    with place.database.transaction() as tx:
        assert claims.keys(tx) == set()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b'{"annotations": {"draht.dev/claim": "{}"}}', b'{"kind": 3}']
)
def test_damaged_specs_are_swept_where_all_claims_are_known(tmp_path: Path, content: bytes) -> None:
    """Whatever somebody wrote there, the others are recovered."""
    place = preparer(tmp_path)
    place.prepare(claim("u1", "toy-0"))
    stray = tmp_path / "cdi/k8s.toy.example.com-claim_stray.json"
    stray.write_bytes(content)
    foreign = tmp_path / "cdi/k8s.other.example.com-claim_stray.json"
    foreign.write_bytes(content)
    found = preparer(tmp_path).recover()
    assert found.kept == ("u1",)
    assert found.swept == (str(stray),)
    assert foreign.exists()


def test_temporary_files_of_the_killed_are_swept_once_they_are_old(tmp_path: Path) -> None:
    """A young one may be somebody's who writes now."""
    place = preparer(tmp_path)
    place.prepare(claim("u1", "toy-0"))
    old, young = tmp_path / "cdi/.draht.old.tmp", tmp_path / "metadata/toy.example.com/u1/.draht.young.tmp"
    for path in (old, young):
        path.touch()
    os.utime(old, (time.time() - 100, time.time() - 100))
    assert place.recover().swept == (str(old),)
    assert young.exists()


def test_places_that_moved_are_cleaned_up(tmp_path: Path) -> None:
    """The agent was configured anew: what an earlier one wrote elsewhere goes with the claim."""
    place = preparer(tmp_path / "old", database=Database(tmp_path / "state"))
    place.prepare(claim("u1", "toy-0"))
    driver = ToyDriver(tmp_path / "old/effects")
    moved = preparer(tmp_path / "new", driver, database=Database(tmp_path / "state"))
    moved.unprepare("u1")
    assert not list((tmp_path / "old/cdi").iterdir())
    assert not list((tmp_path / "old/metadata/toy.example.com").iterdir())
    assert driver.prepared() == {}


def test_a_thousand_claims_more_are_no_burden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SQLite has to do for one call doesn't grow with the claims that are there; counted in its own steps."""
    place = preparer(tmp_path, ToyDriver(tmp_path / "effects", [f"toy-{number}" for number in range(1100)]))
    ticks = 0

    def tick() -> int:
        nonlocal ticks
        ticks += 1
        return 0

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = sqlite3.Connection(*args, **options)
        connection.set_progress_handler(tick, 10)
        return connection

    monkeypatch.setattr("draht.driver.database.sqlite3.connect", connect)

    def cost(number: int) -> int:
        nonlocal ticks
        ticks = 0
        place.prepare(claim(f"u{number}", f"toy-{number}"))
        place.prepare(claim(f"u{number}", f"toy-{number}"))
        place.unprepare(f"u{number}")
        return ticks

    place.offer()
    few = [cost(number) for number in range(1090, 1095)]
    with place.database.transaction() as tx:
        for number in range(1000):
            result = device(f"toy-{number}")
            units = (f"toy.example.com/node-1/toy-{number}",)
            record = claims.Record(
                uid=f"u{number}",
                namespace="default",
                name="many",
                driver=ToyDriver.name,
                devices=(claims.RecordedDevice(result=result, units=units),),
            )
            claims.insert(tx, record, state="prepared")
    many = [cost(number) for number in range(1095, 1100)]
    assert min(few) > 10
    assert min(many) < 1.5 * min(few)
