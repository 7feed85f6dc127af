"""The holds database seen from outside: there and healthy, absent, or not, without changing anything.

`draht.driver.database` repairs what it opens; a check that repairs would hide what it should show.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from draht.driver.database import FILE, Database
from draht.driver.errors import StateError
from draht.host.doctor import DatabaseState

__all__ = ["database_state"]

REBUILD = "run `draht ps`: an unreadable database is kept aside and a new one is built from what runs"


def database_state(directory: Path) -> DatabaseState:
    """Look at the database of a state directory."""
    path = directory / FILE
    if not path.exists():
        return "absent", "there is no holds database yet", ""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
        try:
            verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0]).splitlines()[0]
        finally:
            connection.close()
        if verdict != "ok":
            return "unreadable", f"the holds database is damaged: {verdict}", REBUILD
        with Database(directory).reading():
            pass
    except StateError as error:
        return "unreadable", error.message, error.hint or REBUILD
    except sqlite3.Error as error:
        return "unreadable", f"the holds database can't be read: {error}", REBUILD
    return "healthy", "the holds database is healthy", ""
