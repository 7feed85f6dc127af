"""Where clusters lie, what may be their name, and what is written down about each.

Owns the one directory per cluster with everything in it, and the record in it that says whose the cluster is. Paths are
short because a Unix socket's may have 107 bytes, and at a fixed place so that a later run finds what an earlier left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import leftovers
from cluster.errors import ClusterError

__all__ = ["NETWORK", "base", "directory_of", "is_abandoned", "locked", "names", "read_record", "write_record"]

NAME = re.compile(r"[a-z][a-z0-9-]{0,14}[a-z0-9]|[a-z]")
"""Node names are made from it, and paths of sockets: a short DNS label."""

NETWORK = "_network"
"""What is locked while a network is chosen; no cluster can have this name."""


def base() -> Path:
    """The directory of this user's clusters, which nobody else may look into.

    Raises:
        ClusterError: Somebody else made a directory of that name.
    """
    path = Path(f"/tmp/draht-cluster-{os.getuid()}")  # below /tmp even if TMPDIR is elsewhere: see above
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if found.st_uid != os.getuid() or not path.is_dir() or path.is_symlink():
        raise ClusterError(f"{path} isn't a directory of this user: remove it")
    path.chmod(0o700)
    return path


def directory_of(name: str) -> Path:
    """The directory of a cluster; it need not exist.

    Raises:
        ClusterError: It can't be a cluster's name.
    """
    if not NAME.fullmatch(name):
        raise ClusterError(f"{name!r} can't name a cluster: at most 16 of a-z, 0-9 and '-', beginning with a letter")
    return base() / name


def names() -> list[str]:
    """Names of all clusters that run or were left."""
    return sorted(path.name for path in base().iterdir() if path.is_dir() and NAME.fullmatch(path.name))


@contextlib.contextmanager
def locked(what: str, *, wait: bool = True) -> Iterator[bool]:
    """Keep others from making or removing a cluster of a name, or from choosing a network, at the same time.

    Args:
        what: The name.
        wait: Whether to wait for others; else what is yielded says whether the lock was free.
    """
    path = base() / f".lock-{what}"
    while True:
        with path.open("a") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            if not _is_still(path, handle.fileno()):
                continue  # whoever held it removed the file
            try:
                yield True
            finally:
                if not (base() / what).exists():
                    path.unlink(missing_ok=True)
            return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def write_record(directory: Path, facts: dict[str, Any], *, outlives: bool) -> None:
    """Write down what a cluster is made of, before anything of it is started.

    Args:
        directory: The cluster's.
        facts: What `Cluster` needs to open it again.
        outlives: Whether the cluster is to stay when this process ends.
    """
    owner = None if outlives else {"pid": os.getpid(), "started": leftovers.start_of(os.getpid())}
    (directory / "cluster.json").write_text(json.dumps({"owner": owner, **facts}, indent=1))


def read_record(directory: Path) -> dict[str, Any] | None:
    """What was written down, or None if that didn't get so far."""
    try:
        record = json.loads((directory / "cluster.json").read_text())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def is_abandoned(directory: Path) -> bool:
    """Whether the process that a cluster belongs to is gone."""
    record = read_record(directory)
    if record is None:
        return True
    owner = record["owner"]
    return owner is not None and leftovers.start_of(owner["pid"]) != owner["started"]
