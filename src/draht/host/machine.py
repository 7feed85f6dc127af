"""What the kernel lets engines do on this machine: cgroup layout, capabilities, resource limits, systemd.

Reads below a root that is a parameter; it decides nothing. Engines derive their options from it, `draht doctor`
shows it.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["CAP_SYS_RESOURCE", "CgroupMode", "Machine", "read_machine"]

CAP_SYS_RESOURCE = 24
"""Number of the capability that lets a process raise its hard limits (capabilities(7))."""

CgroupMode = Literal["v1", "v2", "hybrid", "none"]

_UNLIMITED = 1 << 62


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The facts engines depend on.

    Attributes:
        cgroups: ``v2`` unified, ``v1`` legacy, ``hybrid`` (v1 controllers with an empty v2 tree beside them), ``none``.
        cgroups_writable: A container's cgroup can be made.
        effective_capabilities: Bit mask of this process.
        nofile: Hard limit of open files; `None` when unlimited.
        nproc: Hard limit of processes; `None` when unlimited.
        pid_max: Largest process id, which also bounds what container engines accept as a limit of processes.
        systemd: systemd is the init system, so that the ``systemd`` cgroup manager can work.
    """

    cgroups: CgroupMode
    cgroups_writable: bool
    effective_capabilities: int
    nofile: int | None
    nproc: int | None
    pid_max: int
    systemd: bool

    def may(self, capability: int) -> bool:
        """Whether this process has a capability."""
        return bool(self.effective_capabilities >> capability & 1)


def read_machine(root: str | Path = "/") -> Machine:
    """Look at the machine now; what can't be read counts as absent or unlimited."""
    root = Path(root)
    cgroups = root / "sys/fs/cgroup"
    return Machine(
        cgroups=_cgroup_mode(cgroups),
        cgroups_writable=_writable(cgroups),
        effective_capabilities=_capabilities(root / "proc/self/status"),
        nofile=_hard_limit(resource.RLIMIT_NOFILE),
        nproc=_hard_limit(resource.RLIMIT_NPROC),
        pid_max=_number(root / "proc/sys/kernel/pid_max", 4194304),
        systemd=(root / "run/systemd/system").is_dir(),
    )


def _cgroup_mode(cgroups: Path) -> CgroupMode:
    """As sd_booted-style detection does: the v2 root has ``cgroup.controllers``, hybrid has it below ``unified``."""
    if (cgroups / "cgroup.controllers").exists():
        return "v2"
    if not (cgroups / "devices").is_dir():
        return "none"
    return "hybrid" if (cgroups / "unified/cgroup.procs").exists() else "v1"


def _writable(cgroups: Path) -> bool:
    place = cgroups if (cgroups / "cgroup.controllers").exists() else cgroups / "devices"
    return os.access(place, os.W_OK)


def _capabilities(status: Path) -> int:
    try:
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _hard_limit(which: int) -> int | None:
    hard = resource.getrlimit(which)[1]
    return None if hard == resource.RLIM_INFINITY or hard >= _UNLIMITED else hard


def _number(path: Path, default: int) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return default
