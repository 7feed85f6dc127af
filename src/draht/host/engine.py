"""What `draht run` needs from a container engine: the Protocol, its values and its errors.

A run has two phases so that it can be recorded between them: `Engine.create` makes a container that carries the hold's
label and runs nothing, `Engine.start` lets it run. Whatever dies in between, the label says whose container it was.

It knows no engine. The adapters, and the choice among those found on this machine, are `draht.host.engines`.

Errors::

    DrahtError
    └── EngineError                an engine refused, failed or could not be asked
        ├── CommandError           the container's command isn't there or can't be executed
        ├── EngineMissingError     no usable engine of that name on this machine
        ├── NoSuchContainerError   the container is gone (removed by a reconcile, for example)
        └── RequestError           this engine can't do what the request asks for, whatever the machine
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from draht.api.errors import DrahtError
from draht.api.finding import Finding

__all__ = [
    "CDI_LABEL",
    "HOLD_LABEL",
    "Bind",
    "CommandError",
    "Container",
    "ContainerRequest",
    "Engine",
    "EngineError",
    "EngineInfo",
    "EngineMissingError",
    "NoSuchContainerError",
    "Node",
    "RequestError",
    "State",
]

HOLD_LABEL = "draht.dev/hold"
"""Label that every container made by draht carries; its value is the hold's id."""

CDI_LABEL = "draht.dev/cdi"
"""Label with the CDI names that draht passed, comma-separated: engines don't tell them all back."""

State = Literal["created", "running", "exited", "unknown"]
"""*created* has never run, *running* includes paused and stopping, *exited* will not run again by itself."""


class EngineError(DrahtError):
    """An engine refused, failed or could not be asked."""


class CommandError(EngineError):
    """The container was refused because of its own command.

    Attributes:
        status: 127 if the command isn't there, 126 if it can't be executed, as shells, podman and docker have it.
    """

    def __init__(self, message: str, *, status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class EngineMissingError(EngineError):
    """No usable engine of that name on this machine."""


class NoSuchContainerError(EngineError):
    """The container does not exist, or no longer."""


class RequestError(EngineError):
    """The engine has no way to do what the request asks for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bind:
    """A directory or file of the host that the container sees.

    Attributes:
        source: Absolute path on the host; exists.
        target: Absolute path in the container.
        read_only: The container can't write to it.
    """

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerRequest:
    """One container to make.

    Attributes:
        hold: Id of the hold; becomes the label `HOLD_LABEL`.
        name: Name of the container, unique in the engine.
        image: Image reference, or None if `rootfs` is given; exactly one of both.
        rootfs: Absolute path of a directory that is the root file system.
        command: Command and arguments; empty means the image's own.
        cdi_names: Fully qualified CDI names whose specs the engine can already find.
        labels: More labels; `HOLD_LABEL` and `CDI_LABEL` are added by the adapter.
        env: Environment variables set beside those of the image and of CDI.
        binds: Directories and files of the host to mount.
        additional_gids: Supplementary groups (what an older engine can't read from a spec).
        interactive: Keep stdin open and pass it through; otherwise stdin is empty.
        tty: Give the container a terminal.
        detach: `Engine.start` will be called without attaching; runc needs to know at creation.
        network: ``none``, ``host`` or another name the engine knows; None is the engine's default.
        engine_args: Options passed to podman's or docker's ``create`` as they are.
    """

    hold: str
    name: str
    image: str | None = None
    rootfs: str | None = None
    command: tuple[str, ...] = ()
    cdi_names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()
    additional_gids: tuple[int, ...] = ()
    interactive: bool = False
    tty: bool = False
    detach: bool = False
    network: str | None = None
    engine_args: tuple[str, ...] = ()

    def all_labels(self) -> dict[str, str]:
        """The labels the container gets: those of the request and draht's own."""
        labels = {**self.labels, HOLD_LABEL: self.hold}
        if self.cdi_names:
            labels[CDI_LABEL] = ",".join(self.cdi_names)
        return labels


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A device node in a container, as far as the engine tells.

    Attributes:
        path: Path inside the container.
        host_path: Path on the host, if the engine was given one.
        major: Major number, if the engine tells it.
        minor: Minor number, if the engine tells it.
    """

    path: str
    host_path: str | None = None
    major: int | None = None
    minor: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """One container an engine knows, draht's or not.

    Attributes:
        engine: Name of the engine.
        id: The engine's full id.
        name: The engine's name for it.
        hold: Value of the label `HOLD_LABEL`; None for containers that draht did not make.
        state: See `State`.
        pid: Process id of its first process in the host's view, while there is one.
        started_at: RFC 3339 time of the last start, if it was ever started.
        exit_code: Exit status once it has exited and the engine knows.
        privileged: It sees all devices of the host, which says nothing about use.
        cdi_names: CDI names it was made with, as far as known; docker's ``--gpus`` shows as ``nvidia.com/gpu=…``.
        device_nodes: Device nodes it was given beside the standard ones.
        labels: All labels.
    """

    engine: str
    id: str
    name: str
    hold: str | None = None
    state: State = "unknown"
    pid: int | None = None
    started_at: str | None = None
    exit_code: int | None = None
    privileged: bool = False
    cdi_names: tuple[str, ...] = ()
    device_nodes: tuple[Node, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineInfo:
    """What an engine is and can.

    Attributes:
        name: ``podman``, ``docker`` or ``runc``.
        version: Version as the engine says it; None if it can't be asked.
        path: The executable.
        cdi_version: Highest CDI version it reads; None if it reads none at all.
        cdi_source: Why that version is believed, for people.
        spec_directories: Directories it reads CDI specs from, in increasing precedence.
        rootless: It runs without root on the host.
        problems: What stops or degrades it here; one with severity ``broken`` makes it unusable.
        reads_cdi_itself: False for runc: draht applies the edits to its config.json.
    """

    name: str
    version: str | None
    path: str
    cdi_version: str | None
    cdi_source: str = ""
    spec_directories: tuple[str, ...] = ()
    rootless: bool = False
    problems: tuple[Finding, ...] = ()
    reads_cdi_itself: bool = True

    @property
    def usable(self) -> bool:
        """Containers with CDI devices can be started with it."""
        return self.cdi_version is not None and not any(problem.severity == "broken" for problem in self.problems)


class Engine(Protocol):
    """A container engine. All methods may block for as long as the engine takes; none keeps a lock of draht."""

    @property
    def name(self) -> str:
        """``podman``, ``docker`` or ``runc``."""
        ...

    def info(self) -> EngineInfo:
        """What it is and can. Never raises: what can't be found out is a problem in the answer."""
        ...

    def prepare(self, request: ContainerRequest) -> None:
        """Do the slow part that needs no device: pull the image, import the root file system, check the request.

        Call it before any GPU is held. `create` does it again if needed, so calling it is never required.

        Raises:
            EngineError: The image can't be had, or the request can't be served (`RequestError`).
        """
        ...

    def create(self, request: ContainerRequest) -> str:
        """Make the container without running it and return its id.

        The label is there from the first moment on, so a crash at any point leaves something `containers` shows.
        A failed create leaves nothing behind.

        Raises:
            EngineError: The engine refused; its own words are in the message.
        """
        ...

    def start(self, container_id: str, *, attach: bool) -> int:
        """Run a created container.

        Attached: blocks until the container ends, passes stdio and a terminal through as the request said, forwards
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH, and returns the exit status (128+n after
        signal n). Must then be called from the main thread of the process that called `create`.
        Detached: returns 0 as soon as it runs.

        Raises:
            NoSuchContainerError: It was removed in the meantime.
            EngineError: It could not be started; it has not run.
        """
        ...

    def containers(self) -> list[Container]:
        """All containers it knows, in any state, also those that draht did not make.

        Raises:
            EngineError: It can't be asked. That is not the same as "none": holds on it must be kept.
        """
        ...

    def remove(self, container_id: str) -> None:
        """Kill and remove a container, so that a later start of it fails; idempotent.

        Raises:
            EngineError: It is still there.
        """
        ...
