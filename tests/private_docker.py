"""A docker engine for the tests alone: dockerd, containerd and runc built from source, in a directory of their own.

Owns the daemon's configuration, its start and its end. It exists because CDI in docker can only be proven by a real
dockerd. It opens no network: no bridge, no firewall rules, one Unix socket; containers run with ``--network none``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import leftovers

__all__ = ["CDI_DIRECTORIES", "Docker", "DockerStartError", "start"]

CDI_DIRECTORIES = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where the daemon looks for specs besides its own `Docker.cdi_directory`."""
START_PATIENCE = 60.0
"""Seconds until the daemon must answer; it needs about two on an idle machine."""


class DockerStartError(Exception):
    """The daemon didn't come up; the message ends with its log."""


@dataclass(frozen=True)
class Docker:
    """A running private docker engine.

    Attributes:
        directory: Holds all its state; removed at the end.
        client: The docker command.
        host: Value for ``DOCKER_HOST``.
        cdi_directory: A spec directory that only this daemon reads, besides `CDI_DIRECTORIES`.
        variables: Environment under which ``docker`` on PATH is this client and talks to this daemon.
    """

    directory: Path
    client: Path
    host: str
    cdi_directory: Path
    variables: Mapping[str, str]
    daemon: subprocess.Popen[bytes]

    def run(self, *arguments: str, check: bool = True, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run the docker command against this daemon.

        Raises:
            subprocess.CalledProcessError: It failed and ``check`` is set; what it said is in a note.
        """
        done = subprocess.run(
            [self.client, *arguments],
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            error = subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
            error.add_note(f"{done.stderr}\n{self.log_tail()}")
            raise error
        return done

    def import_image(self, rootfs: Path, tag: str) -> None:
        """Make an image from a root file system, without a registry."""
        with tempfile.TemporaryDirectory() as scratch:
            archive = Path(scratch) / "rootfs.tar"
            with tarfile.open(archive, "w") as tar:
                tar.add(rootfs, arcname=".")
            self.run("import", str(archive), tag)

    def log_tail(self, lines: int = 30) -> str:
        """The end of the daemon's log."""
        try:
            return "\n".join((self.directory / "log").read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return "(the daemon left no log)"

    def stop(self) -> None:
        """End every container, the daemon and its children, and remove its directory."""
        try:
            containers = self.run("ps", "--all", "--quiet", "--no-trunc", check=False, timeout=20).stdout.split()
            if containers:
                self.run("rm", "--force", "--volumes", *containers, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            pass  # a daemon that doesn't answer is swept away below
        self.daemon.send_signal(signal.SIGTERM)
        try:
            self.daemon.wait(20)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        leftovers.sweep(self.directory)
        leftovers.forget(self.directory)


def start(programs: Mapping[str, Path]) -> Docker:
    """Start a private docker engine and wait until it answers.

    Args:
        programs: What `engines.ensure` returned.

    Raises:
        DockerStartError: The daemon ended or didn't answer in time.
    """
    # Below /tmp even if TMPDIR is elsewhere: paths of Unix sockets are limited to 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX, dir="/tmp"))
    leftovers.record(directory)
    host = f"unix://{directory}/docker.sock"
    cdi_directory = directory / "cdi"
    cdi_directory.mkdir()
    configuration = directory / "daemon.json"
    configuration.write_text(json.dumps(_configuration(directory, host, [*CDI_DIRECTORIES, cdi_directory])))
    path = os.pathsep.join([*sorted({str(program.parent) for program in programs.values()}), os.environ["PATH"]])
    variables = {**os.environ, "PATH": path, "DOCKER_HOST": host, "DOCKER_CONFIG": str(directory / "client")}
    with (directory / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [programs["dockerd"], "--config-file", configuration],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the test run, which ends the daemon in order
        )
    docker = Docker(directory, programs["docker"], host, cdi_directory, variables, daemon)
    try:
        _wait_until_it_answers(docker)
    except BaseException:
        docker.stop()
        raise
    return docker


def _configuration(directory: Path, host: str, spec_directories: Sequence[Path]) -> dict[str, object]:
    return {
        "hosts": [host],
        "data-root": f"{directory}/data",
        "exec-root": f"{directory}/exec",
        "pidfile": f"{directory}/pid",
        "cgroup-parent": f"/{directory.name}",
        "storage-driver": "vfs",  # overlays don't nest on every test machine
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        "userland-proxy": False,
        "features": {"cdi": True, "containerd-snapshotter": False},
        "cdi-spec-dirs": [str(path) for path in spec_directories],
        "log-level": "warn",
    }


def _wait_until_it_answers(docker: Docker) -> None:
    until = time.monotonic() + START_PATIENCE
    while time.monotonic() < until:
        if docker.daemon.poll() is not None:
            raise DockerStartError(f"dockerd ended with status {docker.daemon.returncode}\n{docker.log_tail()}")
        if docker.run("version", check=False).returncode == 0:
            return
        time.sleep(0.1)
    raise DockerStartError(f"dockerd didn't answer within {START_PATIENCE} s\n{docker.log_tail()}")
