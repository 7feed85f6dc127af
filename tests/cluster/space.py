"""What makes a part of this machine a node: mounts of its own, and a view of control groups that ends at the node.

Owns the process that holds a node's namespaces, what is mounted in them, and how programs are started inside. Kubelet
and containerd have places that can't be configured (sockets of device plugins and shims); here each node has its own
below them. A kubelet kills containers it doesn't know in the control groups it sees; here it sees only its own. And
with the last process of the node its mounts are gone.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from cluster.component import Component
from cluster.errors import ClusterError

__all__ = ["Space", "groups_of", "hierarchies"]

CGROUPS = Path("/sys/fs/cgroup")
SYSTEM_GROUP = "system"
"""Where a node's own processes are: beside the pods, because a group with limits for groups below has no processes."""
NOT_OURS = {"rw", "ro", "xattr"}
"""Options of a mounted hierarchy that aren't given when it is mounted again."""
PROTECTED = {"kernel/panic": 10, "kernel/panic_on_oops": 1, "vm/overcommit_memory": 1, "vm/panic_on_oom": 0}
"""Settings of the whole machine → what a kubelet would set them to; inside, they seem to have these values already."""


def groups_of(directory: Path) -> list[Path]:
    """The control groups of a cluster, those that exist: one for each hierarchy."""
    name = f"{directory.parent.name}-{directory.name}"
    return [path for path in (CGROUPS / name, *CGROUPS.glob(f"*/{name}")) if path.is_dir()]


class Space:
    """The namespaces of a node.

    Attributes:
        holder: The process that keeps them.
    """

    def __init__(self, cluster_directory: Path, node: str, directory: Path) -> None:
        """Describe a space.

        Args:
            cluster_directory: The cluster's.
            node: The node's name.
            directory: The node's own; a directory ``over`` in it has what is mounted over the machine's.
        """
        self._group = f"{cluster_directory.parent.name}-{cluster_directory.name}/{node}"
        self._directory = directory
        self._script = directory / "space.sh"
        self._inside = directory / "inside.sh"
        self._ready = directory / "space-is-ready"
        self.holder = Component(f"{node}-space", cluster_directory, ["sh", self._script])

    def make(self, over: dict[Path, Path]) -> None:
        """Make the space.

        Args:
            over: A directory of the machine → what the node has there instead. It is made if the machine has none.

        Raises:
            ClusterError: This process may not make it.
        """
        for machines, own in over.items():
            machines.mkdir(parents=True, exist_ok=True)
            own.mkdir(parents=True, exist_ok=True)
        outside = ["set -eu"]
        inside = ["set -eu", "mount --make-rshared /"]  # else no pod could pass mounts on
        for hierarchy, kind, options in hierarchies():
            group = hierarchy / self._group
            outside.append(f"mkdir -p {group}/{SYSTEM_GROUP}")
            if "cpuset" in options.split(","):
                # A new group of version 1 has no processor, and no process may enter it.
                parts = self._group.split("/")
                nested = [hierarchy.joinpath(*parts[: count + 1]) for count in range(len(parts))]
                for above, below in zip([hierarchy, *nested], [*nested, group / SYSTEM_GROUP], strict=True):
                    outside += [f"cat {above}/cpuset.{what} >{below}/cpuset.{what}" for what in ("cpus", "mems")]
            outside.append(f"echo $$ >{group}/cgroup.procs")
            inside.append(f"umount {hierarchy}")
            inside.append(f"mount -t {kind} -o {options} cgroup {hierarchy}")
            inside.append(f"echo $$ >{hierarchy}/{SYSTEM_GROUP}/cgroup.procs")
        inside += [f"mount --bind {shlex.quote(str(own))} {machines}" for machines, own in over.items()]
        pretended = self._directory / "settings"
        pretended.mkdir()
        for number, (setting, value) in enumerate(PROTECTED.items()):
            (pretended / str(number)).write_text(f"{value}\n")
            inside.append(f"mount --bind {pretended}/{number} /proc/sys/{setting}")
        outside.append(f"exec unshare --mount --cgroup --propagation slave sh {self._inside}")
        inside += [f"touch {self._ready}", "exec sleep infinity"]
        self._script.write_text("\n".join(outside) + "\n")
        self._inside.write_text("\n".join(inside) + "\n")
        self.holder.start()
        self.holder.wait_until(self._ready.exists, patience=20, what="didn't make the node's namespaces")

    def command(self, program: Path, arguments: Sequence[str]) -> list[str]:
        """The command that runs a program inside, under the process id that it is started with."""
        enter = [f"echo $$ >{hierarchy / self._group / SYSTEM_GROUP}/cgroup.procs" for hierarchy, _, _ in hierarchies()]
        # The holder's id is read late: this is put together before it runs.
        record = self.holder.record
        script = (
            f"set -eu\n{chr(10).join(enter)}\n"
            f"holder=$(sed -n 's/.*\"pid\": *\\([0-9]*\\).*/\\1/p' {record})\n"
            'exec nsenter --target "$holder" --mount --cgroup -- "$@"'
        )
        return ["sh", "-c", script, "enter", str(program), *arguments]


def hierarchies(mountinfo: str | None = None) -> list[tuple[Path, str, str]]:
    """The hierarchies of control groups: where, which version, and with which options it is mounted again.

    Args:
        mountinfo: Text of ``/proc/self/mountinfo``, if not that of this process.

    Raises:
        ClusterError: There are none.
    """
    found = []
    for line in (Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo).splitlines():
        before, _, after = line.partition(" - ")
        where = Path(before.split()[4])
        kind, _, options = after.split()[:3]
        if kind in {"cgroup", "cgroup2"} and (where == CGROUPS or where.parent == CGROUPS):
            kept = [
                part for part in options.split(",") if part not in NOT_OURS and not part.startswith("release_agent=")
            ]
            if any(option.startswith("name=") for option in kept):
                kept.insert(0, "none")
            found.append((where, kind, ",".join(["rw", *kept]) if kind == "cgroup" else "rw"))
    if not found:
        raise ClusterError(f"no control groups are mounted at {CGROUPS}")
    return found
