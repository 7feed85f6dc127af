from __future__ import annotations

import fcntl
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disks import fill, read_only, small_disk
from draht.driver import audit, holds, schema
from draht.driver.database import Database
from draht.driver.errors import NewerSchemaError, StateError, StateLostError
from holding import hold
from requirements import require


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A database that doesn't exist yet."""
    return Database(tmp_path / "state", clock=lambda: 1000.0, busy_seconds=10)


def add(database: Database, identity: str, *units: str) -> None:
    """Hold units."""
    with database.transaction() as tx:
        holds.insert(tx, hold(identity), units)


def ids(database: Database) -> list[str]:
    """The holds there are."""
    with database.transaction() as tx:
        return [held.id for held in holds.all_holds(tx)]


def test_settings(database: Database) -> None:
    """The file is in WAL mode, every commit is synced, foreign keys hold, and the header names draht."""
    with database.transaction() as tx:
        settings = {
            name: tx.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "application_id", "user_version")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "application_id": schema.APPLICATION_ID,
        "user_version": schema.VERSION,
    }


def test_failed_block_leaves_nothing(database: Database) -> None:
    """A transaction is all or nothing."""

    def stopped() -> None:
        with database.transaction() as tx:
            holds.insert(tx, hold("h1"), {"a"})
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stopped()
    assert ids(database) == []


def test_newer_schema_is_refused_and_untouched(database: Database) -> None:
    """A database of a newer draht is neither used nor moved."""
    add(database, "h1", "a")
    connection = sqlite3.connect(database.path)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    for attempt in (database.check, lambda: ids(database)):
        with pytest.raises(NewerSchemaError, match=r"version 3, this draht knows 2") as caught:
            attempt()
        assert caught.value.hint
    assert sorted(path.name for path in database.directory.iterdir()) == ["state.db"]
    assert not database.notices


def test_migration_keeps_an_older_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older file is brought up to date by the missing statements only, and keeps its rows."""
    add(database, "h1", "a")
    migrations = (*schema._MIGRATIONS, "CREATE TABLE newer (x INTEGER) STRICT;")
    monkeypatch.setattr(schema, "_MIGRATIONS", migrations)
    monkeypatch.setattr(schema, "VERSION", len(migrations))
    with database.transaction() as tx:
        assert tx.connection.execute("SELECT COUNT(*) FROM newer").fetchone() == (0,)
    assert ids(database) == ["h1"]


def garbage(path: Path) -> None:
    """Random bytes."""
    path.write_bytes(random.Random(1).randbytes(20_000))


def truncate(path: Path) -> None:
    """The second half is missing."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 100)


def damage_page(path: Path) -> None:
    """The header is fine, pages behind it aren't."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 8192)


def foreign(path: Path) -> None:
    """A healthy database of another program."""
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


def drop_table(path: Path) -> None:
    """Healthy, but a table is gone."""
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE waiting")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("damage", [garbage, truncate, damage_page, foreign, drop_table])
def test_unreadable_file_is_kept_and_replaced(database: Database, damage: object) -> None:
    """Whatever is wrong with the file, it is moved aside whole, and a new one works at once."""
    add(database, "h1", "a")
    assert callable(damage)
    damage(database.path)
    content = database.path.read_bytes()
    database.check()
    assert ids(database) == []
    add(database, "h2", "a")
    (kept,) = database.directory.glob("state.db.unreadable-*")
    assert kept.read_bytes() == content
    (notice,) = database.notices
    assert str(kept) in notice
    assert "\n" not in notice
    database.check()
    assert ids(database) == ["h2"]


def test_damage_during_use_is_one_error(database: Database) -> None:
    """A file that turns bad between check and use gives one sentence and a hint, and the next command works."""
    add(database, "h1", "a")
    garbage(database.path)
    with pytest.raises(StateLostError, match="moved aside") as caught:
        ids(database)
    assert caught.value.hint
    assert ids(database) == []


def test_second_process_does_not_move_the_new_file(database: Database) -> None:
    """Two processes that meet the same garbage move it once: the second sees that it is gone."""
    add(database, "h1", "a")
    garbage(database.path)
    other = Database(database.directory, busy_seconds=10)
    database.check()
    add(database, "h2", "a")
    other._move_aside("seen before the first one moved it")
    assert ids(other) == ["h2"]
    assert not other.notices


def test_deleted_file_is_made_again(database: Database) -> None:
    """A lost database is an empty one."""
    add(database, "h1", "a")
    for path in database.directory.iterdir():
        path.unlink()
    database.check()
    assert ids(database) == []


def garbage_everywhere(path: Path) -> None:
    """Random bytes, and nothing in the log that could stand in for them."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    garbage(path)


@pytest.mark.parametrize("loss", [garbage_everywhere, Path.unlink])
def test_an_idle_connection_disturbs_nobody(database: Database, loss: Callable[[Path], None]) -> None:
    """The log stays between transactions, others write meanwhile, and it outlives the loss of the file unharmed."""
    with database.kept_open():
        add(database, "h1", "a")
        assert (database.directory / "state.db-wal").exists()
        add(Database(database.directory), "h2", "b")
        assert ids(database) == ["h1", "h2"]
        loss(database.path)
        database.check()
        add(database, "h3", "a")
        log = (database.directory / "state.db-wal").exists()
    assert ids(database) == ["h3"]
    assert not log
    database.check()
    assert ids(database) == ["h3"]


def test_many_processes_create_it_at_once(tmp_path: Path) -> None:
    """Twelve processes that meet an empty directory make one database, and no insert is lost."""
    script = (
        "import sys; from pathlib import Path; from draht.driver import holds\n"
        "from draht.driver.database import Database\n"
        "sys.path[:0] = sys.argv[3:]; from holding import hold\n"
        "database = Database(Path(sys.argv[1])); database.check()\n"
        "with database.transaction() as tx: holds.insert(tx, hold('h' + sys.argv[2]), {sys.argv[2]})\n"
    )
    tests = str(Path(__file__).parents[1])
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "state"), str(number), tests])
        for number in range(12)
    ]
    assert [process.wait() for process in processes] == [0] * 12
    assert len(ids(Database(tmp_path / "state"))) == 12


@pytest.mark.parametrize("reading", [False, True])
def test_nobody_migrates_a_file_that_is_being_judged(
    database: Database, monkeypatch: pytest.MonkeyPatch, reading: bool
) -> None:
    """A look that saw one half before and one half after a migration took the file for another program's."""
    add(database, "h1", "a")
    judged = []

    def judge(connection: sqlite3.Connection, *, path: str) -> bool:
        before = schema.is_current(connection, path=path)
        handle = os.open(database.directory, os.O_RDONLY)
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(handle)
        judged.append(before)
        return before

    monkeypatch.setattr("draht.driver.database.is_current", judge)
    with database.reading() if reading else database.transaction() as tx:
        assert [held.id for held in holds.all_holds(tx)] == ["h1"]
    assert judged == [True]


def test_writer_that_never_ends(database: Database) -> None:
    """Another writer is waited for, but not for ever."""
    add(database, "h1", "a")
    database.busy_seconds = 0.05
    blocking = sqlite3.connect(database.path, isolation_level=None)
    blocking.execute("BEGIN IMMEDIATE")
    with pytest.raises(StateError, match="locked") as caught:
        add(database, "h2", "b")
    assert "draht ps" in str(caught.value.hint)
    blocking.close()
    add(database, "h2", "b")


def test_threads_and_readers_do_not_disturb_each_other(database: Database) -> None:
    """A reader sees complete transactions while others write."""
    add(database, "h0", "0")
    threads = [threading.Thread(target=add, args=(database, f"h{n}", f"{n}", f"{n}b")) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with database.reading() as tx:
            units, rows = holds.held_units(tx), holds.all_holds(tx)
            assert len(units) == 2 * len(rows) - 1
    for thread in threads:
        thread.join()
    assert len(ids(database)) == 9


@pytest.mark.parametrize(
    ("directory_mode", "file_mode"), [(0o700, 0o600), (0o755, 0o644), (0o2770, 0o660), (0o1777, 0o666)]
)
def test_whoever_may_write_the_directory_may_hold(tmp_path: Path, directory_mode: int, file_mode: int) -> None:
    """The file, and what SQLite puts beside it, has the directory's read and write bits."""
    directory = tmp_path / "state"
    directory.mkdir()
    directory.chmod(directory_mode)
    database = Database(directory)
    with database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"a"})
        modes = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm"), file_mode)


def as_user(uid: int, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script as another user of group 4242.

    The interpreter may lie where that user can't read, so what is imported only when it is used (`Path.as_uri` since
    Python 3.13) is imported before.
    """
    prelude = (
        "import os, sys, urllib.parse; from pathlib import Path; sys.path[:0] = sys.argv[1:2];"
        "from draht.driver import holds;"
        "from draht.driver.database import Database; from draht.driver.errors import DriverError\n"
        "from holding import hold\n"
        f"os.setgroups([]); os.setgid(4242); os.setuid({uid}); database = Database(Path(sys.argv[2]))\n"
        "try:\n"
    )
    body = "".join(f"    {line}\n" for line in script.splitlines())
    tail = "except DriverError as error: print(type(error).__name__, '|', error, '|', error.hint)\n"
    return subprocess.run(
        [sys.executable, "-c", prelude + body + tail, str(Path(__file__).parents[1]), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


INSERT = "with database.transaction() as tx: holds.insert(tx, hold('h%d' % os.getuid()), {sys.argv[3]})\nprint('held')"
LIST = "with database.reading() as tx: print([h.id for h in holds.all_holds(tx)])"


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user can reach, unlike pytest's own."""
    require(os.geteuid() == 0, "becoming two users needs root")
    directory = Path("/tmp") / f"draht-test-{os.getpid()}"
    directory.mkdir()
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def test_two_users_of_one_group_share_a_database(open_directory: Path) -> None:
    """In a setgid directory of their group, two users refuse each other's devices and see each other's holds."""
    shared = open_directory / "shared"
    shared.mkdir()
    os.chown(shared, 0, 4242)
    shared.chmod(0o2770)
    assert as_user(1001, INSERT, str(shared), "gpu0").stdout == "held\n"
    assert as_user(1002, INSERT, str(shared), "gpu0").stdout.startswith("HeldError")
    assert as_user(1002, INSERT, str(shared), "gpu1").stdout == "held\n"
    assert as_user(1001, LIST, str(shared)).stdout == "['h1001', 'h1002']\n"


def test_others_may_look_into_roots_database_but_not_hold(open_directory: Path) -> None:
    """Root's database can be read by everybody, at rest and in use; writing it is refused with the way out."""
    directory = open_directory / "root"
    directory.mkdir(mode=0o755)
    database = Database(directory)
    add(database, "h1", "gpu0")
    assert as_user(1001, LIST, str(directory)).stdout == "['h1']\n"
    with database.transaction() as tx:
        holds.insert(tx, hold("h2"), {"gpu1"})
        assert as_user(1001, LIST, str(directory)).stdout == "['h1']\n"
    answer = as_user(1001, INSERT, str(directory), "gpu2").stdout
    assert answer.startswith("StateError | ")
    assert "DRAHT_STATE_DIR" in answer
    assert ids(database) == ["h1", "h2"]


def test_directory_that_may_not_be_made(open_directory: Path) -> None:
    """A state directory that can't be made is one sentence with a hint."""
    answer = as_user(1001, INSERT, str(open_directory / "new/state"), "gpu0").stdout
    assert answer.startswith("StateError | ")
    assert answer.count("\n") == 1


def test_reading_needs_a_database(database: Database) -> None:
    """Looking makes nothing."""
    with pytest.raises(StateError, match="there is no holds database"), database.reading():
        pass
    assert not database.directory.exists()


def test_state_directory_is_a_file(tmp_path: Path) -> None:
    """A file where the directory should be is one sentence with a hint."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StateError) as caught:
        Database(tmp_path / "state").check()
    assert caught.value.hint


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    with small_disk(tmp_path / "small") as directory:
        yield directory


def test_full_disk_loses_nothing(disk: Path) -> None:
    """On a full disk a transaction is refused as a whole with a hint; with room again it goes on."""
    database = Database(disk / "state")
    add(database, "h1", "a")
    filler = fill(disk)

    def many() -> None:
        with database.transaction() as tx:
            for number in range(2000):
                holds.insert(tx, hold(f"big{number}"), {f"u{number}"})

    with pytest.raises(StateError, match=r"full|disk I/O") as caught:
        many()
    assert "make room" in str(caught.value.hint) or "full" in str(caught.value.hint)
    filler.unlink()
    assert ids(database) == ["h1"]
    add(database, "h2", "b")
    assert ids(database) == ["h1", "h2"]
    assert not list((disk / "state").glob("*.unreadable-*"))


def test_read_only_file_system(disk: Path) -> None:
    """On a read-only file system holding is refused with a hint, and looking still works."""
    database = Database(disk / "state")
    add(database, "h1", "a")
    read_only(disk)
    with pytest.raises(StateError) as caught:
        add(database, "h2", "b")
    assert "DRAHT_STATE_DIR" in str(caught.value.hint)
    with database.reading() as tx:
        assert [held.id for held in holds.all_holds(tx)] == ["h1"]


def test_audit_survives_what_it_tells_of(database: Database) -> None:
    """A process killed in the middle of a transaction leaves neither the change nor its entry."""
    add(database, "h0", "z")
    pid = os.fork()
    if pid == 0:
        with database.transaction() as tx:
            holds.insert(tx, hold("h1"), {"a"})
            os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    assert ids(database) == ["h0"]
    with database.transaction() as tx:
        assert [entry.hold for entry in audit.entries(tx)] == ["h0"]
