"""What podman and docker have in common: a client with the same sub-commands.

Owns create, attached and detached start, removal and the reading of lists in terms of a few methods that the two
adapters fill in. It knows neither where an engine keeps its containers nor how it finds CDI specs.
"""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from draht.host.engine import (
    CDI_LABEL,
    HOLD_LABEL,
    Container,
    ContainerRequest,
    EngineError,
    EngineInfo,
    NoSuchContainerError,
    RequestError,
    State,
)
from draht.host.engines.attach import exit_status, run_attached
from draht.host.engines.command import Command, Outcome

__all__ = ["ClientEngine", "check_request", "container_from", "timestamp"]

AMBIGUOUS = frozenset({1, 125, 126, 127})
"""Statuses of ``start`` that may be the client's own failure as well as the container's."""

_STATES: Mapping[str, State] = {
    "configured": "created",
    "created": "created",
    "initialized": "created",
    "running": "running",
    "paused": "running",
    "restarting": "running",
    "stopping": "running",
    "stopped": "exited",
    "exited": "exited",
    "dead": "exited",
}


class ClientEngine(ABC):
    """An engine driven through its command-line client."""

    name: str
    removal: tuple[str, ...] = ()
    """More options of ``rm``."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._interactive: dict[str, bool] = {}

    @property
    def command(self) -> Command:
        """The client with the global options that this machine needs."""
        return self._command

    @abstractmethod
    def info(self) -> EngineInfo:
        """See `draht.host.engine.Engine.info`."""

    @abstractmethod
    def source(self, request: ContainerRequest, *, pull: bool) -> list[str]:
        """Options and argument that name the image or root file system; fetch it first if `pull`."""

    @abstractmethod
    def limits(self, request: ContainerRequest) -> list[str]:
        """Options that this machine needs and a person shouldn't have to know."""

    @abstractmethod
    def ready(self, container_id: str) -> None:
        """Do as much of the start as can be done without running anything; raise if that fails."""

    @abstractmethod
    def is_missing(self, outcome: Outcome) -> bool:
        """Whether a command failed because there is no such container."""

    @abstractmethod
    def details(self, inspected: Mapping[str, Any]) -> Container:
        """One element of ``inspect``'s answer as a `Container`."""

    def prepare(self, request: ContainerRequest) -> None:
        """See `draht.host.engine.Engine.prepare`."""
        check_request(self.name, request)
        self.source(request, pull=True)

    def create(self, request: ContainerRequest) -> str:
        """See `draht.host.engine.Engine.create`."""
        check_request(self.name, request)
        options = ["--name", request.name]
        for key, value in request.all_labels().items():
            options += ["--label", f"{key}={value}"]
        for key, value in request.env.items():
            options += ["--env", f"{key}={value}"]
        for bind in request.binds:
            options += ["--volume", f"{bind.source}:{bind.target}{':ro' if bind.read_only else ''}"]
        for name in request.cdi_names:
            options += ["--device", name]
        for gid in request.additional_gids:
            options += ["--group-add", str(gid)]
        if request.interactive:
            options.append("--interactive")
        if request.tty:
            options.append("--tty")
        if request.network is not None:
            options += ["--network", request.network]
        options += [*self.limits(request), *request.engine_args, *self.source(request, pull=True)]
        outcome = self.command.run("create", *options, *request.command)
        container_id = outcome.stdout.strip().rpartition("\n")[2].strip()
        if outcome.status != 0 or not container_id:
            raise self.command.refusal("create", outcome, hint=self.hint(outcome.complaint))
        try:
            self.ready(container_id)
        except EngineError:
            self.remove(container_id)
            raise
        self._interactive[container_id] = request.interactive
        return container_id

    def start(self, container_id: str, *, attach: bool) -> int:
        """See `draht.host.engine.Engine.start`."""
        if not attach:
            outcome = self.command.run("start", container_id)
            if outcome.status == 0:
                return 0
            if self.is_missing(outcome):
                raise self._gone(container_id)
            raise self.command.refusal("start", outcome, hint=self.hint(outcome.complaint))
        arguments = ["start", "--attach"]
        if self._is_interactive(container_id):
            arguments.append("--interactive")
        status = run_attached(
            self.command.argv(*arguments, container_id),
            lambda number: self._deliver(container_id, number),
            self.command.environ,
        )
        code = exit_status(status)
        if os.WIFEXITED(status) and code not in AMBIGUOUS and code != 0:
            return code
        return self._settle(container_id, code, killed=os.WIFSIGNALED(status))

    def containers(self) -> list[Container]:
        """See `draht.host.engine.Engine.containers`."""
        ids = self.command.must("list containers", "ps", "--all", "--quiet", "--no-trunc").split()
        if not ids:
            return []
        # A container that ends in between makes `inspect` fail and still print the others.
        outcome = self.command.run("container", "inspect", *ids)
        if outcome.status != 0 and not self.is_missing(outcome):
            raise self.command.failure("inspect its containers", outcome)
        inspected = self.command.decode("inspect its containers", outcome.stdout or "[]")
        return [self.details(one) for one in inspected or () if isinstance(one, dict)]

    def remove(self, container_id: str) -> None:
        """See `draht.host.engine.Engine.remove`."""
        outcome = self.command.run("rm", "--force", "--volumes", *self.removal, container_id)
        if outcome.status != 0 and not self.is_missing(outcome) and self._inspect(container_id) is not None:
            raise self.command.failure(f"remove container {container_id[:12]}", outcome)

    def hint(self, complaint: str) -> str | None:  # noqa: ARG002 — adapters know what a complaint means
        """The next step for a complaint of the engine, if it is a known one."""
        return None

    def _deliver(self, container_id: str, number: int) -> bool:
        """Send a signal to the container; False while it doesn't run yet."""
        outcome = self.command.run("kill", "--signal", signal.Signals(number).name, container_id, apart=True)
        if outcome.status == 0 or self.is_missing(outcome):
            return True
        inspected = self._inspect(container_id)
        return inspected is None or self.details(inspected).state != "created"

    def _settle(self, container_id: str, code: int, *, killed: bool) -> int:
        """What really became of a container whose client came back with a status that may be its own.

        The client may have failed to start it, have been killed, or have lost its connection while the container runs
        on; then the container is waited for.
        """
        inspected = self._inspect(container_id)
        if inspected is None:
            raise self._gone(container_id)
        container = self.details(inspected)
        if container.state == "created":
            if killed:
                return code
            state = inspected.get("State")
            reason = str(state.get("Error") or "") if isinstance(state, Mapping) else ""
            outcome = Outcome(code, "", reason or "see its message above")
            raise self.command.refusal("start", outcome, hint=self.hint(outcome.complaint))
        if container.state == "running":
            waited = self.command.run("wait", container_id, deadline=None)
            text = waited.stdout.strip()
            if waited.status != 0 or not text.lstrip("-").isdecimal():
                raise self._gone(container_id)
            return int(text)
        return code if container.exit_code is None else container.exit_code

    def _inspect(self, container_id: str) -> Mapping[str, Any] | None:
        outcome = self.command.run("container", "inspect", container_id)
        if outcome.status != 0:
            if self.is_missing(outcome):
                return None
            raise self.command.failure(f"inspect container {container_id[:12]}", outcome)
        inspected = self.command.decode("inspect a container", outcome.stdout)
        return inspected[0] if isinstance(inspected, list) and inspected else None

    def _is_interactive(self, container_id: str) -> bool:
        if container_id not in self._interactive:
            inspected = self._inspect(container_id)
            if inspected is None:
                raise self._gone(container_id)
            self._interactive[container_id] = bool((inspected.get("Config") or {}).get("OpenStdin"))
        return self._interactive[container_id]

    def _gone(self, container_id: str) -> NoSuchContainerError:
        return NoSuchContainerError(
            f"{self.name} container {container_id[:12]} was removed by somebody else",
            hint="`draht ps` shows what is held now",
        )


def check_request(engine: str, request: ContainerRequest) -> None:
    """Refuse what no engine can make.

    Raises:
        RequestError: Image and root file system both or neither, or the root file system is no directory.
    """
    if (request.image is None) == (request.rootfs is None):
        raise RequestError("a container needs either an image or a root file system", hint="give IMAGE or --rootfs DIR")
    if request.rootfs is not None and not os.path.isdir(request.rootfs):  # noqa: PTH112 — a str from the user
        raise RequestError("the root file system is not a directory", where=request.rootfs)
    if request.image is not None and (not request.image or request.image.startswith("-")):
        raise RequestError(f"{request.image!r} is not the name of an image for {engine}")


def container_from(
    engine: str,
    inspected: Mapping[str, Any],
    *,
    cdi_names: Callable[[Mapping[str, Any]], Sequence[str]],
    device_nodes: Callable[[Mapping[str, Any]], Sequence[Any]],
) -> Container:
    """What ``inspect`` says of a container, in the parts where podman and docker agree; absent parts are unknown."""
    state = _mapping(inspected.get("State"))
    config = _mapping(inspected.get("Config"))
    labels = {str(key): str(value) for key, value in _mapping(config.get("Labels")).items()}
    status = _STATES.get(str(state.get("Status", "")).lower(), "unknown")
    own = tuple(name for name in labels.get(CDI_LABEL, "").split(",") if name)
    pid = state.get("Pid")
    code = state.get("ExitCode")
    return Container(
        engine=engine,
        id=str(inspected.get("Id", "")),
        name=str(inspected.get("Name", "")).removeprefix("/"),
        hold=labels.get(HOLD_LABEL),
        state=status,
        pid=pid if isinstance(pid, int) and pid > 0 else None,
        started_at=timestamp(state.get("StartedAt")),
        exit_code=code if isinstance(code, int) and status == "exited" else None,
        privileged=_mapping(inspected.get("HostConfig")).get("Privileged") is True,
        cdi_names=own or tuple(dict.fromkeys(cdi_names(inspected))),
        device_nodes=tuple(device_nodes(inspected)),
        labels=labels,
    )


def timestamp(value: object) -> str | None:
    """An RFC 3339 time, or None for Go's zero time and anything else."""
    return value if isinstance(value, str) and value and not value.startswith("0001-") else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
