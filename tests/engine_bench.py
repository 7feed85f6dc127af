"""A bench to run the same container through any engine and look at what it saw inside.

`Bench` knows one engine of this machine: where it reads CDI specs, the environment its client needs, how to start an
attached container as a process of its own (`engine_process`) and how to clean up. Tests keep to it, so that a row of a
table means the same for podman, docker and runc.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from draht import cdi
from draht.host.engine import Container, ContainerRequest, Engine, EngineError
from draht.host.engines.client import ClientEngine
from draht.host.engines.docker import Docker
from draht.host.engines.podman import Podman
from draht.host.engines.runc import Runc

__all__ = ["PATIENCE", "Attached", "Bench", "eventually"]

PATIENCE = 30.0
"""Seconds that anything in a test may take before it counts as stuck."""

_numbers = itertools.count()


@dataclass
class Attached:
    """A container that runs attached to a process of its own."""

    process: subprocess.Popen[bytes]
    journal: Path

    def created(self) -> str:
        """Id of the container, as soon as it is created."""
        line = str(eventually(self.lines, "the container is created")[0])
        assert line.startswith("created "), line
        return line.removeprefix("created ")

    def lines(self) -> list[str]:
        """What the journal says so far."""
        return self.journal.read_text(encoding="utf-8").splitlines() if self.journal.exists() else []


@dataclass
class Bench:
    """One engine under test.

    Attributes:
        name: Of the engine.
        rootfs: Root file system of all containers.
        scratch: An empty directory for this test.
        specs: A spec directory that the engine reads.
        path: The engine's executable.
        environ: Environment of its client.
    """

    name: str
    rootfs: Path
    scratch: Path
    specs: Path
    path: str
    environ: Mapping[str, str]
    made: list[str] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)

    @property
    def state(self) -> Path:
        """The state directory of this test."""
        return self.scratch / "state"

    def engine(self) -> Engine:
        """A fresh adapter, as another process would have one."""
        if self.name == "podman":
            return Podman(self.path)
        if self.name == "docker":
            return Docker(self.path, environ=self.environ)
        return Runc(self.path, state=self.state, spec_directories=[str(self.specs)])

    def request(self, *command: str, **fields: Any) -> ContainerRequest:
        """A request with a name of its own and no network."""
        name = f"draht-test-{os.getpid()}-{next(_numbers)}"
        self.made.append(name)
        given = {"hold": name, "name": name, "rootfs": str(self.rootfs), "command": command, "network": "none"}
        return ContainerRequest(**{**given, **fields})

    def offer(
        self, *devices: cdi.Device, edits: cdi.ContainerEdits | None = None
    ) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Write a spec lowered to what the engine reads; the devices' names, and groups that must go by option."""
        edits = edits or cdi.ContainerEdits()
        highest = self.engine().info().cdi_version
        assert highest is not None
        gids: tuple[int, ...] = ()
        if tuple(map(int, highest.split("."))) < (0, 7, 0):
            gids, edits = edits.additional_gids, msgspec.structs.replace(edits, additional_gids=())
        kind = f"test-{os.getpid()}-{next(_numbers)}.draht.dev/gpu"
        spec = cdi.lower(
            cdi.Spec(cdi_version=cdi.VERSIONS[-1], kind=kind, devices=devices, container_edits=edits), highest
        )
        self.specs.mkdir(parents=True, exist_ok=True)
        self.written.append(cdi.write_spec(spec, self.specs, kind.replace("/", "_")))
        return tuple(f"{kind}={device.name}" for device in devices), gids

    def start_foreign(self, *options: str) -> str:
        """Start a sleeping container with the engine's own client, as somebody who knows no draht; return its id."""
        engine = self.engine()
        assert isinstance(engine, ClientEngine)
        request = self.request("/bin/sleep", "60")
        given = ["--detach", "--name", request.name, "--network", "none", *options]
        arguments = [*engine.limits(request), *engine.source(request, pull=False), *request.command]
        return engine.command.must("start a container", "run", *given, *arguments).strip().splitlines()[-1]

    @contextmanager
    def attached(self, request: ContainerRequest, **streams: Any) -> Iterator[Attached]:
        """Run a container attached; the process is killed at the end if it still runs."""
        journal = self.scratch / f"{request.name}.journal"
        fields = {name: getattr(request, name) for name in request.__dataclass_fields__}
        order = {
            "engine": self.name,
            "request": {name: value for name, value in fields.items() if value not in ((), None) and value != {}},
            "state": str(self.state),
            "spec_directories": [str(self.specs)],
            "journal": str(journal),
        }
        program = Path(__file__).with_name("engine_process.py")
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        process = subprocess.Popen(
            [sys.executable, str(program), json.dumps(order, default=dataclasses.asdict)],
            env=dict(self.environ),
            **streams,
        )
        try:
            yield Attached(process, journal)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()

    def see(self, request: ContainerRequest, stdin: bytes = b"") -> tuple[int, str, str]:
        """Run a container to its end; its exit status, stdout and stderr."""
        with self.attached(request, stdin=subprocess.PIPE) as attached:
            out, err = attached.process.communicate(stdin, timeout=PATIENCE)
            return attached.process.returncode, out.decode(), err.decode()

    def found(self, container: str) -> Container | None:
        """The container as a fresh adapter lists it."""
        return next((one for one in self.engine().containers() if one.id == container), None)

    def clean(self) -> None:
        """Remove what the test has made."""
        engine = self.engine()
        with suppress(EngineError):
            for container in engine.containers():
                if container.name in self.made:
                    engine.remove(container.id)
        for path in self.written:
            path.unlink(missing_ok=True)


def eventually(question: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Ask until the answer is true, and return it."""
    __tracebackhide__ = True
    deadline = time.monotonic() + patience
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience:.0f} s: {what}")
        time.sleep(0.02)
    return answer
