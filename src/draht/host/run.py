"""`draht run`: the life of one hold from the choice of devices to their release.

Two phases make it free of races: the engine *creates* a container that carries the hold's label and runs nothing, the
database records it, and only then the engine *starts* it. Whatever dies in between, `draht.host.reconcile` finds the
label and knows what to undo. `Steps` is told the name of each step as it is passed, for tests that kill the process
there; the order of steps is part of the design and drawn in ``docs/run.md``.
"""

from __future__ import annotations

import os
import pwd
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import msgspec

from draht.api.errors import DrahtError
from draht.driver import audit, holds
from draht.driver.database import Database
from draht.driver.errors import StateError
from draht.driver.holds import Hold
from draht.driver.process import ProcessIdentity, boot_id, identify
from draht.host import specs
from draht.host.engine import ContainerRequest, Engine, EngineError, EngineInfo
from draht.host.errors import HoldLostError, InterruptedRunError
from draht.host.order import Host, Order, Outcome
from draht.host.reconcile import FACTS_LABEL, STATE_LABEL, Facts, Reconciled, end, reconcile
from draht.host.selection import Choice, Selection
from draht.host.waiting import Attempt, acquire, held_devices

__all__ = ["STEPS", "run", "user_name"]

STEPS = (
    "begun",
    "held",
    "stubs-and-spec-written",
    "created",
    "recorded",
    "marked-running",
    "started",
    "noted",
    "ended",
    "container-removed",
    "freed",
)
"""Names that `Host.steps` is called with: ``started`` and ``noted`` when detached, ``ended``, ``container-removed`` and
``freed`` when attached."""


def run(host: Host, order: Order) -> Outcome:
    """Hold devices, run the container with them, and release them; see the module's docstring.

    Raises:
        SelectionError: The machine doesn't have what is asked for.
        NotFreeError: It is taken.
        EngineError: The engine can't, or didn't.
        HoldLostError: The hold was released by somebody while the container was being made.
        InterruptedRunError: A signal came before the container was started.
        StateError: The database can't be used.
        cdi.CDIError: The spec can't be written, or the engine can't read what it needs.
    """
    with _signals_as_errors():
        host.steps("begun")
        engine = host.engines[order.engine]
        info = engine.info()
        engine.prepare(_container_request(order, "", specs.Delivery(cdi_names=()), {}))
        hold, choice, delivery = _hold(host, order, info)
        container: str | None = None
        try:
            host.steps("held")
            specs.write(delivery, state_directory=host.database.directory)
            host.steps("stubs-and-spec-written")
            labels = _labels(host.database, hold, choice, detached=order.detach)
            container = engine.create(_container_request(order, hold.id, delivery, labels))
            host.steps("created")
            _record(host, hold, container)
            status = _start(host, order, engine, hold, container)
        except BaseException as error:
            _undo(host, engine, hold, delivery, container, error)
            raise
        if not order.detach:
            _release(host, engine, hold, delivery, container, f"the container ended with status {status}")
        return Outcome(hold=hold.id, status=status)


def user_name(uid: int) -> str:
    """The name of a user, or the number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _hold(host: Host, order: Order, info: EngineInfo) -> tuple[Hold, Choice, specs.Delivery]:
    """Phase one: choose devices, plan their delivery and hold them."""
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
            machine=order.inventory.machine,
        )
        planned[identity] = delivery
        hold = Hold(
            id=identity,
            engine=order.engine,
            machine=order.inventory.machine,
            simulated=order.inventory.simulated,
            devices=held_devices(choice),
            cdi_names=delivery.cdi_names,
            command=order.command or ((order.image,) if order.image else ()),
            uid=os.getuid(),
            user=user,
            starter=starter,
            since=host.database.clock(),
        )
        return hold, [str(delivery.path)] if delivery.path else []

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
        return state.point

    hold, choice = acquire(
        Attempt(
            database=host.database,
            inventory=order.inventory,
            ask=Selection(order.inventory, order.request),
            make=make,
            outside=lambda: host.outside(order.inventory, state),
            settle=settle,
            say=host.say,
            command=order.command,
            user=user,
            wait=order.wait,
        )
    )
    return hold, choice, planned[hold.id]


def _labels(database: Database, hold: Hold, choice: Choice, *, detached: bool) -> dict[str, str]:
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


def _container_request(
    order: Order, hold: str, delivery: specs.Delivery, labels: Mapping[str, str]
) -> ContainerRequest:
    return ContainerRequest(
        hold=hold,
        name=order.name or f"draht-{hold}",
        image=order.image,
        rootfs=order.rootfs,
        command=order.command,
        cdi_names=delivery.cdi_names,
        labels=labels,
        env={**delivery.env, **order.env},
        binds=order.binds,
        additional_gids=delivery.additional_gids,
        interactive=order.interactive,
        tty=order.tty,
        detach=order.detach,
        network=order.network,
        engine_args=order.engine_args,
    )


def _record(host: Host, hold: Hold, container: str) -> None:
    """Between the phases: the container is known, and the hold still ours, before anything runs."""
    with host.database.transaction() as tx:
        if not holds.set_container(tx, hold.id, container):
            raise _lost(tx_says=[entry.detail for entry in audit.entries(tx, hold.id) if entry.event == "freed"])
    host.steps("recorded")


def _start(host: Host, order: Order, engine: Engine, hold: Hold, container: str) -> int:
    """Phase two. ``running`` is written first: from here on the container alone decides how long the hold lives."""
    with host.database.transaction() as tx:
        if not holds.set_state(tx, hold.id, "running", after=("starting",)):
            raise _lost(tx_says=[entry.detail for entry in audit.entries(tx, hold.id) if entry.event == "freed"])
        audit.record(tx, "started", hold.id, f"{order.engine} starts container {container}")
    host.steps("marked-running")
    status = engine.start(container, attach=not order.detach)
    if not order.detach:
        host.steps("ended")
        return status
    host.steps("started")
    try:
        found = next((seen for seen in engine.containers() if seen.id == container), None)
        init = identify(found.pid) if found is not None and found.pid else None
        with host.database.transaction() as tx:
            holds.let_go(tx, hold.id)
            if init is not None:
                holds.set_init(tx, hold.id, init)
    except (EngineError, StateError) as error:
        # The container runs and the hold is recorded; the rest is true anyway as soon as this process ends.
        host.say(f"warning: {error}")
    host.steps("noted")
    return status


def _lost(*, tx_says: list[str]) -> HoldLostError:
    if tx_says:
        return HoldLostError(f"the hold ended before the container was started: {tx_says[-1]}")
    return HoldLostError(
        "the holds database was replaced while the container was being made; nothing was started",
        hint="run the command again",
    )


def _undo(
    host: Host,
    engine: Engine,
    hold: Hold,
    delivery: specs.Delivery,
    container: str | None,
    error: BaseException,
) -> None:
    """A step failed: leave nothing behind. What can't be undone now is found by the next reconcile."""
    why = str(error) or type(error).__name__
    with _signals_ignored():
        try:
            with host.database.transaction() as tx:
                audit.record(tx, "failed", hold.id, why)
        except StateError as problem:
            host.say(f"warning: {problem}")
        _release(host, engine, hold, delivery, container, f"undone: {why}")


def _release(host: Host, engine: Engine, hold: Hold, delivery: specs.Delivery, container: str | None, why: str) -> None:
    """End the hold; the container's status is the user's answer, so a failure here is only told."""
    with _signals_ignored():
        try:
            # `create` may have been interrupted after the engine had made the container: ask by label.
            ids = [container] if container else [c.id for c in engine.containers() if c.hold == hold.id]
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


@contextmanager
def _signals_as_errors() -> Iterator[None]:
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
def _signals_ignored() -> Iterator[None]:
    """No second Ctrl-C in the middle of cleaning up."""
    previous = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
