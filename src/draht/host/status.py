"""`draht ps`: who holds what, who waits, and what else was found, as one value."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from draht.driver import audit, holds, waiting
from draht.driver.claims import rows as claims
from draht.driver.database import Database
from draht.hardware.inventory import Inventory
from draht.host.order import Host
from draht.host.reconcile import Reconciled, reconcile
from draht.host.selection import label

__all__ = [
    "AuditEntry",
    "Held",
    "Outside",
    "PreparedFor",
    "Status",
    "Waiting",
    "settle",
    "status",
    "trail",
    "used_outside",
]


class Held(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One hold as it is shown.

    Attributes:
        since: RFC 3339.
        container: The engine's id, if there is a container yet.
    """

    id: str
    state: str
    devices: tuple[str, ...]
    device_ids: tuple[str, ...]
    machine: str
    simulated: bool
    engine: str
    container: str | None
    user: str
    command: tuple[str, ...]
    since: str


class PreparedFor(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One claim of a pod as it is shown.

    Attributes:
        state: ``preparing``, ``prepared`` or ``unpreparing``.
        since: RFC 3339.
    """

    namespace: str
    name: str
    uid: str
    driver: str
    state: str
    devices: tuple[str, ...]
    since: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One ticket as it is shown."""

    ticket: int
    wanted: int
    user: str
    command: tuple[str, ...]
    since: str
    until: str | None


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One line of the audit trail as it is shown."""

    at: str
    event: str
    hold: str | None
    detail: str
    pid: int
    uid: int


class Outside(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A device that is used without a hold of this database."""

    device: str
    device_id: str
    used_by: str


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything `draht ps` shows."""

    database: str
    holds: tuple[Held, ...] = ()
    claims: tuple[PreparedFor, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    outside: tuple[Outside, ...] = ()
    problems: tuple[str, ...] = ()


def settle(host: Host) -> Reconciled:
    """Reconcile, and say what could not be settled."""
    state = reconcile(host.database, host.engines, cdi_directories=[host.cdi_directory])
    for problem in state.problems:
        host.say(f"warning: {problem}")
    if state.adopted:
        host.say(f"note: {len(state.adopted)} running containers got back the holds the database had lost")
    if state.claims:
        host.say(f"note: read from CDI specs, since the database had lost them: {', '.join(state.claims)}")
    return state


def used_outside(host: Host, inventory: Inventory, state: Reconciled) -> tuple[Outside, ...]:
    """The devices that others use, by the evidence of engines, open device files and the machine's own database."""
    with host.database.reading() as tx:
        held = holds.held_units(tx)
    uses = {unit: use for unit, use in host.outside(inventory, state).items() if unit not in held}
    return tuple(
        Outside(device=label(device), device_id=device.id, used_by=use)
        for device in inventory.devices
        for use in sorted({uses[unit] for unit in device.units if unit in uses})
    )


def status(database: Database, *, outside: tuple[Outside, ...] = (), problems: tuple[str, ...] = ()) -> Status:
    """What the database says now; reading is enough.

    Raises:
        StateError: There is a database, but it can't be read.
    """
    if not database.path.exists():
        return Status(database=str(database.path), outside=outside, problems=problems)
    with database.reading() as tx:
        held, tickets, prepared = holds.all_holds(tx), waiting.tickets(tx), claims.all_claims(tx)
    return Status(
        database=str(database.path),
        holds=tuple(
            Held(
                id=hold.id,
                state=hold.state,
                devices=tuple(device.label for device in hold.devices),
                device_ids=tuple(device.id for device in hold.devices),
                machine=hold.machine,
                simulated=hold.simulated,
                engine=hold.engine,
                container=hold.container,
                user=hold.user,
                command=hold.command,
                since=_time(hold.since),
            )
            for hold in held
        ),
        claims=tuple(
            PreparedFor(
                namespace=claim.record.namespace,
                name=claim.record.name,
                uid=claim.record.uid,
                driver=claim.record.driver,
                state=claim.state,
                devices=claim.record.labels,
                since=_time(claim.record.since),
            )
            for claim in prepared
        ),
        waiting=tuple(
            Waiting(
                ticket=ticket.number,
                wanted=sum(demand.wanted for demand in ticket.demands),
                user=ticket.user,
                command=ticket.command,
                since=_time(ticket.since),
                until=None if ticket.deadline is None else _time(ticket.deadline),
            )
            for ticket in tickets
        ),
        outside=outside,
        problems=problems,
    )


def trail(database: Database) -> tuple[AuditEntry, ...]:
    """The audit trail, oldest entry first.

    Raises:
        StateError: It can't be read.
    """
    if not database.path.exists():
        return ()
    with database.reading() as tx:
        found = audit.entries(tx)
    return tuple(
        AuditEntry(
            at=_time(entry.at),
            event=entry.event,
            hold=entry.hold,
            detail=entry.detail,
            pid=entry.pid,
            uid=entry.uid,
        )
        for entry in found
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
