"""A node's container runtime: containerd with its configuration, and the images in it.

Owns what containerd is told: state below the node's directory, CDI specs from the node's directory, and a second
handler ``nvidia``, that runs the same runc, for pods that name the RuntimeClass of NVIDIA's operator.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cluster.component import Component
from cluster.errors import ClusterError, CommandError
from cluster.images import PAUSE
from cluster.network import CNI_PROGRAMS
from cluster.space import Space

__all__ = ["Runtime"]


class Runtime:
    """The containerd of a node.

    Attributes:
        component: The process.
        socket: Where it serves CRI.
        cdi_directory: Where it looks for CDI specs, and nowhere else.
        cni_directory: Where it looks for its network.
        state: What is to lie at /run/containerd inside the node.
    """

    def __init__(
        self, node: str, directory: Path, cluster_directory: Path, programs: Mapping[str, Path], space: Space
    ) -> None:
        self._directory = directory
        self._programs = programs
        self._configuration = directory / "containerd.toml"
        self.socket = directory / "containerd.sock"
        self.cdi_directory = directory / "cdi"
        self.cni_directory = directory / "cni"
        self.state = directory / "run"
        shim = programs["containerd-shim-runc-v2"].parent
        path = f"{shim}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        self.component = Component(
            f"{node}-containerd",
            cluster_directory,
            space.command(programs["containerd"], ["--config", str(self._configuration)]),
            {"PATH": path},
        )

    def make(self, cni: str) -> None:
        """Make its configuration.

        Args:
            cni: The node's CNI configuration.

        Raises:
            ClusterError: There is no runc on this machine.
        """
        for directory in (self.cdi_directory, self.cni_directory, self.state):
            directory.mkdir(parents=True, exist_ok=True)
        (self.cni_directory / "10-cluster.conflist").write_text(cni)
        runc = shutil.which("runc", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if runc is None:
            raise ClusterError("there is no runc on this machine (Debian package runc)")
        self._configuration.write_text(_toml(self._settings(runc)))

    def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            ClusterError: It ended or wasn't ready in time.
        """
        self.component.start()
        self.component.wait_until(self._answers, patience=30)

    def load(self, archive: Path) -> None:
        """Import images from an archive.

        Raises:
            CommandError: It refused.
        """
        # Without --local it looks for a transfer service that unpacks for this snapshotter, and finds none.
        self._ctr("images", "import", "--local", "--snapshotter", "native", str(archive))

    def _answers(self) -> bool:
        if not self.socket.exists():
            return False
        try:
            self._ctr("version")
        except CommandError:
            return False
        return True

    def _ctr(self, *arguments: str) -> None:
        # Inside or outside makes no difference: it only talks, and containerd does the work.
        command = [str(self._programs["ctr"]), f"--address={self.socket}", "--namespace=k8s.io", *arguments]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise CommandError(command, done.returncode, done.stdout, done.stderr)

    def _settings(self, runc: str) -> dict[str, object]:
        handler = {
            "runtime_type": "io.containerd.runc.v2",
            "options": {"BinaryName": runc, "SystemdCgroup": False},
        }
        images = {"snapshotter": "native", "pinned_images": {"sandbox": PAUSE}}
        runtime = {
            "cdi_spec_dirs": [str(self.cdi_directory)],
            "disable_apparmor": True,
            "restrict_oom_score_adj": True,
            "netns_mounts_under_state_dir": True,
            "cni": {"bin_dirs": [str(CNI_PROGRAMS)], "conf_dir": str(self.cni_directory)},
            "containerd": {"default_runtime_name": "runc", "runtimes": {"runc": handler, "nvidia": handler}},
        }
        return {
            "version": 3,
            "root": str(self._directory / "containerd"),
            "state": str(self.state / "state"),
            "grpc": {"address": str(self.socket)},
            "plugins": {
                "io.containerd.cri.v1.images": images,
                "io.containerd.cri.v1.runtime": runtime,
                # Its socket is at one place for all containerds of a machine, and nothing here uses it.
                "io.containerd.nri.v1.nri": {"disable": True},
                "io.containerd.internal.v1.opt": {"path": str(self._directory / "opt")},
            },
        }


def _toml(settings: Mapping[str, object]) -> str:
    """Settings as TOML: values first, then the tables below them."""
    lines: list[str] = []

    def write(table: Mapping[str, object], path: tuple[str, ...]) -> None:
        if path:
            lines.append(f"[{'.'.join(json.dumps(part) for part in path)}]")
        for key, value in table.items():
            if not isinstance(value, Mapping):
                lines.append(f"{key} = {json.dumps(value)}")
        for key, value in table.items():
            if isinstance(value, Mapping):
                write(value, (*path, key))

    write(settings, ())
    return "\n".join(lines) + "\n"
