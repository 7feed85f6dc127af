"""Devices that somebody uses without a hold: other containers, and processes that have the device open.

Two kinds of evidence. A container that is running and not ours, which was given a device's CDI name or its node. And a
process that has the device's own node open, found by device number in ``/proc/PID/fd``. Not everything that opens a
node uses the device: monitoring and display programs do so all day long. What computes also has the driver's compute
node open, so that is asked for where a vendor has one (`COMPUTE_NODES`).

What can't be seen is said (`Survey.partial`), never taken for free or busy. It frees and refuses nothing.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from draht.hardware.inventory import Device, Inventory
from draht.host.engine import Container, Node

__all__ = ["COMPUTE_NODES", "Survey", "Usage", "survey"]

COMPUTE_NODES = (
    ("/dev/nvidia[0-9]*", "/dev/nvidia-uvm"),
    ("/dev/nvidia-caps/*", "/dev/nvidia-uvm"),
    ("/dev/dri/*", "/dev/kfd"),
)
"""Pattern of a device's node → the node that a computing process has open as well.

CUDA opens nvidia-uvm and ROCm opens kfd; nvidia-persistenced, nvidia-smi, DCGM, X servers and browsers don't."""

SHARED_NODES = (
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
    "/dev/nvidia-nvswitchctl",
    "/dev/kfd",
    "/dev/dxg",
    "/dev/fuse",
)
"""Nodes of a driver, not of a device, even where only one device names them."""

MAX_PROCESSES = 65_536
MAX_DESCRIPTORS = 1_000_000
"""Where a survey stops looking, and says so; about two seconds of work."""

_MAX_ANCESTORS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """One device in somebody's hands.

    Attributes:
        device: `Device.id`.
        by: Kind of evidence.
        who: For people: ``podman container web (1f3a…)``, ``process 4711 (python3)``.
        pid: The process, if that is the evidence.
        container: Id of the container, if it is or runs in one.
    """

    device: str
    by: Literal["container", "process"]
    who: str
    pid: int | None = None
    container: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """What was seen.

    Attributes:
        usages: In the order of the inventory, containers before processes.
        partial: Why there may be more, in one sentence; None if everything was seen.
    """

    usages: tuple[Usage, ...] = ()
    partial: str | None = None

    def by_unit(self, inventory: Inventory) -> dict[str, str]:
        """Exclusive unit → who uses it; the first evidence wins."""
        found: dict[str, str] = {}
        for usage in self.usages:
            device = inventory.device(usage.device)
            for unit in sorted(device.units) if device is not None else ():
                found.setdefault(unit, usage.who)
        return found


def survey(
    inventory: Inventory,
    containers: Sequence[Container],
    *,
    ours: Collection[str] = (),
    root: str | Path = "/",
) -> Survey:
    """Who uses the devices of an inventory beside our own containers.

    Args:
        inventory: Simulated devices are left out: nobody else can use them.
        containers: What all engines list.
        ours: Ids of the containers that have a hold; they and their processes are no outside use.
        root: Where ``proc`` and ``dev`` are found.
    """
    devices = [device for device in inventory.devices if not device.simulated]
    if not devices:
        return Survey()
    root = Path(root)
    nodes = _telling_nodes(devices)
    numbers = {number: device for path, device in nodes.items() if (number := _number(root, path)) is not None}
    usages = [
        Usage(device=device.id, by="container", who=_container(container), container=container.id)
        for container in containers
        if container.state == "running" and container.id not in ours
        for device in _given(container, inventory, devices, nodes, numbers)
    ]
    looked = _Looked()
    paths = {number: path for path in nodes if (number := _number(root, path)) is not None}
    known = {container.pid: container for container in containers if container.pid is not None}
    for pid, opened in _open_devices(root, looked):
        for number in opened & numbers.keys():
            if not _computes(root, paths[number], opened):
                continue
            container = _inside(root, pid, known)
            if container is None or container.id not in ours:
                usages.append(
                    Usage(
                        device=numbers[number].id,
                        by="process",
                        who=_process(root, pid, container),
                        pid=pid,
                        container=container.id if container else None,
                    )
                )
    order = {device.id: position for position, device in enumerate(devices)}
    usages.sort(key=lambda usage: (order[usage.device], usage.by, usage.pid or 0))
    return Survey(usages=tuple(usages), partial=looked.sentence())


class _Looked:
    """What was not looked at."""

    def __init__(self) -> None:
        self.refused = 0
        self.hidden = False
        self.stopped = False

    def sentence(self) -> str | None:
        if self.stopped:
            return f"only the first {MAX_DESCRIPTORS} open files were looked at"
        if self.hidden:
            return "procfs hides other users' processes, so their open devices can't be seen without root"
        if self.refused:
            return f"{self.refused} processes of other users can't be looked at without root"
        return None


def _telling_nodes(devices: Sequence[Device]) -> dict[str, Device]:
    """Nodes that only one device has: an instance's GPU node, for example, tells nothing about the instance."""
    named = Counter(path for device in devices for path in set(device.device_nodes))
    return {
        path: device
        for device in devices
        for path in device.device_nodes
        if named[path] == 1 and path not in SHARED_NODES
    }


def _given(
    container: Container,
    inventory: Inventory,
    devices: Sequence[Device],
    nodes: Mapping[str, Device],
    numbers: Mapping[int, Device],
) -> list[Device]:
    """Devices that a container was given by name or by node; being privileged alone says nothing about use."""
    names = set(container.cdi_names)
    by_alias = {one for name in names for one in inventory.aliases.get(name, ())}
    found = {device.id for device in devices if device.id in by_alias or not names.isdisjoint(device.cdi_names)}
    for node in container.device_nodes:
        device = _of_node(node, nodes, numbers)
        if device is not None:
            found.add(device.id)
    return [device for device in devices if device.id in found]


def _of_node(node: Node, nodes: Mapping[str, Device], numbers: Mapping[int, Device]) -> Device | None:
    if isinstance(node.major, int) and isinstance(node.minor, int):
        return numbers.get(os.makedev(node.major, node.minor))
    return nodes.get(node.host_path or node.path)


def _number(root: Path, path: str) -> int | None:
    """Device number of a host node, or None if there is no such node."""
    try:
        info = (root / path.lstrip("/")).stat()
    except OSError:
        return None
    return info.st_rdev if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode) else None


def _computes(root: Path, path: str, opened: frozenset[int]) -> bool:
    """Whether a process that has a device's node open computes, as far as the vendor's nodes can tell."""
    for pattern, companion in COMPUTE_NODES:
        if fnmatch.fnmatchcase(path, pattern):
            number = _number(root, companion)
            return number is None or number in opened
    return True


def _open_devices(root: Path, looked: _Looked) -> Iterator[tuple[int, frozenset[int]]]:
    """Process → numbers of the device nodes it has open; processes that end meanwhile are passed over."""
    proc = root / "proc"
    try:
        pids = sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal())
    except OSError:
        looked.hidden = True
        return
    looked.hidden = bool(pids) and not (proc / "1").exists()
    looked.stopped = len(pids) > MAX_PROCESSES
    budget = MAX_DESCRIPTORS
    for pid in pids[:MAX_PROCESSES]:
        try:
            with os.scandir(proc / str(pid) / "fd") as entries:
                descriptors = [entry.path for entry in entries]
        except PermissionError:
            looked.refused += not _is_kernel_thread(proc / str(pid))
            continue
        except OSError:
            continue
        budget -= len(descriptors)
        if budget < 0:
            looked.stopped = True
            return
        opened = frozenset(number for path in descriptors if (number := _device_open(path)) is not None)
        if opened:
            yield pid, opened


def _device_open(descriptor: str) -> int | None:
    try:
        # The text of the link is asked first: following one into a network file system that hangs would hang us.
        if not os.readlink(descriptor).startswith("/dev/"):  # noqa: PTH115 — a million times
            return None
        info = os.stat(descriptor)  # noqa: PTH116 — a million times
    except OSError:
        return None
    return info.st_rdev if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode) else None


def _is_kernel_thread(process: Path) -> bool:
    """Kernel threads (and zombies) have an empty command line, and open no device."""
    try:
        return not (process / "cmdline").read_bytes()
    except OSError:
        return True


def _inside(root: Path, pid: int, known: Mapping[int, Container]) -> Container | None:
    """The container a process descends from: what a container starts stays below its first process."""
    for _ in range(_MAX_ANCESTORS):
        if pid in known:
            return known[pid]
        try:
            text = (root / "proc" / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
            pid = int(text.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
        if pid <= 1:
            return None
    return None


def _container(container: Container) -> str:
    name = f" {container.name}" if container.name else ""
    short = container.id[:12]
    return f"{container.engine} container{name}" + (f" ({short})" if short != container.name else "")


def _process(root: Path, pid: int, container: Container | None) -> str:
    try:
        comm = (root / "proc" / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        comm = ""
    words = f"process {pid}" + (f" ({comm})" if comm else "")
    return words + (f" in {_container(container)}" if container else "")
