"""A container engine made of files and real processes, so that deaths at any moment can be tried in seconds.

It keeps the promises that real engines keep and `draht.host.reconcile` relies on: a container exists, with its labels,
from one moment to the next; start and remove exclude each other; a running container survives the death of the
process that started it; after `remove` returns, no process of the container is left and a start of it fails.

CDI is done by the real library: the environment of the process is what the injected specs say.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from draht import cdi
from draht.driver.process import ProcessIdentity, boot_id, condition, identify
from draht.host.engine import Container, ContainerRequest, EngineError, EngineInfo, NoSuchContainerError, State


class FakeEngine:
    """See the module; `steps` is called inside `create` and `start`, where a real engine may die too."""

    name = "fake"

    def __init__(
        self,
        root: Path,
        spec_directory: Path,
        *,
        cdi_version: str = "1.1.0",
        steps: Callable[[str], None] = lambda _step: None,
    ) -> None:
        self.root = root
        self.spec_directory = spec_directory
        self.cdi_version = cdi_version
        self.steps = steps
        self.fails: set[str] = set()
        root.mkdir(parents=True, exist_ok=True)

    def info(self) -> EngineInfo:
        return EngineInfo(
            name=self.name,
            version="1",
            path=str(self.root),
            cdi_version=self.cdi_version,
            spec_directories=(str(self.spec_directory),),
        )

    def prepare(self, request: ContainerRequest) -> None:
        self._fail("prepare")

    def create(self, request: ContainerRequest) -> str:
        self._fail("create")
        oci: dict[str, Any] = {"process": {"env": [f"{key}={value}" for key, value in request.env.items()]}}
        cache = cdi.Cache([self.spec_directory])
        cache.inject(oci, list(request.cdi_names))
        identity = secrets.token_hex(16)
        self.steps("creating")
        state = {
            "id": identity,
            "name": request.name,
            "labels": request.all_labels(),
            "cdi_names": list(request.cdi_names),
            "command": list(request.command),
            "env": oci["process"]["env"],
            "gids": list(request.additional_gids),
            "nodes": [node["path"] for node in oci.get("linux", {}).get("devices", [])],
            "process": None,
            "exit_code": None,
        }
        self._save(identity, state)
        self.steps("created-inside")
        self._fail("create-late")
        return identity

    def start(self, container_id: str, *, attach: bool) -> int:
        self._fail("start")
        with self._locked(container_id) as state:
            self.steps("starting")
            # The process waits at a gate until it is recorded; if we die before, it ends without having run.
            process = subprocess.Popen(
                ["/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "gate", *state["command"]],
                env={"PATH": os.environ["PATH"], **dict(entry.split("=", 1) for entry in state["env"])},
                start_new_session=True,
                stdin=subprocess.PIPE,
            )
            started = identify(process.pid)
            state["process"] = {"pid": process.pid, "started": started.started if started else 0}
            self._save(container_id, state)
            self.steps("gate")
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                # Somebody killed it at the gate: a container that ended at once.
                process.stdin.write(b"go\n")
                process.stdin.close()
        self.steps("started-inside")
        if not attach:
            # Nobody waits for it: like a container whose engine daemon reaps it.
            process.returncode = 0
            return 0
        status = process.wait()
        return 128 - status if status < 0 else status

    def containers(self) -> list[Container]:
        self._fail("containers")
        found = []
        for path in sorted(self.root.glob("*.json")):
            try:
                state = json.loads(path.read_text())
            except FileNotFoundError:
                continue
            identity = self._process(state)
            condition_now: State = "created"
            if identity is not None:
                condition_now = "exited" if condition(identity) == "dead" else "running"
            found.append(
                Container(
                    engine=self.name,
                    id=state["id"],
                    name=state["name"],
                    hold=state["labels"].get("draht.dev/hold"),
                    state=condition_now,
                    pid=identity.pid if identity and condition_now == "running" else None,
                    cdi_names=tuple(state["cdi_names"]),
                    labels=state["labels"],
                )
            )
        return found

    def remove(self, container_id: str) -> None:
        self._fail("remove")
        try:
            with self._locked(container_id) as state:
                identity = self._process(state)
                while identity is not None and condition(identity) != "dead":
                    try:
                        os.killpg(identity.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        break
                    time.sleep(0.002)
                self._path(container_id).unlink(missing_ok=True)
        except NoSuchContainerError:
            return

    def environment(self, container_id: str) -> dict[str, str]:
        """What the process of a container sees."""
        state = json.loads(self._path(container_id).read_text())
        return dict(entry.split("=", 1) for entry in state["env"])

    def _fail(self, operation: str) -> None:
        if operation in self.fails:
            raise EngineError(f"fake failure of {operation}")

    def _path(self, container_id: str) -> Path:
        return self.root / f"{container_id}.json"

    def _save(self, container_id: str, state: dict[str, Any]) -> None:
        fresh = self.root / f".{container_id}.{os.getpid()}.tmp"
        fresh.write_text(json.dumps(state))
        fresh.replace(self._path(container_id))

    @contextmanager
    def _locked(self, container_id: str) -> Iterator[dict[str, Any]]:
        lock = os.open(self.root / f".{container_id}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._path(container_id).exists():
                raise NoSuchContainerError(f"no container {container_id}")
            yield json.loads(self._path(container_id).read_text())
        finally:
            os.close(lock)

    @staticmethod
    def _process(state: dict[str, Any]) -> ProcessIdentity | None:
        process = state["process"]
        if process is None:
            return None
        return ProcessIdentity(pid=process["pid"], started=process["started"], boot_id=boot_id())
