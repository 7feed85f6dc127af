"""Getting a hold: choose and hold in one transaction, or queue for it, or say who has what.

One look is: expire dead tickets, see what is taken, choose, check that the choice is fair to those before, insert the
hold. All of it is one short transaction, so two draht processes can't choose the same device, and if they could, the
database's primary key would refuse. A waiter looks again when the audit trail has grown (every change writes to it) or
a second has passed.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from draht.driver import audit, holds, waiting
from draht.driver.claims import rows as claims
from draht.driver.claims.rows import Claim
from draht.driver.database import Database
from draht.driver.errors import StateError, StateLostError
from draht.driver.holds import HeldDevice, Hold
from draht.driver.process import condition
from draht.driver.waiting import Demand, Ticket
from draht.hardware.inventory import Device, Inventory
from draht.host.errors import NotFreeError
from draht.host.selection import Ask, Choice, label

__all__ = ["Attempt", "acquire", "moment"]

LOOK_SECONDS = 1.0
"""Longest time between two looks of a waiter: bounds how late a silent death (of a waiter or a container) is seen."""

POLL_SECONDS = 0.1
"""How often a waiter asks whether anything has changed; a read of one row."""

SETTLE_SECONDS = 3.0
"""How often the first waiter asks the engines again while the same holds look abandoned, or others use devices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What is needed to get a hold.

    Attributes:
        database: The machine's database.
        inventory: What there is.
        ask: What is wanted.
        make: Choice → the hold to insert and the paths of the specs that will be written for it.
        outside: Units used outside draht → by whom; asked before every look, never inside a transaction.
        settle: Reconcile with the engines; the point of the database that has been compared with what runs.
        say: Tell the person something on the way.
        command: What is to run, for those who wait behind.
        user: Who asks.
        wait: Seconds to wait; 0 not at all, infinity as long as it takes.
    """

    database: Database
    inventory: Inventory
    ask: Ask
    make: Callable[[Choice], tuple[Hold, Sequence[str]]]
    outside: Callable[[], Mapping[str, str]]
    settle: Callable[[], audit.Point | None]
    say: Callable[[str], None]
    command: tuple[str, ...] = ()
    user: str = ""
    wait: float = 0.0
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(slots=True)
class _Look:
    """What one look saw."""

    unsettled: bool = False
    point: audit.Point | None = None
    hold: Hold | None = None
    choice: Choice | None = None
    ticket: Ticket | None = None
    before: list[Ticket] = field(default_factory=list)
    blocker: Ticket | None = None
    held: list[Hold] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    taken: dict[str, str] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)


def acquire(attempt: Attempt) -> tuple[Hold, Choice]:
    """Hold devices for the request, waiting for them if the caller wants to.

    Raises:
        SelectionError: The machine doesn't have what is asked for, free or not.
        NotFreeError: It has, but taken: by whom and since when is in the message.
        StateError: The database can't be used.
    """
    wanted = attempt.ask.demands()
    deadline = attempt.monotonic() + attempt.wait
    point = attempt.settle()
    ticket: Ticket | None = None
    lost = False
    settled, examined = attempt.monotonic(), frozenset[str]()
    try:
        while True:
            try:
                look = _look(attempt, wanted, ticket, point)
            except StateLostError as error:
                # It has been moved aside. Once is bad luck, twice is a broken disk.
                if lost:
                    raise
                attempt.say(f"note: {error}")
                look, lost = _Look(unsettled=True), True
            if look.unsettled:
                # Lost since we looked: what runs has to get its holds back before anything is chosen.
                point = attempt.settle()
                continue
            point = look.point
            if look.hold is not None and look.choice is not None:
                ticket = None
                return look.hold, look.choice
            if attempt.wait <= 0:
                raise _not_free(attempt, look)
            if ticket != look.ticket:
                ticket = look.ticket
                attempt.say(_waiting_line(attempt, look))
            if attempt.monotonic() >= deadline:
                raise _not_free(attempt, look)
            abandoned = _abandoned(look.held)
            due = attempt.monotonic() - settled >= SETTLE_SECONDS and (abandoned or look.outside)
            if not look.before and (due or not abandoned <= examined):
                point = attempt.settle()
                settled, examined = attempt.monotonic(), abandoned
                continue
            _pause(attempt, deadline)
    finally:
        if ticket is not None:
            # If the database can't be used, the ticket ends with this process.
            with suppress(StateError), attempt.database.transaction() as tx:
                waiting.withdraw(tx, ticket, "it gave up")


def moment(seconds: float) -> str:
    """A point in time for people: the time of day, with the date if it isn't today."""
    then = datetime.fromtimestamp(seconds).astimezone()
    now = datetime.now().astimezone()
    return then.strftime("%H:%M:%S" if then.date() == now.date() else "%Y-%m-%d %H:%M:%S")


def _look(attempt: Attempt, wanted: Sequence[Demand], ticket: Ticket | None, since: audit.Point | None) -> _Look:
    look = _Look(ticket=ticket, outside=attempt.outside())
    with attempt.database.transaction() as tx:
        if since is None or not audit.continues(tx, since):
            look.unsettled = True
            return look
        queue = waiting.expire(tx)
        if ticket not in queue:
            # None yet, or the database was lost: then everybody queues again.
            ticket = look.ticket = None
        look.before = [other for other in queue if ticket is None or other.number < ticket.number]
        look.taken = holds.held_units(tx)
        taken = look.taken.keys() | look.outside.keys()
        choice = attempt.ask.choose(taken)
        if choice is not None:
            look.blocker = waiting.blocker(choice.units, look.before, taken)
        if choice is not None and look.blocker is None:
            hold, paths = attempt.make(choice)
            holds.insert(tx, hold, choice.units, specs=paths)
            if ticket is not None:
                waiting.withdraw(tx, ticket, f"served with hold {hold.id}")
            look.hold, look.choice = hold, choice
            return look
        look.held, look.claims = holds.all_holds(tx), claims.all_claims(tx)
        if ticket is None and attempt.wait > 0:
            until = None if math.isinf(attempt.wait) else tx.now + attempt.wait
            look.ticket = waiting.draw(tx, wanted, command=attempt.command, user=attempt.user, deadline=until)
        look.point = audit.point(tx)
    return look


def _pause(attempt: Attempt, deadline: float) -> None:
    """Sleep until something has changed, a look is due anyway, or the deadline."""
    begin = attempt.monotonic()
    # Waiters that were woken by one change must not come back in step for ever.
    look_at = min(deadline, begin + LOOK_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311
    before = _last_change(attempt.database)
    while (now := attempt.monotonic()) < look_at:
        attempt.sleep(min(POLL_SECONDS, look_at - now))
        if _last_change(attempt.database) != before:
            return


def _last_change(database: Database) -> int:
    """A number that grows with every change; -1 while the database can't be read, which the next look settles."""
    try:
        with database.reading() as tx:
            return int(tx.connection.execute("SELECT COALESCE(MAX(id), 0) FROM audit").fetchone()[0])
    except StateError:
        return -1


def _abandoned(held: Sequence[Hold]) -> frozenset[str]:
    """The holds that may have ended without anybody noticing."""
    return frozenset(
        hold.id
        for hold in held
        if condition(hold.starter) == "dead" and (hold.init is None or condition(hold.init) == "dead")
    )


def _waiting_line(attempt: Attempt, look: _Look) -> str:
    number = look.ticket.number if look.ticket else 0
    place = f"behind {len(look.before)} other{'s' if len(look.before) > 1 else ''}" if look.before else "first in line"
    limit = "" if math.isinf(attempt.wait) else f" for at most {attempt.wait:g} s"
    return f"waiting as ticket {number}, {place}{limit}: {_situation(attempt, look)}"


def _not_free(attempt: Attempt, look: _Look) -> NotFreeError:
    waited = f" after {attempt.wait:g} s" if attempt.wait > 0 else ""
    return NotFreeError(
        f"the devices are taken{waited}: {_situation(attempt, look)}",
        hint="wait for it with --wait or --wait=10m; `draht ps` shows all holds",
    )


def _situation(attempt: Attempt, look: _Look) -> str:
    """Who has what is wanted, in one line."""
    if look.blocker is not None:
        return (
            f"the free devices are for ticket {look.blocker.number} of {look.blocker.user}, "
            f"waiting since {moment(look.blocker.since)}"
        )
    wanted = attempt.ask.demands()
    relevant = {unit for demand in wanted for units in demand.candidates for unit in units}
    candidates = [device for device in attempt.inventory.devices if device.units & relevant]
    free = [device for device in candidates if not device.units & (look.taken.keys() | look.outside.keys())]
    parts = [_holder(hold) for hold in look.held if _has_any(hold, look, relevant)]
    parts += [_claimant(claim, candidates) for claim in look.claims if not relevant.isdisjoint(claim.record.units)]
    by_use: dict[str, list[Device]] = {}
    for device in candidates:
        for use in {look.outside[unit] for unit in device.units if unit in look.outside and unit not in look.taken}:
            by_use.setdefault(use, []).append(device)
    parts += [f"{holds.in_short(label(device) for device in used)} used by {use}" for use, used in by_use.items()]
    shown = "; ".join(parts[:4]) + (f"; and {len(parts) - 4} more" if len(parts) > 4 else "")
    return f"{attempt.ask.amount} wanted, {len(free)} of {len(candidates)} free; {shown}"


def _has_any(hold: Hold, look: _Look, units: set[str]) -> bool:
    return any(look.taken.get(unit) == hold.id for unit in units)


def _holder(hold: Hold) -> str:
    names = holds.in_short(device.label for device in hold.devices)
    command = holds.one_line(hold.command)
    command = f", {command[:40]}{'…' if len(command) > 40 else ''}"
    return f"{names} held by {hold.user} since {moment(hold.since)} ({hold.id}, {hold.engine}{command})"


def _claimant(claim: Claim, candidates: Sequence[Device]) -> str:
    record = claim.record
    names = holds.in_short(label(device) for device in candidates if not device.units.isdisjoint(record.units))
    return f"{names} prepared for claim {record.title} since {moment(record.since)}"


def held_devices(choice: Choice) -> tuple[HeldDevice, ...]:
    """The devices of a choice as a hold records them."""
    return tuple(HeldDevice(id=device.id, label=label(device)) for device in choice.devices)
