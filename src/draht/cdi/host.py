"""Looking up device nodes on the host, where a spec leaves their type or numbers open.

Owns one question: what is at this path. The root is a parameter, so tests and containerised callers can look elsewhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple, Protocol

__all__ = ["HostDevices", "HostNode", "HostNodes"]


class HostNode(NamedTuple):
    """A device node as the host has it.

    Attributes:
        type: ``b``, ``c`` or ``p``; the host never says ``u``.
        major: Device number; 0 for a FIFO.
        minor: Device number; 0 for a FIFO.
        mode: Permission bits, with set-user-id and the like, without the file type.
    """

    type: str
    major: int
    minor: int
    mode: int


class HostNodes(Protocol):
    """Who knows the host's device nodes."""

    def node(self, path: str) -> HostNode:
        """The device node at a path.

        Raises:
            OSError: There is nothing, or it can't be looked at.
            ValueError: It isn't a device node, or the path can't be one.
        """
        ...


class HostDevices:
    """The device nodes of the file system below `root`.

    A symbolic link is not a device node: the Go library doesn't follow it either.
    """

    def __init__(self, root: str | Path = "/") -> None:
        self.root = str(root)

    def node(self, path: str) -> HostNode:
        """The device node at a path; errors as in `HostNodes.node`."""
        found = os.lstat(self._below_root(path))
        types = {stat.S_IFBLK: "b", stat.S_IFCHR: "c", stat.S_IFIFO: "p"}
        type_ = types.get(stat.S_IFMT(found.st_mode))
        if type_ is None:
            what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a device node"
            raise ValueError(what)
        return HostNode(type_, os.major(found.st_rdev), os.minor(found.st_rdev), stat.S_IMODE(found.st_mode))

    def _below_root(self, path: str) -> str:
        return path if self.root == "/" else f"{self.root}/{path.lstrip('/')}"
