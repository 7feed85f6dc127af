"""`draht run`: the life of one hold from the choice of devices to their release.

Two phases make it free of races: the engine *creates* a container that carries the hold's label and runs nothing, the
database records it, and only then the engine *starts* it. Whatever dies in between, `draht.host.reconcile` finds the
label and knows what to undo. `Steps` is told the name of each step as it is passed, for tests that kill the process
there; the order of steps is part of the design and drawn in ``docs/run.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

from draht.driver import holds
from draht.driver.errors import StateError
from draht.driver.process import identify
from draht.host import specs
from draht.host.engine import ContainerRequest, Engine, EngineError
from draht.host.holding import Held, hold, labels, mark_running, record, release, signals_as_errors, undo
from draht.host.order import Host, Order, Outcome

__all__ = ["STEPS", "run"]

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
    with signals_as_errors():
        host.steps("begun")
        engine = host.engines[order.engine]
        info = engine.info()
        engine.prepare(_container_request(order, "", specs.Delivery(cdi_names=()), {}))
        held = hold(host, order.wanted, info)
        container: str | None = None
        try:
            host.steps("held")
            specs.write(held.delivery, state_directory=host.database.directory)
            host.steps("stubs-and-spec-written")
            carried = labels(host.database, held, detached=order.detach)
            container = engine.create(_container_request(order, held.hold.id, held.delivery, carried))
            host.steps("created")
            record(host, held.hold, container)
            status = _start(host, order, engine, held, container)
        except BaseException as error:
            undo(host, engine, held, [container] if container else [], error)
            raise
        if not order.detach:
            release(host, engine, held, [container], f"the container ended with status {status}")
        return Outcome(hold=held.hold.id, status=status)


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


def _start(host: Host, order: Order, engine: Engine, held: Held, container: str) -> int:
    mark_running(host, held.hold, [container])
    status = engine.start(container, attach=not order.detach)
    if not order.detach:
        host.steps("ended")
        return status
    host.steps("started")
    try:
        found = next((seen for seen in engine.containers() if seen.id == container), None)
        init = identify(found.pid) if found is not None and found.pid else None
        with host.database.transaction() as tx:
            holds.let_go(tx, held.hold.id)
            if init is not None:
                holds.set_init(tx, held.hold.id, init)
    except (EngineError, StateError) as error:
        # The container runs and the hold is recorded; the rest is true anyway as soon as this process ends.
        host.say(f"warning: {error}")
    host.steps("noted")
    return status
