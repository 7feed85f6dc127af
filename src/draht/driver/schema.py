"""The tables of the machine's database, their version, and how an older file becomes a current one.

Knows SQL only; the meaning of rows lives beside the functions that read them (`holds`, `claims`, `waiting`, `audit`).
"""

from __future__ import annotations

import sqlite3

from draht.driver.errors import NewerSchemaError

__all__ = ["APPLICATION_ID", "VERSION", "is_current", "migrate"]

APPLICATION_ID = 0x64726168
"""``drah`` in the file header, so that `file` and draht tell this database from any other SQLite file."""

_MIGRATIONS = (
    # 0 → 1. `origin` tells a database that was begun anew from the one before it.
    # `held_units.unit` being the primary key is what makes a double hold impossible, whatever the code does.
    """
    CREATE TABLE origin (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    INSERT INTO origin VALUES (lower(hex(randomblob(8))));
    CREATE TABLE holds (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL CHECK (state IN ('starting', 'running', 'releasing')),
        engine TEXT NOT NULL,
        container TEXT,
        init_pid INTEGER, init_started INTEGER,
        machine TEXT NOT NULL,
        simulated INTEGER NOT NULL,
        devices TEXT NOT NULL,
        cdi_names TEXT NOT NULL,
        command TEXT NOT NULL,
        uid INTEGER NOT NULL, user TEXT NOT NULL,
        starter_pid INTEGER NOT NULL, starter_started INTEGER NOT NULL,
        boot_id TEXT NOT NULL,
        since REAL NOT NULL
    ) STRICT;
    CREATE TABLE held_units (
        unit TEXT PRIMARY KEY,
        hold TEXT NOT NULL REFERENCES holds(id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX held_units_by_hold ON held_units(hold);
    CREATE TABLE specs (
        path TEXT PRIMARY KEY,
        hold TEXT NOT NULL REFERENCES holds(id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE waiting (
        ticket INTEGER PRIMARY KEY AUTOINCREMENT,
        demands TEXT NOT NULL,
        command TEXT NOT NULL,
        uid INTEGER NOT NULL, user TEXT NOT NULL,
        pid INTEGER NOT NULL, started INTEGER NOT NULL, boot_id TEXT NOT NULL,
        since REAL NOT NULL,
        deadline REAL
    ) STRICT;
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        boot_id TEXT NOT NULL,
        event TEXT NOT NULL,
        hold TEXT,
        detail TEXT NOT NULL,
        pid INTEGER NOT NULL,
        uid INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX audit_by_hold ON audit(hold);
    CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
    """,
    # 1 → 2. A claim is known per driver. A unit belongs to one hold, to one claim, or to shares of one device; shares
    # of one claim and whole devices of another in one unit are refused by the trigger, since no key can say it.
    """
    CREATE TABLE claims (
        uid TEXT NOT NULL,
        driver TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('preparing', 'prepared', 'unpreparing')),
        adopted INTEGER NOT NULL DEFAULT 0,
        boot_id TEXT NOT NULL,
        since REAL NOT NULL,
        record TEXT NOT NULL,
        answer TEXT,
        files TEXT NOT NULL DEFAULT '{}',
        PRIMARY KEY (uid, driver)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE units (
        unit TEXT NOT NULL,
        share TEXT NOT NULL DEFAULT '',
        device TEXT NOT NULL DEFAULT '',
        hold TEXT REFERENCES holds(id) ON DELETE CASCADE,
        claim TEXT, driver TEXT,
        PRIMARY KEY (unit, share),
        FOREIGN KEY (claim, driver) REFERENCES claims(uid, driver) ON DELETE CASCADE,
        CHECK ((hold IS NULL) + (claim IS NULL) = 1 AND (claim IS NULL) = (driver IS NULL))
    ) STRICT, WITHOUT ROWID;
    INSERT INTO units (unit, hold) SELECT unit, hold FROM held_units;
    DROP TABLE held_units;
    ALTER TABLE units RENAME TO held_units;
    CREATE INDEX held_units_by_hold ON held_units(hold) WHERE hold IS NOT NULL;
    CREATE INDEX held_units_by_claim ON held_units(claim, driver) WHERE claim IS NOT NULL;
    CREATE TRIGGER shares_of_one_device BEFORE INSERT ON held_units
        WHEN EXISTS (
            SELECT 1 FROM held_units
            WHERE unit = NEW.unit AND NOT (claim IS NEW.claim AND driver IS NEW.driver)
            AND (share = '' OR NEW.share = '' OR device <> NEW.device)
        )
        BEGIN SELECT RAISE(ABORT, 'the unit is taken'); END;
    """,
)

_TABLES = ({"audit", "held_units", "holds", "origin", "specs", "waiting"}, {"claims"})
"""What each version added; a file without one of them is damaged."""

VERSION = len(_MIGRATIONS)
"""The schema version this draht reads and writes (``PRAGMA user_version``)."""


def is_current(connection: sqlite3.Connection, *, path: str) -> bool:
    """Whether the file has this draht's schema; False means that `migrate` is needed.

    Raises:
        NewerSchemaError: The file has a newer version. It is not touched.
        sqlite3.DatabaseError: The file is not a database, or not one of draht's.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if application != APPLICATION_ID and (version or application or tables):
        raise sqlite3.DatabaseError("the file is a database of another program")
    if version > VERSION:
        raise NewerSchemaError(
            f"the holds database has schema version {version}, this draht knows {VERSION}",
            where=path,
            hint="use the newer draht that wrote it; or, when no container of draht runs, move the file away",
        )
    missing = set().union(*_TABLES[:version]) - tables
    if missing:
        raise sqlite3.DatabaseError(f"tables are missing: {', '.join(sorted(missing))}")
    return version == VERSION


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an older or empty file to `VERSION`, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated between the look above and the lock.
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        for statements in _MIGRATIONS[found:]:
            for statement in _statements(statements):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    """Split a script into complete statements; ``executescript`` would commit the open transaction first."""
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
