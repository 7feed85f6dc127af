"""The queue for devices that are all taken: tickets, served in their order.

The rule of fairness is `blocker`: a request may pass an earlier ticket only if that ticket can still be served at once
from what is left, or doesn't want any of the same devices. So a request for eight GPUs isn't starved by small ones, and
a free device that nobody before wants is never kept idle. Tickets of dead processes are dropped, and a stopped process
(Ctrl-Z) keeps its place but blocks nobody.

It decides nothing about which devices; the caller chooses, this module says whether the choice is fair.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from draht.driver import audit
from draht.driver.database import Transaction
from draht.driver.process import Condition, ProcessIdentity, condition

__all__ = ["Demand", "Ticket", "blocker", "draw", "expire", "grant", "tickets", "withdraw"]

GRACE_SECONDS = 5.0
"""How long after its deadline a ticket of a living process is kept: the process should have withdrawn it itself."""


class Demand(msgspec.Struct, frozen=True):
    """Some number of devices out of candidates, each given by its exclusive units."""

    wanted: int
    candidates: tuple[frozenset[str], ...]


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the queue.

    Attributes:
        number: Grows with every ticket ever drawn; smaller is served first.
        demands: What is waited for, all of it at once.
        command: What is to run, for people.
        uid: Who waits.
        user: The name of who waits.
        process: The draht process that waits.
        since: Seconds since the epoch.
        deadline: When it gives up, in seconds since the epoch; None: never.
    """

    number: int
    demands: tuple[Demand, ...]
    command: tuple[str, ...] = ()
    uid: int
    user: str
    process: ProcessIdentity
    since: float
    deadline: float | None


def draw(
    tx: Transaction, demands: Sequence[Demand], *, command: Sequence[str], user: str, deadline: float | None
) -> Ticket:
    """Take the next number for the calling process."""
    number = tx.connection.execute(
        "INSERT INTO waiting (demands, command, uid, user, pid, started, boot_id, since, deadline)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            msgspec.json.encode(demands).decode(),
            msgspec.json.encode(command).decode(),
            os.getuid(),
            user,
            tx.actor.pid,
            tx.actor.started,
            tx.actor.boot_id,
            tx.now,
            deadline,
        ),
    ).lastrowid
    assert number is not None
    audit.record(tx, "waiting", None, f"ticket {number} of {user}: {' '.join(command)}")
    return Ticket(
        number=number,
        demands=tuple(demands),
        command=tuple(command),
        uid=os.getuid(),
        user=user,
        process=tx.actor,
        since=tx.now,
        deadline=deadline,
    )


def tickets(tx: Transaction) -> list[Ticket]:
    """All tickets in the order they are served."""
    rows = tx.connection.execute(
        "SELECT ticket, demands, command, uid, user, pid, started, boot_id, since, deadline FROM waiting"
        " ORDER BY ticket"
    )
    return [
        Ticket(
            number=number,
            demands=msgspec.json.decode(demands, type=tuple[Demand, ...]),
            command=msgspec.json.decode(command, type=tuple[str, ...]),
            uid=uid,
            user=user,
            process=ProcessIdentity(pid=pid, started=started, boot_id=boot),
            since=since,
            deadline=deadline,
        )
        for number, demands, command, uid, user, pid, started, boot, since, deadline in rows
    ]


def withdraw(tx: Transaction, ticket: Ticket, why: str) -> None:
    """Give a ticket back; nothing happens if it is gone already.

    The process counts too: in a database that was lost and begun anew, the number may be somebody else's.
    """
    changed = tx.connection.execute(
        "DELETE FROM waiting WHERE ticket = ? AND pid = ? AND started = ?",
        (ticket.number, ticket.process.pid, ticket.process.started),
    ).rowcount
    if changed:
        audit.record(tx, "withdrawn", None, f"ticket {ticket.number}: {why}")


def expire(tx: Transaction, *, judge: Callable[[ProcessIdentity], Condition] = condition) -> list[Ticket]:
    """Drop the tickets of dead processes and those far past their deadline; return the ones that count now.

    A stopped process's ticket stays in the queue but isn't among those returned: it can't use its turn.
    """
    waiting = []
    for ticket in tickets(tx):
        state = judge(ticket.process)
        if state == "dead":
            withdraw(tx, ticket, "its process is gone")
        elif ticket.deadline is not None and ticket.deadline + GRACE_SECONDS < tx.now:
            withdraw(tx, ticket, "its deadline has passed")
        elif state == "alive":
            waiting.append(ticket)
    return waiting


def grant(demands: Iterable[Demand], taken: AbstractSet[str]) -> frozenset[str] | None:
    """Units that would serve all the demands at once, first candidates first; None if they can't be served now."""
    granted: set[str] = set()
    for demand in demands:
        missing = demand.wanted
        for units in demand.candidates:
            if missing and units.isdisjoint(taken) and units.isdisjoint(granted):
                granted |= units
                missing -= 1
        if missing:
            return None
    return frozenset(granted)


def blocker(choice: AbstractSet[str], earlier: Iterable[Ticket], taken: AbstractSet[str]) -> Ticket | None:
    """The earlier ticket that a choice of units would be unfair to, or None; the rule is in the module's docstring."""
    gone = set(taken) | choice
    for ticket in earlier:
        served = grant(ticket.demands, gone)
        if served is not None:
            gone |= served
        elif any(not units.isdisjoint(choice) for demand in ticket.demands for units in demand.candidates):
            return ticket
    return None
