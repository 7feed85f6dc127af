"""What happened to holds and claims, in order: append-only, bounded, readable after everything else is gone.

Each entry is written in the transaction of the change it tells of, so the trail and the tables never disagree. Old
entries go when there are more than `LIMIT`, except those of holds that still exist: every hold can be explained.
"""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from draht.driver.database import Transaction

__all__ = ["LIMIT", "Entry", "Event", "Point", "continues", "entries", "origin", "point", "record", "single_line"]

LIMIT = 10_000
"""Entries kept: months of a busy workstation, about 2 MB."""

Event = Literal[
    "held",
    "created",
    "started",
    "released",
    "freed",
    "failed",
    "adopted",
    "conflict",
    "waiting",
    "withdrawn",
    "preparing",
    "prepared",
]
"""*held* devices chosen and held; *created* the engine made the container; *started* the engine is told to start it;
*released* somebody asks for its end; *freed* the hold is gone, after its container and spec; *failed* a step failed (a
*freed* follows); *adopted* a running container got the hold that the database had lost; *conflict* a running container
has devices that somebody else holds; *waiting* and *withdrawn* tell of tickets of the queue. Of a claim, whose UID
stands where a hold's id does: *preparing* its devices are taken, *prepared* containers can have them, *adopted* it was
found in a CDI spec after the database had been lost, *failed* and *freed* as for holds."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the trail.

    Attributes:
        at: Seconds since the epoch.
        event: See `Event`.
        hold: The hold it is about, or the UID of a claim, if any.
        detail: One sentence fragment for people.
        pid: The process that did it.
        uid: Its user.
    """

    id: int
    at: float
    boot_id: str
    event: Event
    hold: str | None
    detail: str
    pid: int
    uid: int


def single_line(text: str) -> str:
    """The text on one line: white space becomes blanks, other control characters question marks."""
    text = " ".join(text.split())
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def record(tx: Transaction, event: Event, hold: str | None, detail: str, *, limit: int = LIMIT) -> None:
    """Append an entry and drop the oldest ones beyond the limit."""
    number = tx.connection.execute(
        "INSERT INTO audit (at, boot_id, event, hold, detail, pid, uid) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (tx.now, tx.boot_id, event, hold, single_line(detail), tx.actor.pid, os.getuid()),
    ).lastrowid
    tx.connection.execute(
        "DELETE FROM audit WHERE id <= ? AND (hold IS NULL OR hold NOT IN (SELECT id FROM holds))",
        ((number or 0) - limit,),
    )


class Point(msgspec.Struct, frozen=True):
    """A moment in the life of a database: which one it is, and its newest entry then (number, time, process)."""

    origin: str
    newest: tuple[int, float, int]


def origin(tx: Transaction) -> str:
    """Which database this is; one that was begun anew is another one."""
    return str(tx.connection.execute("SELECT id FROM origin").fetchone()[0])


def point(tx: Transaction) -> Point:
    """Now."""
    row = tx.connection.execute("SELECT id, at, pid FROM audit ORDER BY id DESC LIMIT 1").fetchone()
    return Point(origin(tx), row or (0, 0.0, 0))


def continues(tx: Transaction, since: Point) -> bool:
    """Whether this is the database of that moment, with everything that was in it.

    False after a loss: the file was begun anew, or an older state of it came back. "Not held" means nothing then until
    what runs has been looked at.
    """
    if origin(tx) != since.origin:
        return False
    number = since.newest[0]
    row = tx.connection.execute("SELECT id, at, pid FROM audit WHERE id = ?", (number,)).fetchone()
    return number == 0 or row == since.newest


def entries(tx: Transaction, hold: str | None = None) -> list[Entry]:
    """The trail, oldest first; of one hold if given."""
    rows = tx.connection.execute(
        "SELECT id, at, boot_id, event, hold, detail, pid, uid FROM audit WHERE ? IS NULL OR hold = ? ORDER BY id",
        (hold, hold),
    )
    return [
        Entry(id=number, at=at, boot_id=boot, event=event, hold=of, detail=detail, pid=pid, uid=uid)
        for number, at, boot, event, of, detail, pid, uid in rows
    ]
