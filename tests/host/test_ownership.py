"""Whether a kubelet's plugin owns the devices, seen by its sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from draht.host import ownership
from requirements import require


class Kubelet:
    """A kubelet's directory with sockets in it."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self.directory = root / "var/lib/kubelet"
        self._stack = stack

    def listen(self, name: str, *, alive: bool = True) -> None:
        """A socket file; one that is dead stays as its process left it."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        here = os.open(path.parent, os.O_PATH)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)
        if alive:
            server.listen()
            self._stack.enter_context(server)
        else:
            server.close()


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    """An empty one, at a path too long for a socket address."""
    root = tmp_path / ("deep" * 25)
    with ExitStack() as stack:
        yield Kubelet(root, stack)


@pytest.mark.parametrize(
    ("name", "vendor", "what"),
    [
        ("plugins_registry/gpu.nvidia.com-reg.sock", "nvidia", "the DRA driver gpu.nvidia.com"),
        ("plugins_registry/gpu.nvidia.com-0b1c-reg.sock", "nvidia", "the DRA driver gpu.nvidia.com"),
        ("plugins/gpu.nvidia.com/dra.sock", "nvidia", "the DRA driver gpu.nvidia.com"),
        ("plugins/gpu.amd.com/dra-0b1c.sock", "amd", "the DRA driver gpu.amd.com"),
        ("plugins_registry/gpu.intel.com-reg.sock", "intel", "the DRA driver gpu.intel.com"),
        ("device-plugins/nvidia-gpu.sock", "nvidia", "the device plugin of nvidia.com/gpu"),
        ("device-plugins/nvidia-mig-1g.10gb.sock", "nvidia", "the device plugin of nvidia.com/gpu"),
        ("device-plugins/amd.com_gpu", "amd", "the device plugin of amd.com/gpu"),
        ("device-plugins/gpu.intel.com-i915.sock", "intel", "the device plugin of gpu.intel.com"),
    ],
)
def test_a_plugin_that_answers_owns_its_vendor_s_devices(kubelet: Kubelet, name: str, vendor: str, what: str) -> None:
    """DRA drivers by registration or service socket, with and without an instance's id; device plugins by theirs."""
    kubelet.listen(name)
    found = ownership.look(kubelet.root)
    owner = found.of(vendor)
    assert owner is not None
    assert (owner.what, owner.socket) == (what, str(kubelet.directory / name))
    assert [found.of(other) for other in {"nvidia", "amd", "intel"} - {vendor}] == [None, None]
    (finding,) = found.findings()
    assert (finding.kind, finding.severity, finding.where) == ("kubelet-owns-devices", "warning", owner.socket)
    assert what in finding.message
    assert finding.fix


@pytest.mark.parametrize(
    "name",
    [
        "device-plugins/kubelet.sock",
        "plugins_registry/compute-domain.nvidia.com-reg.sock",
        "plugins_registry/csi.example.com-reg.sock",
        "plugins_registry/gpu.nvidia.community-reg.sock",
        "pod-resources/kubelet.sock",
    ],
)
def test_other_sockets_of_a_kubelet_own_no_gpus(kubelet: Kubelet, name: str) -> None:
    """A kubelet alone, other drivers, and NVIDIA's driver for network channels leave the GPUs alone."""
    kubelet.listen(name)
    assert ownership.look(kubelet.root) == ownership.Ownership()


def test_a_socket_nobody_listens_on_owns_nothing(kubelet: Kubelet) -> None:
    """Plugins leave their socket files behind when they are killed."""
    kubelet.listen("plugins_registry/gpu.nvidia.com-reg.sock", alive=False)
    kubelet.listen("device-plugins/nvidia-gpu.sock", alive=False)
    assert ownership.look(kubelet.root) == ownership.Ownership()


def test_two_sockets_of_one_driver_are_one_owner(kubelet: Kubelet) -> None:
    """Registration and service of the same driver."""
    kubelet.listen("plugins_registry/gpu.nvidia.com-reg.sock")
    kubelet.listen("plugins/gpu.nvidia.com/dra.sock")
    assert len(ownership.look(kubelet.root).owners) == 1


def test_a_machine_without_a_kubelet_has_no_owner(tmp_path: Path) -> None:
    """Nothing there is not a problem."""
    assert ownership.look(tmp_path) == ownership.Ownership()


def test_a_user_who_may_not_look_is_told_so(tmp_path: Path) -> None:
    """The kubelet's directories are root's: then ownership is unseen, which is not the same as none."""
    require(os.geteuid() == 0, "needs root to become another user")
    (tmp_path / "var/lib/kubelet/plugins_registry").mkdir(parents=True)
    (tmp_path / "var/lib/kubelet/plugins_registry").chmod(0o700)
    for place in (tmp_path, *tmp_path.parents[:-1]):
        if place.owner() == "root" and place != Path("/tmp"):
            place.chmod(0o755)
    program = (
        "import os, sys\n"
        "from draht.host.ownership import look\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(*[finding.kind for finding in look(sys.argv[1]).findings()])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["kubelet-unseen"], done.stderr
