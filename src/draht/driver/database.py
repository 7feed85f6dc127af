"""The one truth about a machine: a SQLite file that says who holds what, who waits, and what happened.

Owns opening, locking, recovery and the meaning of every SQLite failure. Why a connection per transaction: a process
must never go on writing to a file that somebody has moved aside, and nothing is open during an effect (an engine
call, a file written) by construction. WAL with ``synchronous=FULL`` makes a committed transaction survive a crash of
the machine; ``BEGIN IMMEDIATE`` makes look-and-write one step.

It doesn't know what holds are (see `holds`, `waiting`, `audit`) and never asks an engine: after a loss, the caller
reconciles with what runs, which rebuilds the rows.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from draht.driver.errors import DriverError, StateError, StateLostError
from draht.driver.process import ProcessIdentity, boot_id, identify
from draht.driver.schema import is_current, migrate

__all__ = ["FILE", "Database", "Transaction"]

FILE = "state.db"
"""Name of the database in the state directory."""

BUSY_SECONDS = 30.0
"""How long to wait for other writers. Transactions take milliseconds; a minute of waiting means a stuck file system."""

_GARBAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@dataclass(frozen=True, slots=True)
class Transaction:
    """What the functions of `holds`, `waiting` and `audit` work on: one open transaction and its circumstances.

    Attributes:
        connection: The connection, inside the transaction.
        now: Seconds since the epoch, one value for the whole transaction.
        boot_id: The kernel's id of this boot.
        actor: The process that does this.
    """

    connection: sqlite3.Connection
    now: float
    boot_id: str
    actor: ProcessIdentity


class Database:
    """The database in one state directory.

    Args:
        directory: The state directory; made if missing. Whoever may write it may hold: the file gets the directory's
            read and write bits, so a directory of mode 2770 is shared by its group.
        clock: Seconds since the epoch.
        busy_seconds: How long a transaction waits for other writers.
    """

    def __init__(
        self, directory: Path, *, clock: Callable[[], float] = time.time, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.directory = directory
        self.path = directory / FILE
        self.clock = clock
        self.busy_seconds = busy_seconds
        self.notices: list[str] = []
        """What happened to the file that a person should know, in order; the caller prints and clears it."""

    def check(self) -> None:
        """Look at the whole file once; what is unreadable is moved aside and a new database begun.

        Call it at the start of a command and reconcile afterwards.

        Raises:
            StateError: The file can't be used at all; see the hint.
        """
        with self._failures():
            try:
                with self._connection() as connection:
                    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
                if verdict != "ok":
                    self._move_aside(verdict.splitlines()[0])
            except sqlite3.DatabaseError as error:
                if not _is_garbage(error):
                    raise
                self._move_aside(str(error))
            with self._connection():
                pass

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One short write transaction: committed at the end of the block, undone if the block raises.

        Raises:
            StateLostError: The file turned out to be garbage; it has been moved aside, nothing was written.
            StateError: It can't be written (permissions, disk, another writer for too long); nothing was written.
        """
        with self._failures(), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._transaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One consistent look without writing; also works for a user who may read the file but not write it.

        Raises:
            StateError: There is no database, or it can't be read.
        """
        with self._failures(), self._read_only() as connection:
            connection.execute("BEGIN")
            yield self._transaction(connection)

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep an idle connection for a while, for a process with many transactions: each is about twice as fast.

        Without it the last connection that is closed moves the log into the file, which syncs the disk some times more.
        Nothing is locked by it. Not across a fork: SQLite's locks would seem to be the child's, too.

        Raises:
            StateError: The file can't be used at all.
        """
        with ExitStack() as stack:
            with self._failures():
                connection = stack.enter_context(self._connection())
                # The log is opened by the first look.
                connection.execute("SELECT id FROM origin").fetchone()
            yield

    def _transaction(self, connection: sqlite3.Connection) -> Transaction:
        actor = identify(os.getpid()) or ProcessIdentity(pid=os.getpid(), started=0, boot_id=boot_id())
        return Transaction(connection=connection, now=self.clock(), boot_id=actor.boot_id, actor=actor)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if not self.path.exists():
            self._create()
        connection = sqlite3.connect(self.path, timeout=self.busy_seconds, isolation_level=None)
        try:
            self._set_up(connection)
            yield connection
        finally:
            connection.close()

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        with self._file_lock(fcntl.LOCK_SH):
            # Not while somebody migrates: a look that sees half of it takes the file for another program's.
            current = is_current(connection, path=str(self.path))
        if not current:
            with self._file_lock(fcntl.LOCK_EX):
                # Switching to WAL doesn't wait for other connections as a transaction does; the lock stands in for it.
                connection.execute("PRAGMA journal_mode = WAL")
                migrate(connection)

    def _create(self) -> None:
        """Make the directory and an empty file with the directory's read and write bits."""
        if not self.directory.exists():
            # The command lines in it are no more secret than /proc/PID/cmdline, and who holds a GPU is what others
            # want to know; a user's own directory stays private as XDG wants it.
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o755 if os.geteuid() == 0 else 0o700)
        with self._file_lock(fcntl.LOCK_EX):
            if not self.path.exists():
                mode = self.directory.stat().st_mode & 0o666
                # O_EXCL: never follow or adopt what somebody put there in a directory that others may write.
                handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
                try:
                    if os.fstat(handle).st_uid == os.geteuid():
                        os.fchmod(handle, mode)
                finally:
                    os.close(handle)

    @contextmanager
    def _read_only(self) -> Iterator[sqlite3.Connection]:
        if not self.path.exists():
            raise StateError("there is no holds database", where=str(self.path))
        try:
            connection, current = self._look("mode=ro")
        except sqlite3.OperationalError:
            # A WAL database at rest has no `-shm` file, and who may only read can't make one; then nobody writes it.
            connection, current = self._look("immutable=1")
        try:
            if not current:
                raise StateError(
                    "the holds database is of an older draht and can only be brought up to date by who may write it",
                    where=str(self.path),
                    hint="run `draht ps` once as its owner",
                )
            yield connection
        finally:
            connection.close()

    def _look(self, mode: str) -> tuple[sqlite3.Connection, bool]:
        uri = f"{self.path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=self.busy_seconds, isolation_level=None)
        try:
            with self._file_lock(fcntl.LOCK_SH):
                return connection, is_current(connection, path=str(self.path))
        except BaseException:
            connection.close()
            raise

    @contextmanager
    def _file_lock(self, operation: int) -> Iterator[None]:
        """Make, migrate or replace the file alone (``LOCK_EX``), or judge it meanwhile unchanged (``LOCK_SH``).

        The kernel ends the lock with the process.
        """
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, operation)
            yield
        finally:
            os.close(handle)

    def _move_aside(self, reason: str) -> None:
        """Rename an unreadable database (with its WAL) so that nothing is lost, unless somebody already did."""
        with self._file_lock(fcntl.LOCK_EX):
            if not self._garbage():
                return
            stamp = datetime.fromtimestamp(self.clock(), tz=UTC).strftime("%Y%m%dT%H%M%S")
            kept = next(
                name
                for number in range(10_000)
                if not (name := self.directory / f"{FILE}.unreadable-{stamp}{f'.{number}' if number else ''}").exists()
            )
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").rename(f"{kept}{suffix}")
        self.notices.append(
            f"the holds database was unreadable ({reason}) and is kept as {kept}; a new one is built from what runs"
        )

    def _garbage(self) -> bool:
        """Whether the file is unreadable now, seen with the lock held (another process may have replaced it)."""
        try:
            connection = sqlite3.connect(self.path, timeout=self.busy_seconds, isolation_level=None)
            try:
                verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
                is_current(connection, path=str(self.path))
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            return _is_garbage(error)
        return verdict != "ok"

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn what SQLite and the system say into one sentence and a next step."""
        try:
            yield
        except DriverError:
            raise
        except sqlite3.IntegrityError:
            raise
        except sqlite3.DatabaseError as error:
            if _is_garbage(error):
                self._move_aside(str(error))
                raise StateLostError(
                    f"the holds database became unreadable ({error}) and was moved aside",
                    where=str(self.path),
                    hint="run the command again: holds of running containers are found again",
                ) from None
            raise self._unusable(str(error), getattr(error, "sqlite_errorcode", 0) & 0xFF) from None
        except OSError as error:
            # Only what happened to our own files; an effect of the caller has no business in a transaction.
            code = {28: sqlite3.SQLITE_FULL, 122: sqlite3.SQLITE_FULL}.get(error.errno or 0, sqlite3.SQLITE_CANTOPEN)
            raise self._unusable(error.strerror or str(error), code) from None

    def _unusable(self, reason: str, code: int) -> StateError:
        hints = {
            sqlite3.SQLITE_FULL: "make room on that file system; nothing was changed",
            sqlite3.SQLITE_IOERR: "check that file system (full, or failing); nothing was changed",
            sqlite3.SQLITE_BUSY: "another draht has been writing for too long; look for a stuck one with `draht ps`",
            sqlite3.SQLITE_LOCKED: "another draht has been writing for too long; look for a stuck one with `draht ps`",
        }
        hint = hints.get(code, f"make {self.directory} writable for you, or set DRAHT_STATE_DIR to a directory that is")
        return StateError(f"the holds database can't be used: {reason}", where=str(self.path), hint=hint)


def _is_garbage(error: sqlite3.DatabaseError) -> bool:
    """Damage of the file itself, as opposed to a full disk, a missing permission or a lock."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF in _GARBAGE if code is not None else type(error) is sqlite3.DatabaseError
