"""Holding devices for containers: the steps that every run has in common.

Owns what stands between a request and the engine: the hold with its planned delivery, the labels that lead from a
container back to it, the two phases (recorded before anything runs, ``running`` before it starts), and undoing. How
many containers there are and what they run is the caller's; `draht.host.run` has one, `draht.host.pods` several.
"""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import msgspec

from draht.api.errors import DrahtError
from draht.driver import audit, holds
from draht.driver.database import Database
from draht.driver.errors import StateError
from draht.driver.holds import Hold
from draht.driver.process import ProcessIdentity, boot_id, identify
from draht.host import specs
from draht.host.engine import Engine, EngineInfo
from draht.host.errors import HoldLostError, InterruptedRunError
from draht.host.order import Host, Wanted
from draht.host.reconcile import FACTS_LABEL, STATE_LABEL, Facts, Reconciled, end, reconcile
from draht.host.selection import Choice
from draht.host.waiting import Attempt, acquire, held_devices

__all__ = [
    "Held",
    "hold",
    "labels",
    "lost",
    "mark_running",
    "record",
    "release",
    "signals_as_errors",
    "signals_ignored",
    "undo",
    "user_name",
]


@dataclass(frozen=True, slots=True)
class Held:
    """A hold, what was chosen for it, and how it will be delivered."""

    hold: Hold
    choice: Choice
    delivery: specs.Delivery


def hold(host: Host, wanted: Wanted, info: EngineInfo) -> Held:
    """Choose devices, plan their delivery and hold them.

    Raises:
        SelectionError: The machine doesn't have what is asked for.
        NotFreeError: It is taken.
        StateError: The database can't be used.
        cdi.CDIError: The engine can't read what the devices need.
    """
    directory = specs.writable_directory(host.cdi_directory, info)
    user = user_name(os.getuid())
    starter = identify(os.getpid()) or ProcessIdentity(pid=os.getpid(), started=0, boot_id=boot_id())
    state = Reconciled()
    planned: dict[str, specs.Delivery] = {}

    def make(choice: Choice) -> tuple[Hold, list[str]]:
        identity = holds.new_id()
        delivery = specs.deliver(
            identity,
            choice.devices,
            choice.cdi_names,
            info=info,
            cache=host.cache,
            directory=directory,
            state_directory=host.database.directory,
            machine=wanted.inventory.machine,
            parts=choice.parts,
        )
        planned[identity] = delivery
        made = Hold(
            id=identity,
            engine=wanted.engine,
            machine=wanted.inventory.machine,
            simulated=wanted.inventory.simulated,
            devices=held_devices(choice),
            cdi_names=delivery.cdi_names,
            command=wanted.command,
            uid=os.getuid(),
            user=user,
            starter=starter,
            since=host.database.clock(),
        )
        return made, [str(delivery.path)] if delivery.path else []

    def settle() -> audit.Point | None:
        nonlocal state
        if host.cache is not None:
            host.cache.refresh()
        directories = [path for path in {host.cdi_directory, directory} if path]
        state = reconcile(host.database, host.engines, cdi_directories=directories)
        for problem in state.problems:
            host.say(f"warning: {problem}")
        if state.adopted:
            host.say(f"note: {len(state.adopted)} running containers got back the holds the database had lost")
        if state.claims:
            host.say(f"note: read from CDI specs, since the database had lost them: {', '.join(state.claims)}")
        return state.point

    taken, choice = acquire(
        Attempt(
            database=host.database,
            inventory=wanted.inventory,
            ask=wanted.ask,
            make=make,
            outside=lambda: host.outside(wanted.inventory, state),
            settle=settle,
            say=host.say,
            command=wanted.command,
            user=user,
            wait=wanted.wait,
        )
    )
    return Held(taken, choice, planned[taken.id])


def labels(database: Database, held: Held, *, detached: bool) -> dict[str, str]:
    """What a container carries so that its hold can be found, and written again if the database is lost."""
    hold, choice = held.hold, held.choice
    facts = Facts(
        machine=hold.machine,
        simulated=hold.simulated,
        devices=hold.devices,
        units=tuple(sorted(choice.units)),
        cdi_names=hold.cdi_names,
        command=hold.command,
        uid=hold.uid,
        user=hold.user,
        starter=hold.starter,
        detached=detached,
        since=hold.since,
    )
    return {STATE_LABEL: str(database.directory.resolve()), FACTS_LABEL: msgspec.json.encode(facts).decode()}


def record(host: Host, hold: Hold, container: str) -> None:
    """Between the phases: the container is known, and the hold still ours, before anything runs."""
    with host.database.transaction() as tx:
        if not holds.set_container(tx, hold.id, container):
            raise lost(tx_says=[entry.detail for entry in audit.entries(tx, hold.id) if entry.event == "freed"])
    host.steps("recorded")


def mark_running(host: Host, hold: Hold, containers: Sequence[str]) -> None:
    """``running`` is written before anything starts: from here on the containers decide how long the hold lives.

    Raises:
        HoldLostError: The hold was released by somebody meanwhile.
    """
    with host.database.transaction() as tx:
        if not holds.set_state(tx, hold.id, "running", after=("starting",)):
            raise lost(tx_says=[entry.detail for entry in audit.entries(tx, hold.id) if entry.event == "freed"])
        audit.record(tx, "started", hold.id, f"{hold.engine} starts container {', '.join(containers)}")
    host.steps("marked-running")


def undo(host: Host, engine: Engine, held: Held, containers: Sequence[str], error: BaseException) -> None:
    """A step failed: leave nothing behind. What can't be undone now is found by the next reconcile."""
    why = str(error) or type(error).__name__
    with signals_ignored():
        try:
            with host.database.transaction() as tx:
                audit.record(tx, "failed", held.hold.id, why)
        except StateError as problem:
            host.say(f"warning: {problem}")
        release(host, engine, held, containers, f"undone: {why}")


def release(host: Host, engine: Engine, held: Held, containers: Sequence[str], why: str) -> None:
    """End the hold; the containers' status is the user's answer, so a failure here is only told.

    Args:
        host: The host.
        engine: Which has the containers.
        held: What ends.
        containers: The containers that are known; empty if making one may have been interrupted.
        why: For the audit trail.
    """
    hold, delivery = held.hold, held.delivery
    with signals_ignored():
        try:
            # `create` may have been interrupted after the engine had made the container: ask by label.
            ids = containers or [c.id for c in engine.containers() if c.hold == hold.id]
            for one in ids:
                engine.remove(one)
            host.steps("container-removed")
            if delivery.path is not None:
                # Even if the hold is gone: who ended it may have done so before the spec was written.
                specs.remove(delivery.path)
            end(host.database, hold, engine, (), why)
            host.steps("freed")
        except DrahtError as error:
            host.say(f"warning: hold {hold.id} couldn't be freed and will be by the next draht command: {error}")


def lost(*, tx_says: list[str]) -> HoldLostError:
    """The error for a hold that is gone before its container was started."""
    if tx_says:
        return HoldLostError(f"the hold ended before the container was started: {tx_says[-1]}")
    return HoldLostError(
        "the holds database was replaced while the container was being made; nothing was started",
        hint="run the command again",
    )


def user_name(uid: int) -> str:
    """The name of a user, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@contextmanager
def signals_as_errors() -> Iterator[None]:
    """SIGTERM and SIGHUP end the run like Ctrl-C does, so that it undoes what it did."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise InterruptedRunError(number)

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def signals_ignored() -> Iterator[None]:
    """No second Ctrl-C in the middle of cleaning up."""
    previous = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
