"""Everything about this machine that decides whether `draht run` works, as findings with their fix.

Looks only; what it finds broken is for the person to change. Each check is a function that yields findings, so that one
that can't be answered never hides the others. Findings about an engine come from the engine's adapter.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from draht import __version__, cdi
from draht.api.finding import SEVERITIES, Finding
from draht.cdi.spec_findings import spec_findings
from draht.host.engine import Engine, EngineInfo
from draht.host.machine import CAP_SYS_RESOURCE, Machine
from draht.host.ownership import Ownership

__all__ = ["DatabaseState", "Report", "examine"]

SMALL_NOFILE = 1024
"""CUDA programs open a file for each mapped library, peer and stream; fewer files than this stop real ones."""

DatabaseState = tuple[Literal["absent", "healthy", "unreadable"], str, str]
"""State of the holds database, the sentence that goes with it, and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What was looked at and found.

    Attributes:
        versions: Name → version of what draht stands on.
        machine: Facts about the kernel.
        user: Name or number of the user, and whether it is root.
        engines: All that are installed.
        places: What draht writes → where.
        findings: The worst first.
    """

    versions: Mapping[str, str]
    machine: Machine
    user: str
    engines: tuple[EngineInfo, ...]
    places: Mapping[str, str]
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> bool:
        """Whether something stops `draht run`."""
        return any(finding.severity == "broken" for finding in self.findings)


def examine(
    engines: Mapping[str, Engine],
    *,
    machine: Machine,
    cache: cdi.Cache,
    state: Path,
    cdi_directory: Path,
    ownership: Ownership,
    database: Callable[[], DatabaseState],
    root: str | Path = "/",
    uid: int | None = None,
) -> Report:
    """Look at everything.

    Args:
        engines: The engines that are installed.
        machine: Facts about the kernel.
        cache: The specs that engines and draht read.
        state: Directory of the database.
        cdi_directory: Where transient specs are written.
        ownership: Who else hands out devices.
        database: Looks at the holds database without changing it.
        root: Where host paths named in specs, and ``sys``, are looked up.
        uid: The user; None is the one who asks.
    """
    root = Path(root)
    uid = os.geteuid() if uid is None else uid
    infos = tuple(engine.info() for engine in engines.values())
    findings = [
        *_engines(infos),
        *_kernel(machine, root, infos, uid),
        *_places(state, cdi_directory, infos),
        *_database(database(), state),
        *spec_findings(cache, root),
        *_versions(cache, infos),
        *ownership.findings(),
    ]
    findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.kind, finding.where or ""))
    return Report(
        versions={"draht": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version},
        machine=machine,
        user="root" if uid == 0 else f"uid {uid}",
        engines=infos,
        places={"state": str(state), "cdi": str(cdi_directory)},
        findings=tuple(findings),
    )


def _engines(infos: Sequence[EngineInfo]) -> Iterator[Finding]:
    """One usable engine is enough: then what stops another one is a warning."""
    if not infos:
        yield Finding(
            kind="no-engine",
            severity="broken",
            message="there is no container engine on this machine",
            fix="install podman (`apt install podman`), docker or runc",
        )
    usable = any(info.usable for info in infos)
    for info in infos:
        for problem in info.problems:
            yield replace(problem, severity="warning") if usable and problem.severity == "broken" else problem


def _kernel(machine: Machine, root: Path, infos: Sequence[EngineInfo], uid: int) -> Iterator[Finding]:
    if machine.cgroups == "none":
        yield Finding(
            kind="cgroups-missing",
            severity="broken",
            message="no cgroup file system with a devices controller is mounted, so engines can't limit devices",
            fix="mount cgroup2 at /sys/fs/cgroup, or start the surrounding container with its own cgroups",
            where="/sys/fs/cgroup",
        )
    if uid != 0 and machine.nofile is not None and machine.nofile < SMALL_NOFILE:
        yield Finding(
            kind="few-open-files",
            severity="warning",
            message=f"your limit of open files is {machine.nofile}, and containers of a user can't have more",
            fix="raise it in /etc/security/limits.conf (`* hard nofile 65536`) and log in again",
        )
    if uid == 0 and not machine.may(CAP_SYS_RESOURCE):
        yield Finding(
            kind="no-sys-resource",
            severity="note",
            message="root has no CAP_SYS_RESOURCE here, so containers can't get more than this machine's own limits",
        )
    if uid != 0 and any(info.name == "docker" and info.usable and not info.rootless for info in infos):
        yield Finding(
            kind="docker-means-root",
            severity="note",
            message="you may use a docker daemon that runs as root, so your containers open devices as root",
        )
    if _enforces_selinux(root):
        yield Finding(
            kind="selinux-denies-devices",
            severity="warning",
            message="SELinux is enforcing and keeps containers from using host devices",
            fix="setsebool -P container_use_devices on (or pass --security-opt label=disable to the engine)",
            where="container_use_devices",
        )


def _enforces_selinux(root: Path) -> bool:
    """Whether SELinux enforces with the boolean that lets containers use devices off."""
    selinux = root / "sys/fs/selinux"
    try:
        if (selinux / "enforce").read_text(encoding="ascii").strip() != "1":
            return False
        return (selinux / "booleans/container_use_devices").read_text(encoding="ascii").split()[0] == "0"
    except (OSError, IndexError, UnicodeDecodeError):
        return False


def _places(state: Path, cdi_directory: Path, infos: Sequence[EngineInfo]) -> Iterator[Finding]:
    if not _writable(state):
        yield Finding(
            kind="state-not-writable",
            severity="broken",
            message="the state directory can't be written, so nothing can be held",
            fix="run as root, or set DRAHT_STATE_DIR to a directory of yours",
            where=str(state),
        )
    if not _writable(cdi_directory):
        yield Finding(
            kind="cdi-directory-not-writable",
            severity="warning",
            message="transient CDI specs can't be written, so only names that the vendor's specs offer can be passed "
            "(no simulated GPUs, no lowered specs)",
            fix="run as root, or set DRAHT_CDI_DIR to a directory that the engine reads and you may write",
            where=str(cdi_directory),
        )
    for info in infos:
        if info.usable and not any(_same(directory, cdi_directory) for directory in info.spec_directories):
            yield Finding(
                kind="cdi-directory-not-read",
                severity="warning",
                message=f"{info.name} doesn't read CDI specs from where draht prefers to write them "
                f"(it reads {' and '.join(info.spec_directories) or 'none'})",
                fix=f"set DRAHT_CDI_DIR to one of {info.name}'s directories",
                where=str(cdi_directory),
            )


def _writable(directory: Path) -> bool:
    """Whether a directory can be written, or made in the nearest parent that exists."""
    for place in (directory, *directory.parents):
        if place.exists():
            return place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return False


def _same(one: str, other: Path) -> bool:
    # Unlike Path.resolve, realpath takes a link that leads to itself as it is.
    return os.path.realpath(one) == os.path.realpath(other)


def _database(state: DatabaseState, directory: Path) -> Iterator[Finding]:
    condition, sentence, fix = state
    if condition == "unreadable":
        yield Finding(
            kind="database-unreadable",
            severity="broken",
            message=sentence,
            fix=fix,
            where=str(directory),
        )


def _versions(cache: cdi.Cache, infos: Sequence[EngineInfo]) -> Iterator[Finding]:
    """Files that an engine silently ignores because it knows no such version."""
    for info in infos:
        if not info.usable or not info.reads_cdi_itself or info.cdi_version is None:
            continue
        read = {os.path.realpath(directory) for directory in info.spec_directories}
        for spec in cache.specs():
            version = spec.spec.cdi_version
            if _number(version) > _number(info.cdi_version) and os.path.realpath(Path(spec.path).parent) in read:
                yield Finding(
                    kind="cdi-version-too-new",
                    severity="warning",
                    message=f"{info.name} reads CDI up to {info.cdi_version} and ignores this {version} file",
                    fix=f"`draht cdi lower --to {info.cdi_version} {spec.path}` shows what to write instead; "
                    "`draht run` does it by itself",
                    where=spec.path,
                )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
