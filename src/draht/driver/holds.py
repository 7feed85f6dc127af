"""Holds: which devices are taken, by which container, for whom. Rows and the rules between them.

A hold follows the container. It is ``starting`` until the engine has been told to start the container, ``running``
from then on, and ``releasing`` once somebody has decided that it ends. Every function works inside a transaction of
the caller; none asks an engine or writes a file.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from draht.driver import audit
from draht.driver.database import Transaction
from draht.driver.errors import HeldError
from draht.driver.process import ProcessIdentity

__all__ = [
    "HeldDevice",
    "Hold",
    "HoldState",
    "all_holds",
    "delete",
    "find",
    "held_units",
    "in_short",
    "insert",
    "let_go",
    "new_id",
    "one_line",
    "set_container",
    "set_init",
    "set_state",
    "spec_paths",
    "units_of",
]

HoldState = Literal["starting", "running", "releasing"]


class HeldDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a hold: its identity and a name for people."""

    id: str
    label: str


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """One hold.

    Attributes:
        id: Short and unique; part of the container's label and of the transient spec's name.
        state: See `HoldState`.
        engine: The engine that has, or will have, the container.
        container: The engine's id of it, once there is one.
        init: The container's first process, once somebody saw it.
        machine: Profile or host the devices belong to.
        simulated: The devices don't exist.
        devices: What is held.
        cdi_names: The CDI names given to the engine.
        command: What runs, for people.
        uid: Owner.
        user: Owner's name, or the uid as text.
        starter: The draht process that made the hold; pid 0 once it has let go of it.
        since: Seconds since the epoch.
    """

    id: str
    state: HoldState = "starting"
    engine: str
    container: str | None = None
    init: ProcessIdentity | None = None
    machine: str
    simulated: bool
    devices: tuple[HeldDevice, ...]
    cdi_names: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    uid: int
    user: str
    starter: ProcessIdentity
    since: float


def new_id() -> str:
    """An id for a hold. It begins with a letter: CDI before 0.5.0 wants that of device names."""
    return "h" + secrets.token_hex(5)


def insert(
    tx: Transaction, hold: Hold, units: Collection[str], *, specs: Iterable[str] = (), event: audit.Event = "held"
) -> None:
    """Add a hold with its units and the paths of the CDI specs that will be written for it.

    Raises:
        HeldError: One of the units belongs to another hold or to a claim (primary key and trigger of ``held_units``),
            or the id exists. The transaction is still usable and has nothing of this hold.
    """
    assert units, "a hold without units would protect nothing"
    tx.connection.execute("SAVEPOINT hold")
    try:
        tx.connection.execute(
            "INSERT INTO holds (id, state, engine, container, init_pid, init_started, machine, simulated, devices,"
            " cdi_names, command, uid, user, starter_pid, starter_started, boot_id, since)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                hold.id,
                hold.state,
                hold.engine,
                hold.container,
                hold.init.pid if hold.init else None,
                hold.init.started if hold.init else None,
                hold.machine,
                int(hold.simulated),
                _text(hold.devices),
                _text(hold.cdi_names),
                _text(hold.command),
                hold.uid,
                hold.user,
                hold.starter.pid,
                hold.starter.started,
                hold.starter.boot_id,
                hold.since,
            ),
        )
        for unit in sorted(units):
            tx.connection.execute("INSERT INTO held_units (unit, hold) VALUES (?, ?)", (unit, hold.id))
        for path in specs:
            tx.connection.execute("INSERT INTO specs (path, hold) VALUES (?, ?)", (path, hold.id))
    except sqlite3.IntegrityError as error:
        tx.connection.execute("ROLLBACK TO hold")
        tx.connection.execute("RELEASE hold")
        raise HeldError(f"a device of hold {hold.id} is held already ({error})") from None
    tx.connection.execute("RELEASE hold")
    names = ", ".join(device.label for device in hold.devices)
    audit.record(tx, event, hold.id, f"{names} for {hold.user}, {hold.engine}: {one_line(hold.command)}")


def in_short(labels: Iterable[str]) -> str:
    """Labels of devices for people, with runs of numbers joined: ``GPU 0-3, GPU 6``."""
    runs: list[tuple[str, int | None, int | None]] = []
    for label in labels:
        word, _, digits = label.rpartition(" ")
        if not word or not digits.isdecimal():
            runs.append((label, None, None))
        elif runs and runs[-1][0] == word and runs[-1][2] == int(digits) - 1:
            runs[-1] = (word, runs[-1][1], int(digits))
        else:
            runs.append((word, int(digits), int(digits)))
    return ", ".join(
        word if first is None else f"{word} {first}" if first == last else f"{word} {first}-{last}"
        for word, first, last in runs
    )


def one_line(command: Iterable[str]) -> str:
    """A command for people: on one line, and nothing in it that a terminal would obey."""
    return audit.single_line(" ".join(command)) or "no command"


def all_holds(tx: Transaction) -> list[Hold]:
    """All holds, oldest first."""
    return [_hold(row) for row in tx.connection.execute(f"{_SELECT} ORDER BY since, id")]


def find(tx: Transaction, hold: str) -> Hold | None:
    """The hold with that id, or None."""
    row = tx.connection.execute(f"{_SELECT} WHERE id = ?", (hold,)).fetchone()
    return _hold(row) if row else None


def held_units(tx: Transaction) -> dict[str, str]:
    """Unit → id of the hold, or UID of a claim, that has it; of a shared unit, one of its claims."""
    return dict(tx.connection.execute("SELECT unit, COALESCE(hold, claim) FROM held_units"))


def units_of(tx: Transaction, hold: str) -> frozenset[str]:
    """The units of one hold."""
    return frozenset(unit for (unit,) in tx.connection.execute("SELECT unit FROM held_units WHERE hold = ?", (hold,)))


def spec_paths(tx: Transaction) -> dict[str, str]:
    """Path of a transient CDI spec → id of its hold."""
    return dict(tx.connection.execute("SELECT path, hold FROM specs"))


def set_container(tx: Transaction, hold: str, container: str) -> bool:
    """Record the container the engine made; False if the hold doesn't exist any more or is ending."""
    changed = tx.connection.execute(
        "UPDATE holds SET container = ? WHERE id = ? AND state = 'starting'", (container, hold)
    ).rowcount
    if changed:
        audit.record(tx, "created", hold, f"container {container}")
    return bool(changed)


def set_state(tx: Transaction, hold: str, state: HoldState, *, after: Sequence[HoldState]) -> bool:
    """Move a hold on from one of the given states; False if it is in none of them or gone."""
    marks = ", ".join("?" * len(after))
    return bool(
        tx.connection.execute(
            f"UPDATE holds SET state = ? WHERE id = ? AND state IN ({marks})",  # noqa: S608 — only question marks
            (state, hold, *after),
        ).rowcount
    )


def set_init(tx: Transaction, hold: str, init: ProcessIdentity) -> None:
    """Remember the container's first process, which other users can see where they can't ask the engine."""
    tx.connection.execute(
        "UPDATE holds SET init_pid = ?, init_started = ? WHERE id = ? AND init_pid IS NOT ?",
        (init.pid, init.started, hold, init.pid),
    )


def let_go(tx: Transaction, hold: str) -> None:
    """The starter won't end this hold, its container is detached; whoever reconciles does, however long it lives."""
    tx.connection.execute("UPDATE holds SET starter_pid = 0 WHERE id = ?", (hold,))


def delete(tx: Transaction, hold: str, why: str) -> bool:
    """Free the hold's devices: container and spec must be gone. False if somebody else did it already."""
    changed = tx.connection.execute("DELETE FROM holds WHERE id = ?", (hold,)).rowcount
    if changed:
        audit.record(tx, "freed", hold, why)
    return bool(changed)


_SELECT = (
    "SELECT id, state, engine, container, init_pid, init_started, machine, simulated, devices, cdi_names, command,"
    " uid, user, starter_pid, starter_started, boot_id, since FROM holds"
)


def _hold(row: tuple[object, ...]) -> Hold:
    (hold, state, engine, container, init_pid, init_started, machine, simulated, devices, names, command) = row[:11]
    (uid, user, starter_pid, starter_started, boot, since) = row[11:]
    init = {"pid": init_pid, "started": init_started, "boot_id": boot} if init_pid is not None else None
    return msgspec.convert(
        {
            "id": hold,
            "state": state,
            "engine": engine,
            "container": container,
            "init": init,
            "machine": machine,
            "simulated": bool(simulated),
            "devices": msgspec.json.decode(str(devices)),
            "cdi_names": msgspec.json.decode(str(names)),
            "command": msgspec.json.decode(str(command)),
            "uid": uid,
            "user": user,
            "starter": {"pid": starter_pid, "started": starter_started, "boot_id": boot},
            "since": since,
        },
        Hold,
    )


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
