"""The one setting of the machine that a cluster changes: how many inotify instances a user may have.

Kubelets, containerds and control planes need some thirty per cluster of two nodes, and Linux gives 128 to all processes
of a user together, so that a fourth cluster wouldn't start. A limit that is higher harms nobody and stays.
"""

from __future__ import annotations

from pathlib import Path

from cluster.errors import ClusterError

__all__ = ["raise_inotify_instances"]

INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")
ENOUGH = 2048


def raise_inotify_instances(setting: Path = INSTANCES) -> None:
    """Let a user have `ENOUGH` inotify instances, if it is fewer.

    Raises:
        ClusterError: This process may not change it, and it is below what one cluster needs.
    """
    if int(setting.read_text()) >= ENOUGH:
        return
    try:
        setting.write_text(f"{ENOUGH}\n")
    except OSError as error:
        if int(setting.read_text()) < 128:
            raise ClusterError(f"{setting} is too low for a cluster and can't be changed: {error.strerror}") from error
