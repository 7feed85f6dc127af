"""Getting claims back into the machine's database from the CDI specs that carry them, after the database was lost.

It knows rows and spec files, of any driver, and calls none: whether everything else of such a claim is there is seen
when it is prepared or recovered. ``draht run`` calls it too, so that a lost database doesn't make the devices of pods
look free.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from draht.driver import audit
from draht.driver.claims import rows as claims
from draht.driver.claims.spec import Note, parse_file_name, read_note
from draht.driver.database import Database
from draht.driver.errors import HeldError

__all__ = ["Adopted", "adopt"]

SPEC_BYTES = 8 * 1024 * 1024
"""Larger files aren't specs of draht."""


@dataclass(slots=True)
class Adopted:
    """What was found.

    Attributes:
        claims: Records of the claims that are in the database again.
        unreadable: UIDs of the asked driver that have a spec without a note.
        problems: One sentence each.
    """

    claims: list[claims.Record] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def adopt(database: Database, directories: Iterable[Path], *, driver: str | None = None) -> Adopted:
    """Insert the claims that have a spec and no row.

    Args:
        database: The machine's database.
        directories: Where specs may be.
        driver: Whose claims; None: of every driver, but only those that say that this database has them.

    Raises:
        StateError: The database can't be used.
    """
    found = Adopted()
    candidates = list(_specs(directories, driver))
    if not candidates:
        return found
    with database.transaction() as tx:
        known = claims.keys(tx)
    for path, of, uid in candidates:
        if (uid, of) in known:
            continue
        note = _note(path)
        if note is None or (note.record.uid, note.record.driver) != (uid, of):
            found.unreadable.append(uid)
        elif driver is not None or note.state == str(database.directory.resolve()):
            _insert(database, path, note.record, found)
    return found


def _insert(database: Database, path: Path, record: claims.Record, found: Adopted) -> None:
    with database.transaction() as tx:
        # Whoever unprepares removes the spec first and the row then: without the spec the claim is gone.
        if not path.exists() or claims.find(tx, record.uid, record.driver) is not None:
            return
        try:
            claims.insert(tx, record, state="prepared", adopted=True)
        except HeldError:
            names = ", ".join(record.labels)
            claims.insert(tx, record, state="prepared", adopted=True, units=False)
            audit.record(tx, "conflict", record.uid, f"claim {record.title} has {names}, which others hold")
            found.problems.append(
                f"claim {record.title} was prepared with {names}, which somebody else has now; end one of them"
            )
    found.claims.append(record)


def _specs(directories: Iterable[Path], driver: str | None) -> Iterable[tuple[Path, str, str]]:
    for directory in directories:
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = sorted(path.name for path in directory.iterdir())
        for name in names:
            parsed = parse_file_name(name)
            if parsed is not None and driver in (None, parsed[0]):
                yield directory / name, *parsed


def _note(path: Path) -> Note | None:
    with contextlib.suppress(OSError):
        if path.stat().st_size <= SPEC_BYTES:
            return read_note(path.read_bytes())
    return None
