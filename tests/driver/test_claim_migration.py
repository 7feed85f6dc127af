"""A database of version 1, as it was written by the draht before claims."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from draht.driver import audit, holds, waiting
from draht.driver.database import Database
from draht.driver.errors import DeviceInUseError, HeldError, StateError
from holding import hold
from toy_driver import ToyDriver, claim, preparer

CAPTURED = Path(__file__).parents[1] / "data/driver/state-v1.sql"


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """The captured file."""
    database = Database(tmp_path / "state", busy_seconds=10)
    database.directory.mkdir()
    connection = sqlite3.connect(database.path)
    connection.executescript(CAPTURED.read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return database


def test_holds_tickets_and_trail_survive(database: Database) -> None:
    """Everything of the older file is there afterwards, and it isn't taken for a damaged one."""
    database.check()
    assert not database.notices
    with database.transaction() as tx:
        assert [(one.id, one.user, one.state) for one in holds.all_holds(tx)] == [
            ("h0", "ada", "running"),
            ("h1", "grace", "running"),
        ]
        assert holds.held_units(tx) == {"GPU-0/0": "h0", "GPU-0/1": "h0", "GPU-1/0": "h1", "GPU-1/1": "h1"}
        assert [ticket.user for ticket in waiting.tickets(tx)] == ["linus"]
        assert [entry.hold for entry in audit.entries(tx)] == ["h0", "h1"]
        assert audit.point(tx).origin == "0123456789abcdef"
        assert tx.connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_reader_asks_for_the_migration(database: Database) -> None:
    """Who may only read can't bring the file up to date, and is told so."""
    with pytest.raises(StateError, match="older draht"), database.reading():
        pass


def test_migrated_holds_and_claims_exclude_each_other(database: Database, tmp_path: Path) -> None:
    """A unit of a hold from before is refused to a claim, and freed for it by the end of the hold."""
    driver = ToyDriver(tmp_path / "effects", units={"toy-0": {"GPU-0/0", "GPU-0/1"}, "toy-1": {"GPU-2/0"}})
    place = preparer(tmp_path, driver, database=database)
    with pytest.raises(DeviceInUseError, match=r"device toy-0 is held by hold h0 of ada \(train --fast\)"):
        place.prepare(claim("u1", "toy-0"))
    place.prepare(claim("u2", "toy-1"))
    with database.transaction() as tx:
        with pytest.raises(HeldError):
            holds.insert(tx, hold("h2"), {"GPU-2/0"})
        assert holds.delete(tx, "h0", "its container has ended")
    assert place.prepare(claim("u1", "toy-0")).uid == "u1"
