from __future__ import annotations

from pathlib import Path

import pytest

from draht.driver import audit, holds
from draht.driver.database import Database
from draht.driver.errors import HeldError
from holding import hold, myself


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """An empty database."""
    return Database(tmp_path, clock=lambda: 1000.0)


def test_the_database_itself_refuses_a_double_hold(database: Database) -> None:
    """One unit in common is enough, nothing of the second hold stays, and the transaction goes on."""
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"gpu0/0", "gpu0/1"}, specs=["/cdi/1.json"])
        with pytest.raises(HeldError, match="h2"):
            holds.insert(tx, hold("h2"), {"gpu1", "gpu0/1"}, specs=["/cdi/2.json"])
        holds.insert(tx, hold("h3"), {"gpu1"})
    with database.reading() as tx:
        assert holds.held_units(tx) == {"gpu0/0": "h1", "gpu0/1": "h1", "gpu1": "h3"}
        assert holds.spec_paths(tx) == {"/cdi/1.json": "h1"}
        assert [entry.hold for entry in audit.entries(tx)] == ["h1", "h3"]


def test_siblings_of_one_gpu_do_not_conflict(database: Database) -> None:
    """Disjoint units of one GPU may have different holders; the whole GPU then may not."""
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"gpu0/0"})
        holds.insert(tx, hold("h2"), {"gpu0/1"})
        with pytest.raises(HeldError):
            holds.insert(tx, hold("h3"), {"gpu0/0", "gpu0/1", "gpu0/2"})


def test_round_trip(database: Database) -> None:
    """A hold is read as it was written, with what was recorded since."""
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"a"})
        assert holds.find(tx, "h1") == hold("h1")
        assert holds.set_container(tx, "h1", "c" * 64)
        assert holds.set_state(tx, "h1", "running", after=("starting",))
        holds.set_init(tx, "h1", myself())
    with database.reading() as tx:
        (found,) = holds.all_holds(tx)
    assert (found.state, found.container, found.init) == ("running", "c" * 64, myself())
    assert [held.id for held in found.devices] == ["GPU-h1"]


@pytest.mark.parametrize("state", ["running", "releasing"])
def test_a_container_is_recorded_only_while_starting(database: Database, state: holds.HoldState) -> None:
    """Who releases a hold while its container is made wins: the recording that comes after says so."""
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"a"})
        holds.set_state(tx, "h1", state, after=("starting",))
        assert not holds.set_container(tx, "h1", "c1")
        assert not holds.set_container(tx, "none", "c1")
        assert not holds.set_state(tx, "h1", "running", after=("starting",))


def test_deleting_frees_everything_once(database: Database) -> None:
    """Units and spec paths go with the hold, and only one of two deleters is told that it did it."""
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"a", "b"}, specs=["/cdi/1.json"])
        assert holds.delete(tx, "h1", "done")
        assert not holds.delete(tx, "h1", "done again")
        assert (holds.held_units(tx), holds.spec_paths(tx), holds.all_holds(tx)) == ({}, {}, [])
        assert [(entry.event, entry.hold) for entry in audit.entries(tx)] == [("held", "h1"), ("freed", "h1")]


def test_ids_are_names_for_old_cdi_versions() -> None:
    """Ids begin with a letter (CDI before 0.5.0) and don't repeat."""
    made = {holds.new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(identity.isalnum() and identity[0] == "h" for identity in made)


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([], ""),
        (["GPU 0"], "GPU 0"),
        (["GPU 0", "GPU 1", "GPU 2", "GPU 5"], "GPU 0-2, GPU 5"),
        (["GPU 1", "GPU 0"], "GPU 1, GPU 0"),
        (["MIG-1", "MIG-2", "GPU 3", "0000:1b:00.0"], "MIG-1, MIG-2, GPU 3, 0000:1b:00.0"),
        (["GPU 1", "NIC 2"], "GPU 1, NIC 2"),
    ],
)
def test_devices_in_short(labels: list[str], text: str) -> None:
    """Runs of numbers are joined, everything else stays as it is."""
    assert holds.in_short(labels) == text


def test_commands_are_shown_on_one_line_and_harmless(database: Database) -> None:
    """What somebody runs reaches other people's terminals: as text only."""
    assert holds.one_line(["sh", "-c", "a\n  b\t\x1b[2Jc"]) == "sh -c a b ?[2Jc"
    assert holds.one_line([]) == "no command"
    with database.transaction() as tx:
        audit.record(tx, "failed", None, "two\nlines \x1b]0;title\x07")
        assert audit.entries(tx)[-1].detail == "two lines ?]0;title?"


def test_a_database_that_lost_something_does_not_continue(database: Database, tmp_path: Path) -> None:
    """Begun anew, or an older state that came back and has gone on since: both are noticed; growing isn't a loss."""
    with database.transaction() as tx:
        empty = audit.point(tx)
        holds.insert(tx, hold("h1"), {"a"})
    old = database.path.read_bytes()
    with database.transaction() as tx:
        assert audit.continues(tx, empty)
        holds.insert(tx, hold("h2"), {"b"})
        point = audit.point(tx)
        holds.insert(tx, hold("h3"), {"c"})
        assert audit.continues(tx, point)
    database.path.write_bytes(old)
    later = Database(tmp_path, clock=lambda: 2000.0)
    with later.transaction() as tx:
        assert audit.continues(tx, empty)
        assert not audit.continues(tx, point)
        for number in range(4, 9):
            holds.insert(tx, hold(f"h{number}"), {f"{number}"})
        assert not audit.continues(tx, point)
    with Database(tmp_path / "other").transaction() as tx:
        assert not audit.continues(tx, empty)


def test_audit_is_append_only_and_bounded(database: Database) -> None:
    """Entries can't be changed, old ones go, and those of a living hold stay however old they are."""
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"a"})
        for number in range(50):
            audit.record(tx, "waiting", None, f"ticket {number}", limit=10)
        found = audit.entries(tx)
        assert [entry.hold for entry in found[:1]] == ["h1"]
        assert [entry.detail for entry in found[1:]] == [f"ticket {number}" for number in range(40, 50)]
        with pytest.raises(Exception, match="append-only"):
            tx.connection.execute("UPDATE audit SET detail = 'nothing happened'")
        holds.delete(tx, "h1", "done")
        for number in range(20):
            audit.record(tx, "waiting", None, f"late {number}", limit=10)
        assert len(audit.entries(tx)) == 10
        assert audit.entries(tx, "h1") == []
