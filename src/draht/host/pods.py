"""Several containers with the devices of one hold: the pods of a manifest on this machine.

All containers are made before one of them starts, as a pod's devices are prepared before it runs, and the hold lives
until the last of them has ended. An engine wants to be attached to from the process that made the container, so each
container has a process of its own here, which makes it, waits for the word, runs it, and ends with its status; what the
container writes comes through a pipe. It doesn't restart containers, order init containers or make a pod's network:
that is a kubelet's work.
"""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from draht.api.errors import DrahtError
from draht.host import specs
from draht.host.engine import ContainerRequest, Engine, EngineError
from draht.host.holding import Held, hold, labels, mark_running, record, release, signals_as_errors, undo
from draht.host.order import ContainerOrder, Host, PodsOrder

__all__ = ["PodsOutcome", "run_pods"]

FAILED = 125
"""Status of a container whose engine failed, as podman and docker have it."""
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class PodsOutcome:
    """How the containers ended: the hold they had, what was chosen, and the exit status of each."""

    held: Held
    statuses: Mapping[str, int]


class _Said(msgspec.Struct):
    """What a container's process says before it waits: the container's id, or why there is none."""

    container: str = ""
    error: str = ""
    hint: str = ""


@dataclass(slots=True)
class _Child:
    name: str
    pid: int
    said: int
    go: int
    output: int
    rest: bytes = b""
    status: int | None = None


def run_pods(host: Host, order: PodsOrder) -> PodsOutcome:
    """Hold devices, run the containers with them until all have ended, and release them.

    Raises:
        SelectionError: The machine doesn't have what is asked for.
        NotFreeError: It is taken.
        EngineError: The engine can't make one of the containers; none has run.
        HoldLostError: The hold was released by somebody while the containers were being made.
        InterruptedRunError: A signal came; the containers are gone.
        StateError: The database can't be used.
        cdi.CDIError: The spec can't be written, or the engine can't read what it needs.
    """
    with signals_as_errors():
        host.steps("begun")
        engine = host.engines[order.wanted.engine]
        info = engine.info()
        nothing = specs.Delivery(cdi_names=())
        for each in order.containers:
            engine.prepare(_request(order, each, "", nothing, {}))
        held = hold(host, order.wanted, info)
        children: list[_Child] = []
        try:
            host.steps("held")
            specs.write(held.delivery, state_directory=host.database.directory)
            host.steps("stubs-and-spec-written")
            carried = labels(host.database, held, detached=False)
            children.extend(
                _fork(engine, _request(order, each, held.hold.id, held.delivery, carried), each.name)
                for each in order.containers
            )
            containers = _made(children)
            host.steps("created")
            record(host, held.hold, containers[0])
            mark_running(host, held.hold, containers)
            _run(children, order)
            host.steps("ended")
        except BaseException as error:
            # Containers whose process may still be making them are found by their label.
            undo(host, engine, held, [], error)
            raise
        finally:
            _reap(children)
        release(host, engine, held, containers, f"all {len(containers)} containers have ended")
        return PodsOutcome(held, {child.name: FAILED if child.status is None else child.status for child in children})


def _request(
    order: PodsOrder, container: ContainerOrder, hold_id: str, delivery: specs.Delivery, carried: Mapping[str, str]
) -> ContainerRequest:
    # A container without devices gets none of the hold's.
    names = delivery.parts.get(container.name, ())
    return ContainerRequest(
        hold=hold_id,
        name=f"draht-{hold_id}-{container.name.replace('/', '-')}",
        image=container.image,
        rootfs=container.rootfs,
        command=container.command,
        cdi_names=names,
        labels=carried,
        env={**delivery.env, **container.env},
        additional_gids=delivery.additional_gids if names else (),
        network=order.network,
    )


def _fork(engine: Engine, request: ContainerRequest, name: str) -> _Child:
    """A process that makes the container now and runs it when it is told to."""
    said, say = os.pipe()
    wait, go = os.pipe()
    output, write = os.pipe()
    pid = os.fork()
    if pid:
        for fd in (say, wait, write):
            os.close(fd)
        return _Child(name, pid, said, go, output)
    status = FAILED
    try:
        # Its own group: a Ctrl-C reaches the parent only, which then ends all containers in order.
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        for fd in (said, go, output):
            os.close(fd)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(write, 1)
        os.dup2(write, 2)
        status = _child(engine, request, say, wait)
    finally:
        os._exit(status)


def _child(engine: Engine, request: ContainerRequest, say: int, wait: int) -> int:
    try:
        container = engine.create(request)
    except DrahtError as error:
        os.write(say, msgspec.json.encode(_Said(error=str(error), hint=error.hint or "")))
        return FAILED
    os.write(say, msgspec.json.encode(_Said(container=container)))
    os.close(say)
    if not os.read(wait, 1):
        # The parent is gone, or gave up; what it knows by label it removes, or the next reconcile does.
        return FAILED
    try:
        return engine.start(container, attach=True)
    except DrahtError as error:
        os.write(2, f"error: {error}\n".encode())
        return FAILED


def _made(children: Sequence[_Child]) -> list[str]:
    """The containers' ids, once all are made.

    Raises:
        EngineError: One couldn't be made.
    """
    containers = []
    for child in children:
        text = b""
        while part := os.read(child.said, _CHUNK):
            text += part
        said = msgspec.json.decode(text, type=_Said) if text else _Said(error="the engine's process ended")
        if said.error:
            raise EngineError(f"container {child.name}: {said.error}", hint=said.hint or None)
        containers.append(said.container)
    return containers


def _run(children: Sequence[_Child], order: PodsOrder) -> None:
    """Let all containers go and pass on what they write until the last pipe is closed and the last process gone."""
    for child in children:
        os.write(child.go, b"g")
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.output, selectors.EVENT_READ, child)
        while selector.get_map():
            for key, _ in selector.select():
                child = key.data
                data = os.read(child.output, _CHUNK)
                *lines, child.rest = (child.rest + data).split(b"\n")
                if len(child.rest) > _CHUNK:
                    lines, child.rest = [*lines, child.rest], b""
                for line in lines:
                    order.output(child.name, line)
                if not data:
                    if child.rest:
                        order.output(child.name, child.rest)
                    selector.unregister(child.output)
    for child in children:
        _, ended = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(ended)
        child.status = 128 - code if code < 0 else code


def _reap(children: Sequence[_Child]) -> None:
    """Leave neither descriptors nor processes behind, whatever happened."""
    for child in children:
        for fd in (child.said, child.go, child.output):
            with suppress(OSError):
                os.close(fd)
    for child in children:
        if child.status is None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
            with suppress(ChildProcessError):
                os.waitpid(child.pid, 0)
