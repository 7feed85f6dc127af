"""The end of a cluster, however it ends: its processes, mounts, network interfaces, control groups and files.

Everything of a cluster carries its directory: processes in a variable of their environment, those in containers in the
root of their file system, interfaces and control groups in their name. So nothing has to be remembered but the
directory, and a cluster whose run was killed is removed like one that ends in order. Nothing else is touched: processes
are ended by id, and somebody's shell that only talks to the cluster goes on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import leftovers as machine
from cluster import network, place, space
from cluster.component import MARK, reap, recorded
from cluster.errors import ClusterError

__all__ = ["remove", "remove_abandoned"]

PATIENCE = 20.0
"""Seconds until every process must be gone after it was killed."""


def remove(directory: Path) -> None:
    """Remove a cluster that runs or was left; nothing happens if there is none.

    Raises:
        ClusterError: Something of it can't be removed.
    """
    if not directory.exists():
        return
    _end_processes(directory)
    network.remove_bridge(directory)
    _remove_groups(directory)
    machine.unmount_below(directory)
    if machine.mounts_below(directory):  # what can't be unmounted may be the machine's own files
        raise ClusterError(f"something is still mounted below {directory}")
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        raise ClusterError(f"{directory} can't be removed")


def remove_abandoned() -> list[str]:
    """Remove every cluster whose owner is gone; their names.

    Raises:
        ClusterError: Something of one can't be removed.
    """
    removed = []
    for name in place.names():
        with place.locked(name, wait=False) as free:
            # Who holds the lock is making or removing that cluster right now.
            if free and place.is_abandoned(place.base() / name):
                remove(place.base() / name)
                removed.append(name)
    return removed


def _remove_groups(directory: Path) -> None:
    """A killed process leaves its group a moment after it is no process any more."""
    until = time.monotonic() + PATIENCE
    while groups := space.groups_of(directory):
        if time.monotonic() > until:
            raise ClusterError(f"control group {groups[0]} can't be removed")
        for group in groups:
            machine.remove_group(group)
        time.sleep(0.05)


def _end_processes(directory: Path) -> None:
    """Kill everything at once; nothing of a test cluster is worth ending in order."""
    until = time.monotonic() + PATIENCE
    while remaining := set(_processes(directory)):
        if time.monotonic() > until:
            raise ClusterError(f"processes of {directory} don't end: {', '.join(map(str, sorted(remaining)))}")
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    reap()


def _processes(directory: Path) -> Iterator[int]:
    variable = f"{MARK}={directory}".encode()
    # The root of a container's file system, as seen from the file system that it lies on.
    root = f"/{directory.parent.name}/{directory.name}/".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            marked = variable in (entry / "environ").read_bytes().split(b"\0")
            if (marked or root in machine.root_mount(entry / "mountinfo")) and not machine.is_zombie(int(entry.name)):
                yield int(entry.name)
    for record in (directory / "processes").glob("*.json"):
        pid = recorded(record)  # also of one that has just begun, and hasn't its environment yet
        if pid is not None:
            yield pid
