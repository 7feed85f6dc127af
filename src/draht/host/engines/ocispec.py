"""The OCI runtime spec of a container that runc starts for draht, before CDI edits.

A function of the request. What is isolated is what people expect of `podman run`: own PID, IPC, UTS, mount and network
namespaces, the usual capabilities, /proc and /sys restricted. Not there: a seccomp filter (runc brings none, and the
profiles of podman and docker belong to them), so privileges can't be gained through set-user-ID programs either.
Format: opencontainers/runtime-spec 1.0.2.
"""

from __future__ import annotations

from typing import Any

from draht.host.engine import Bind, ContainerRequest

__all__ = ["ROOT", "runtime_spec"]

ROOT = "rootfs"
"""The root file system, relative to the bundle."""

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_CAPABILITIES = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETFCAP",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SETUID",
    "CAP_SYS_CHROOT",
]
"""podman's default set."""

_MASKED = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
]

_READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]


def runtime_spec(request: ContainerRequest) -> dict[str, Any]:
    """The content of config.json for a request, without its devices.

    Labels become annotations, which `runc list` gives back.
    """
    env = {"PATH": _PATH, "HOSTNAME": request.name, "HOME": "/"}
    if request.tty:
        env["TERM"] = "xterm"
    env.update(request.env)
    namespaces = ["pid", "ipc", "uts", "mount"] + ([] if request.network == "host" else ["network"])
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": request.tty,
            "user": {"uid": 0, "gid": 0, "additionalGids": list(request.additional_gids)},
            "args": list(request.command),
            "env": [f"{key}={value}" for key, value in env.items()],
            "cwd": "/",
            "capabilities": {
                name: list(_CAPABILITIES) for name in ("bounding", "effective", "permitted")
            },
            "noNewPrivileges": True,
        },
        "root": {"path": ROOT, "readonly": False},
        "hostname": request.name[:63],
        "annotations": request.all_labels(),
        "mounts": [*_mounts(), *(_bind(one) for one in request.binds)],
        "linux": {
            "cgroupsPath": f"/draht/{request.name}",
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
            "namespaces": [{"type": kind} for kind in namespaces],
            "maskedPaths": list(_MASKED),
            "readonlyPaths": list(_READ_ONLY),
        },
    }  # fmt: skip


def _bind(bind: Bind) -> dict[str, Any]:
    access = "ro" if bind.read_only else "rw"
    return {"destination": bind.target, "type": "bind", "source": bind.source, "options": ["rbind", "rprivate", access]}


def _mounts() -> list[dict[str, Any]]:
    def mount(destination: str, kind: str, source: str, *options: str) -> dict[str, Any]:
        return {"destination": destination, "type": kind, "source": source, "options": list(options)}

    return [
        mount("/proc", "proc", "proc", "nosuid", "noexec", "nodev"),
        mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
        mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
        mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
        mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),  # noqa: S108 — a tmpfs
        mount("/dev/mqueue", "mqueue", "mqueue", "nosuid", "noexec", "nodev"),
        mount("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime", "ro"),
    ]
