"""One long-running program of a cluster: its command, its log, its start and its end.

Owns the record of which process it is (id and start time), so that another run of Python can stop it too. It doesn't
know what the program does; whether it is ready, the caller asks.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import leftovers
from cluster.errors import ClusterError

__all__ = ["MARK", "Component", "reap", "recorded"]

MARK = "DRAHT_CLUSTER"
"""Environment variable that holds the cluster's directory, by which its processes and their children are found."""
PROXIES = {"http_proxy", "https_proxy", "all_proxy"}
_children: list[subprocess.Popen[bytes]] = []
"""What this process started and hasn't learned the end of."""


def reap() -> None:
    """Learn the end of what this process started, so that no zombies stay while it goes on."""
    _children[:] = [child for child in _children if child.poll() is None]


def recorded(record: Path) -> int | None:
    """The id of the process that a record is about, while that runs."""
    try:
        written = json.loads(record.read_text())
        pid, started = int(written["pid"]), written["started"]
    except (OSError, ValueError, KeyError):
        return None
    return pid if leftovers.start_of(pid) == started and not leftovers.is_zombie(pid) else None


class Component:
    """A program that runs until it is stopped.

    Attributes:
        name: What it is called in messages and in the name of its log.
        log: The file with everything it wrote, over all its starts.
        record: The file that says which process it is.
    """

    def __init__(
        self, name: str, directory: Path, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = directory / "logs" / f"{name}.log"
        self._command = [str(part) for part in command]
        # Nothing in a cluster leaves this machine, and kubelets aren't reached through somebody's proxy.
        inherited = {name: value for name, value in os.environ.items() if name.lower() not in PROXIES}
        self._environment = {**inherited, MARK: str(directory), **(environment or {})}
        self.record = directory / "processes" / f"{name}.json"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of its process while that runs."""
        if self._child is not None:
            return self._child.pid if self._child.poll() is None else None
        return recorded(self.record)

    def start(self) -> None:
        """Start it; nothing happens while it runs."""
        if self.pid is not None:
            return
        for parent in (self.log.parent, self.record.parent):
            parent.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the run, which ends the cluster in order
            )
        _children.append(self._child)
        started = leftovers.start_of(self._child.pid)
        self.record.write_text(json.dumps({"pid": self._child.pid, "started": started}))

    def stop(self, *, kill: bool = False, patience: float = 10.0) -> None:
        """End it; one that doesn't end in time is killed.

        Args:
            kill: Kill it at once (SIGKILL) instead of asking it to end.
            patience: Seconds until it is killed.
        """
        pid = self.pid
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
        until = time.monotonic() + patience
        while self.pid == pid:
            if time.monotonic() > until:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                until = time.monotonic() + patience
            time.sleep(0.02)

    def wait_until(self, ready: Callable[[], bool], *, patience: float, what: str = "wasn't ready") -> None:
        """Wait for a condition while the program runs.

        Raises:
            ClusterError: The program ended, or the condition didn't hold in time; with the end of its log.
        """
        until = time.monotonic() + patience
        while not ready():
            if self.pid is None:
                status = "" if self._child is None else f" with status {self._child.returncode}"
                raise ClusterError(f"{self.name} ended{status}\n{self.log_tail()}")
            if time.monotonic() > until:
                raise ClusterError(f"{self.name} {what} within {patience:.0f} s\n{self.log_tail()}")
            time.sleep(0.05)

    def log_tail(self, lines: int = 25) -> str:
        """The end of its log."""
        try:
            said = self.log.read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            return f"({self.name} left no log)"
        return "\n".join(line[:400] for line in said)
