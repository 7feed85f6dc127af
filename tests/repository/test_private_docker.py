"""The docker engine of the tests: it reads CDI, and leaves nothing behind however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import leftovers
from private_docker import Docker

pytestmark = pytest.mark.engine

SPEC = {
    "cdiVersion": "0.5.0",
    "kind": "test.draht.dev/thing",
    "devices": [{"name": "one", "containerEdits": {"env": ["THING=one"], "deviceNodes": [{"path": "/dev/null"}]}}],
}


def test_dockerd_injects_a_cdi_device(dockerd: Docker, docker_image: str) -> None:
    """A device from a spec in the daemon's directory arrives inside a container."""
    (dockerd.cdi_directory / "thing.json").write_text(json.dumps(SPEC))
    name = "test.draht.dev/thing=one"
    seen = dockerd.run("run", "--rm", "--network", "none", "--device", name, docker_image, "env")
    assert "THING=one" in seen.stdout.splitlines()


START_AND_HANG = """
import sys, time
sys.path[:0] = sys.argv[1:]
import engines, private_docker
from pathlib import Path
docker = private_docker.start(engines.ensure())
import busybox
rootfs = docker.directory / "rootfs"
rootfs.mkdir()
docker.import_image(busybox.make_rootfs(rootfs), "t:1")
docker.run("run", "-d", "--network", "none", "t:1", "sleep", "1000")
print(docker.directory, flush=True)
time.sleep(600)
"""


def test_a_killed_run_is_swept_by_the_next(engine_programs: dict[str, Path]) -> None:
    """After ``kill -9`` of a test run, its daemon, container, mounts and files are removed by the next run."""
    assert engine_programs
    paths = [str(Path(__file__).resolve().parents[2] / name) for name in ("tests", "tools")]
    run = subprocess.Popen([sys.executable, "-c", START_AND_HANG, *paths], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    directory = Path(run.stdout.readline().strip())
    assert directory.name.startswith(leftovers.PREFIX)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    left = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in leftovers.processes_of(directory.name)]
    assert {"dockerd", "containerd", "sleep"} <= set(left)

    assert directory in leftovers.sweep_dead_runs()
    assert list(leftovers.processes_of(directory.name)) == []
    assert directory.name not in Path("/proc/self/mountinfo").read_text()
    assert not directory.exists()
    assert list(Path("/sys/fs/cgroup").glob(f"**/{directory.name}")) == []
    assert leftovers.sweep_dead_runs() == []
