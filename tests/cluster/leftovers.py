"""The end of a cluster, however it ends: its processes, mounts, network interfaces, control groups and files.

Everything of a cluster carries the path of its directory: processes in their command line, their environment or, for
containers, the root of their file system. So nothing has to be remembered but the directory, and a cluster whose run
was killed is removed like one that ends in order. Nothing else is touched: processes are ended by id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import leftovers as machine
from cluster import network, place, space
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
    for group in space.groups_of(directory):
        machine.remove_group(group)
        if group.exists():
            raise ClusterError(f"control group {group} can't be removed")
    machine.unmount_below(directory)
    if machine.mounts_below(directory):  # what can't be unmounted may be the machine's own files
        raise ClusterError(f"something is still mounted below {directory}")
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        raise ClusterError(f"{directory} can't be removed")


def remove_abandoned() -> list[str]:
    """Remove every cluster whose owner is gone; their names."""
    removed = []
    for name in place.names():
        directory = place.base() / name
        if place.is_abandoned(directory):
            remove(directory)
            removed.append(name)
    return removed


def _end_processes(directory: Path) -> None:
    """Kill everything at once; nothing of a test cluster is worth ending in order."""
    wanted = place.marker(directory)
    until = time.monotonic() + PATIENCE
    while remaining := [pid for pid in machine.processes_of(wanted) if not machine.is_zombie(pid)]:
        if time.monotonic() > until:
            raise ClusterError(f"processes of {directory} don't end: {', '.join(map(str, remaining))}")
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
