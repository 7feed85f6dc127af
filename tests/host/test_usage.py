"""Who uses devices without a hold: other containers, and processes with open device files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from draht.hardware.inventory import Device, Inventory
from draht.host import usage
from draht.host.engine import Container, Node
from requirements import require

UVM = os.makedev(510, 0)


@pytest.fixture(autouse=True)
def as_root() -> None:
    """Device nodes in a directory of the test can be made by root only."""
    require(os.geteuid() == 0, "device nodes can be made by root only")


class Host:
    """A root directory with /dev and /proc made by the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "dev/nvidia-caps").mkdir(parents=True)
        (root / "proc/1").mkdir(parents=True)
        for name, major, minor in (
            ("nvidia0", 195, 0),
            ("nvidia1", 195, 1),
            ("nvidiactl", 195, 255),
            ("nvidia-uvm", 510, 0),
            ("nvidia-caps/nvidia-cap12", 511, 12),
            ("nvidia-caps/nvidia-cap21", 511, 21),
            ("accel0", 261, 0),
        ):
            os.mknod(root / "dev" / name, 0o600 | 0o020000, os.makedev(major, minor))

    def process(self, pid: int, *opened: str, parent: int = 1, comm: str = "python3") -> None:
        """A process with these files open."""
        place = self.root / "proc" / str(pid)
        (place / "fd").mkdir(parents=True)
        (place / "comm").write_text(f"{comm}\n", encoding="ascii")
        (place / "cmdline").write_bytes(b"python3\0train.py\0")
        (place / "stat").write_text(f"{pid} ({comm}) S {parent} 1 1 0", encoding="ascii")
        for number, target in enumerate(opened):
            # procfs resolves the link by itself, whatever its text says; a plain link has to lead there.
            (place / "fd" / str(number)).symlink_to(target)

    def survey(self, inventory: Inventory, *containers: Container, ours: tuple[str, ...] = ()) -> usage.Survey:
        """Look at it."""
        return usage.survey(inventory, containers, ours=ours, root=self.root)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose links in /proc/PID/fd lead into its own /dev."""
    real_stat = os.stat

    def stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if isinstance(path, str) and "/fd/" in path and path.startswith(str(tmp_path)):
            return real_stat(f"{tmp_path}{Path(path).readlink()}", *args, **kwargs)
        return real_stat(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", stat)
    return Host(tmp_path)


def gpu(index: int, *more: str, **fields: Any) -> Device:
    """A GPU as the CDI provider describes it."""
    given: dict[str, Any] = {
        "id": f"GPU-{index}",
        "kind": "gpu",
        "vendor": "nvidia",
        "units": frozenset({f"GPU-{index}"}),
        "cdi_names": (f"nvidia.com/gpu={index}", f"nvidia.com/gpu=GPU-{index}"),
        "device_nodes": (f"/dev/nvidia{index}", "/dev/nvidiactl", "/dev/nvidia-uvm", *more),
    }
    return Device(**{**given, **fields})


TWO = Inventory(
    machine="host",
    source="cdi",
    devices=(gpu(0), gpu(1)),
    aliases={"nvidia.com/gpu=all": ("GPU-0", "GPU-1")},
)


def container(**fields: Any) -> Container:
    """A running container of podman."""
    return Container(**{"engine": "podman", "id": "c" * 64, "name": "web", "state": "running", "pid": 500, **fields})


@pytest.mark.parametrize(
    ("opened", "busy"),
    [
        (("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"), ["GPU-0"]),
        (("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-uvm"), ["GPU-0", "GPU-1"]),
        (("/dev/nvidia0", "/dev/nvidiactl"), []),
        (("/dev/nvidiactl", "/dev/nvidia-uvm"), []),
        (("/dev/null", "socket:[123]", "/etc/hostname"), []),
    ],
    ids=["computes", "two", "monitors-or-displays", "no-device-of-its-own", "nothing"],
)
def test_a_process_uses_a_gpu_when_it_computes_on_it(host: Host, opened: tuple[str, ...], busy: list[str]) -> None:
    """The GPU's own node and the compute node must be open: nvidia-smi, persistenced and X hold only the first."""
    host.process(4711, *opened)
    found = host.survey(TWO)
    assert [one.device for one in found.usages] == busy
    assert all(one.who == "process 4711 (python3)" and one.pid == 4711 for one in found.usages)
    assert found.partial is None


def test_devices_of_a_vendor_without_a_compute_node_are_used_by_whoever_opens_them(host: Host) -> None:
    """There the device's own node is all the evidence there can be."""
    accel = Device(id="A", kind="accelerator", units=frozenset({"A"}), device_nodes=("/dev/accel0",))
    host.process(7, "/dev/accel0", comm="synapse")
    found = host.survey(Inventory(machine="host", source="cdi", devices=(accel,)))
    assert found.by_unit(Inventory(machine="host", source="cdi", devices=(accel,))) == {"A": "process 7 (synapse)"}


def test_instances_of_one_gpu_are_told_apart_by_their_own_nodes(host: Host) -> None:
    """Two MIG instances open the same GPU node; the capability node says which one it is."""
    shared = ("/dev/nvidia0", "/dev/nvidia-uvm")
    instances = tuple(
        Device(
            id=f"MIG-{number}",
            kind="mig",
            parent="GPU-0",
            units=frozenset({f"GPU-0/{number}"}),
            device_nodes=(*shared, f"/dev/nvidia-caps/nvidia-cap{number}"),
        )
        for number in (12, 21)
    )
    parent = gpu(0, units=frozenset({"GPU-0/12", "GPU-0/21"}))
    host.process(9, *shared, "/dev/nvidia-caps/nvidia-cap21")
    found = host.survey(Inventory(machine="host", source="cdi", devices=(parent, *instances)))
    assert [one.device for one in found.usages] == ["MIG-21"]


@pytest.mark.parametrize(
    ("fields", "busy"),
    [
        ({"cdi_names": ("nvidia.com/gpu=1",)}, ["GPU-1"]),
        ({"cdi_names": ("nvidia.com/gpu=all",)}, ["GPU-0", "GPU-1"]),
        ({"device_nodes": (Node(path="/dev/x", host_path="/dev/nvidia0"),)}, ["GPU-0"]),
        ({"device_nodes": (Node(path="/dev/x", major=195, minor=1),)}, ["GPU-1"]),
        ({"device_nodes": (Node(path="/dev/nvidiactl"),)}, []),
        ({"cdi_names": ("nvidia.com/gpu=1",), "state": "exited"}, []),
        ({"cdi_names": ("nvidia.com/gpu=1",), "state": "created"}, []),
        ({"privileged": True}, []),
    ],
    ids=["name", "alias", "host-path", "numbers", "shared-node", "exited", "created", "privileged"],
)
def test_another_container_with_a_device_uses_it(host: Host, fields: dict[str, Any], busy: list[str]) -> None:
    """By CDI name, alias, host path or number, while it runs; being privileged alone says nothing."""
    found = host.survey(TWO, container(**fields))
    assert [(one.device, one.by, one.who) for one in found.usages] == [
        (device, "container", "podman container web (cccccccccccc)") for device in busy
    ]


def test_our_own_containers_and_their_processes_are_no_outside_use(host: Host) -> None:
    """A process counts for the container it descends from, however deep."""
    ours = container(cdi_names=("nvidia.com/gpu=0",))
    theirs = container(id="d" * 64, name="other", pid=600)
    host.process(500)
    host.process(501, parent=500)
    host.process(502, "/dev/nvidia0", "/dev/nvidia-uvm", parent=501)
    host.process(600)
    host.process(601, "/dev/nvidia1", "/dev/nvidia-uvm", parent=600)
    found = host.survey(TWO, ours, theirs, ours=(ours.id,))
    assert [(one.device, one.who) for one in found.usages] == [
        ("GPU-1", "process 601 (python3) in podman container other (dddddddddddd)")
    ]


def test_simulated_devices_are_never_used_from_outside(host: Host) -> None:
    """Their nodes are those of other devices."""
    host.process(4711, "/dev/nvidia0", "/dev/nvidia-uvm")
    simulated = Inventory(machine="p", source="profile p", devices=(gpu(0, simulated=True),), simulated=True)
    assert host.survey(simulated) == usage.Survey()


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda root: (root / "proc/1").rename(root / "proc/gone"), "procfs hides"),
        (lambda root: (root / "proc").rename(root / "gone"), "procfs hides"),
    ],
    ids=["hidepid", "no-procfs"],
)
def test_what_can_t_be_seen_is_said(host: Host, spoil: Callable[[Path], object], sentence: str) -> None:
    """The survey is marked partial instead of calling everything free."""
    host.process(4711, "/dev/nvidia1")
    spoil(host.root)
    partial = host.survey(TWO).partial
    assert partial is not None
    assert sentence in partial


def test_a_survey_has_an_end(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a million open files is looked at in part, and that is said."""
    monkeypatch.setattr(usage, "MAX_DESCRIPTORS", 3)
    for pid in (20, 21):
        host.process(pid, "/dev/nvidia0", "/dev/nvidia-uvm")
    found = host.survey(TWO)
    assert [one.pid for one in found.usages] == [20]
    assert found.partial == "only the first 3 open files were looked at"


@pytest.fixture
def other_user() -> Iterator[subprocess.Popen[bytes]]:
    """A process of root, seen by nobody."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_processes_of_others_make_the_answer_of_a_user_partial(other_user: subprocess.Popen[bytes]) -> None:
    """On the real /proc, as a user without privileges."""
    program = (
        "import os\n"
        "from draht.hardware.inventory import Device, Inventory\n"
        "from draht.host.usage import survey\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "device = Device(id='x', kind='gpu', device_nodes=('/dev/no-such-node',))\n"
        "print(survey(Inventory(machine='m', source='s', devices=(device,)), []).partial)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "of other users can't be looked at without root" in done.stdout, done.stderr


def test_the_real_procfs_is_read_by_device_number(tmp_path: Path) -> None:
    """An open node is found under another name, in this very process."""
    (tmp_path / "proc").symlink_to("/proc")
    (tmp_path / "dev").mkdir()
    os.mknod(tmp_path / "dev/odd", 0o600 | 0o020000, Path("/dev/zero").stat().st_rdev)
    device = Device(id="odd", kind="gpu", units=frozenset({"odd"}), device_nodes=("/dev/odd",))
    inventory = Inventory(machine="m", source="s", devices=(device,))
    with Path("/dev/zero").open("rb"):
        found = usage.survey(inventory, [], root=tmp_path)
    assert os.getpid() in [one.pid for one in found.usages]
