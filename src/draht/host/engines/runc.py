"""runc: no daemon, no images, no CDI; draht makes the bundle and applies the CDI edits itself.

A container made by ``runc create`` is a child of nobody once runc has returned. For an attached run draht becomes its
parent (a child subreaper, prctl(2)) and so learns its exit status; when draht is killed, the kernel hands the container
to the next ancestor and it runs on. Its stdio are draht's own file descriptors, not pipes that would end with draht.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO

from draht import cdi
from draht.api.finding import Finding
from draht.host.engine import (
    Container,
    ContainerRequest,
    EngineError,
    EngineInfo,
    NoSuchContainerError,
    RequestError,
)
from draht.host.engines.attach import blocked_signals, exit_status, send, wait
from draht.host.engines.bundle import Bundles
from draht.host.engines.client import check_request
from draht.host.engines.command import Command, Outcome
from draht.host.engines.listing import containers_of, foreign_containers, from_bundle, is_missing
from draht.host.engines.ocispec import runtime_spec
from draht.host.engines.terminal import ConsoleSocket, Terminal
from draht.host.machine import Machine, read_machine

__all__ = ["Runc"]

_PR_SET_CHILD_SUBREAPER = 36
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}")


class Runc:
    """runc as draht's own engine.

    Args:
        path: The executable.
        state: draht's state directory; bundles and runc's own state are in ``runc`` below it.
        spec_directories: Where CDI specs are read.
        machine: Facts about the kernel; None reads them now.
        root: Where other callers' containers are looked for.
    """

    name = "runc"

    def __init__(
        self,
        path: str,
        *,
        state: Path,
        spec_directories: Sequence[str],
        machine: Machine | None = None,
        root: str | Path = "/",
    ) -> None:
        self._directory = state.absolute() / "runc"
        self._path = path
        self._command = Command(self.name, path, ["--root", str(self._directory / "state")])
        self._bundles = Bundles(self._directory / "bundles")
        self._spec_directories = tuple(spec_directories)
        self._machine = machine or read_machine()
        self._root = Path(root)
        self._children: dict[str, int] = {}
        self._terminals: dict[str, int] = {}
        self._requests: dict[str, ContainerRequest] = {}

    @cached_property
    def _version(self) -> str:
        first = self._command.must("tell its version", "--version").partition("\n")[0]
        return first.rpartition(" ")[2]

    def info(self) -> EngineInfo:
        """See `draht.host.engine.Engine.info`."""
        problems: list[Finding] = []
        version: str | None = None
        try:
            version = self._version
        except EngineError as error:
            problems.append(
                Finding(
                    kind="engine-fails",
                    severity="broken",
                    message=error.message,
                    fix="reinstall runc",
                    where=self._path,
                )
            )
        if os.geteuid() != 0:
            problems.append(
                Finding(
                    kind="runc-needs-root",
                    severity="broken",
                    message="draht uses runc as root only",
                    fix="run as root, or use podman, which works without",
                    where="runc",
                )
            )
        if self._machine.cgroups == "none" or not self._machine.cgroups_writable:
            problems.append(
                Finding(
                    kind="cgroups-not-writable",
                    severity="broken",
                    message="runc can't make a cgroup for a container",
                    fix="mount the cgroup file system writable, or run outside of a container",
                    where="/sys/fs/cgroup",
                )
            )
        return EngineInfo(
            name=self.name,
            version=version,
            path=self._path,
            cdi_version=cdi.VERSIONS[-1],
            cdi_source="draht applies CDI specs itself",
            spec_directories=self._spec_directories,
            rootless=False,
            problems=tuple(problems),
            reads_cdi_itself=False,
        )

    def prepare(self, request: ContainerRequest) -> None:
        """See `draht.host.engine.Engine.prepare`; there is nothing slow to do."""
        if request.image is not None:
            raise RequestError(
                f"runc knows no images, so {request.image!r} can't be run with it",
                hint="give --rootfs DIR, or use podman or docker",
            )
        check_request(self.name, request)
        if not request.command:
            raise RequestError(
                "runc has no image that says what to run", hint="give a command after --, such as `-- /bin/sh`"
            )
        if request.engine_args:
            raise RequestError(
                "runc takes no further options", hint="use podman or docker for " + request.engine_args[0]
            )
        if request.network not in {None, "none", "host"}:
            raise RequestError(f"runc has no network {request.network!r}", hint="choose none (the default) or host")
        if request.tty and request.detach:
            raise RequestError(
                "runc has nobody to keep the terminal of a detached container", hint="leave out -t, or use podman"
            )
        if not _ID.fullmatch(request.name):
            raise RequestError(f"{request.name!r} is no name for a runc container")

    def create(self, request: ContainerRequest) -> str:
        """See `draht.host.engine.Engine.create`."""
        self.prepare(request)
        config = runtime_spec(request)
        try:
            cdi.Cache(self._spec_directories).inject(config, request.cdi_names)
        except cdi.CDIError as error:
            raise EngineError(f"runc can't create the container: {error}", hint=error.hint) from error
        container_id = request.name
        self._bundles.create(container_id, config, str(request.rootfs))
        try:
            self._run_create(container_id, request)
        except BaseException:
            self.remove(container_id)
            raise
        self._requests[container_id] = request
        return container_id

    def start(self, container_id: str, *, attach: bool) -> int:
        """See `draht.host.engine.Engine.start`."""
        if not attach:
            self._start(container_id)
            return 0
        pid = self._children.get(container_id)
        if pid is None:
            raise EngineError(f"runc container {container_id} was not created attached by this process")
        with blocked_signals(), self._terminal(container_id) as terminal:
            self._start(container_id)

            def deliver(number: int) -> bool:
                if number == signal.SIGWINCH and terminal is not None:
                    terminal.resize()
                else:
                    send(pid, number)
                return True

            status = wait(pid, deliver)
            self._children.pop(container_id, None)
        return exit_status(status)

    def containers(self) -> list[Container]:
        """See `draht.host.engine.Engine.containers`."""
        own = containers_of(self._command)
        listed = {container.id for container in own}
        unborn = [from_bundle(one, self._bundles.config(one)) for one in self._bundles.ids() if one not in listed]
        return [*own, *unborn, *foreign_containers(self._command, self._root)]

    def remove(self, container_id: str) -> None:
        """See `draht.host.engine.Engine.remove`."""
        if not _ID.fullmatch(container_id):
            return
        outcome = self._command.run("delete", "--force", container_id)
        if outcome.status != 0 and not is_missing(outcome):
            raise self._command.failure(f"remove container {container_id}", outcome)
        if (master := self._terminals.pop(container_id, None)) is not None:
            os.close(master)
        if (pid := self._children.pop(container_id, None)) is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._requests.pop(container_id, None)
        self._bundles.remove(container_id)

    def _run_create(self, container_id: str, request: ContainerRequest) -> None:
        """Call ``runc create``, whose stdio become the container's."""
        bundle = self._bundles.path(container_id)
        log, pid_file = bundle / "runc.log", bundle / "pid"
        arguments = ["create", "--bundle", str(bundle), "--pid-file", str(pid_file)]
        with contextlib.ExitStack() as stack:
            stdout: IO[bytes] | None = None
            if request.detach:
                stdout = stack.enter_context((bundle / "output").open("ab"))
            console: ConsoleSocket | None = None
            if request.tty:
                console = stack.enter_context(ConsoleSocket())
                arguments += ["--console-socket", str(console.path)]
            if not request.detach:
                stack.enter_context(_subreaper())
            try:
                done = subprocess.run(
                    [*self._command.argv("--log", str(log)), *arguments, container_id],
                    stdin=None if request.interactive and not request.detach else subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stdout,
                    check=False,
                )
            except OSError as error:
                raise EngineError(f"{self._path} can't be executed: {os.strerror(error.errno or 0).lower()}") from None
            if done.returncode != 0:
                raise self._command.refusal("create", Outcome(done.returncode, "", _text(log)))
            if not request.detach:
                self._children[container_id] = int(pid_file.read_text(encoding="ascii"))
            if console is not None:
                self._terminals[container_id] = console.receive()

    def _start(self, container_id: str) -> None:
        outcome = self._command.run("start", container_id, apart=True)
        if outcome.status == 0:
            return
        if is_missing(outcome):
            raise NoSuchContainerError(
                f"runc container {container_id} was removed by somebody else",
                hint="`draht ps` shows what is held now",
            )
        raise self._command.refusal("start", outcome)

    @contextlib.contextmanager
    def _terminal(self, container_id: str) -> Iterator[Terminal | None]:
        master = self._terminals.pop(container_id, None)
        if master is None:
            yield None
            return
        with Terminal(master, interactive=self._requests[container_id].interactive) as terminal:
            yield terminal


@contextlib.contextmanager
def _subreaper() -> Iterator[None]:
    """Adopt what loses its parent meanwhile: the container's first process, when ``runc create`` returns."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""
