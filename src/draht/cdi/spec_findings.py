"""What is wrong with the CDI specs of a machine, as findings with their fix.

Owns the questions that every reader of specs has: which directories and files can't be used, which contradict each
other, and what they name that the machine doesn't have. Which engine or runtime reads them is the caller's business.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from draht.api.finding import Finding
from draht.cdi.cache import Cache, LoadedSpec
from draht.cdi.errors import ConflictError

__all__ = ["spec_findings"]


def spec_findings(cache: Cache, root: Path | None) -> Iterator[Finding]:
    """Everything that keeps devices of the cached directories from containers.

    Args:
        cache: The directories.
        root: Where host paths named in specs are looked up; None where the host's files can't be seen.
    """
    yield from _spec_directories(cache)
    yield from _spec_files(cache, root)


def _spec_directories(cache: Cache) -> Iterator[Finding]:
    for directory in cache.directories():
        if directory.error is not None:
            yield Finding(
                kind="cdi-directory-unreadable",
                severity="warning",
                message=directory.error.message,
                fix=directory.error.hint or "give everybody permission to read it (chmod 0755)",
                where=directory.path,
            )


def _spec_files(cache: Cache, root: Path | None) -> Iterator[Finding]:
    conflicts = {id(conflict) for conflict in cache.conflicts()}
    for path, errors in sorted(cache.errors().items()):
        for error in errors:
            if id(error) not in conflicts and not isinstance(error, ConflictError):
                yield Finding(
                    kind="cdi-file-broken",
                    severity="warning",
                    message=f"{error.message}, so no engine offers its devices",
                    fix=error.hint or f"check it with `draht cdi validate {path}` or write it anew",
                    where=error.where or path,
                )
    for conflict in cache.conflicts():
        yield Finding(
            kind="cdi-conflict",
            severity="warning",
            message=conflict.message,
            fix=conflict.hint or "remove one of the files",
            where=conflict.where,
        )
    for spec in cache.specs():
        if _only_for_its_owner(spec.path):
            yield Finding(
                kind="cdi-file-private",
                severity="warning",
                message="only its owner can read this CDI file, so rootless engines don't offer its devices",
                fix=f"chmod 0644 {spec.path}",
                where=spec.path,
            )
        if root is not None:
            yield from _missing_on_host(spec, root)


def _only_for_its_owner(path: str) -> bool:
    try:
        return not os.stat(path).st_mode & stat.S_IROTH  # noqa: PTH116 — a str of the cache
    except OSError:
        return False


def _missing_on_host(spec: LoadedSpec, root: Path) -> Iterator[Finding]:
    """Nodes, hooks and mount sources a spec names and the host doesn't have: one finding for each kind and file."""
    nodes, hooks, sources = set(), set(), set()
    for edits in (spec.spec.container_edits, *(device.container_edits for device in spec.spec.devices)):
        # A node with type and numbers is made without looking at the host (§1.7 of the CDI specification's library).
        nodes |= {node.host_path or node.path for node in edits.device_nodes if not (node.type and node.major)}
        hooks |= {hook.path for hook in edits.hooks}
        sources |= {mount.host_path for mount in edits.mounts if mount.host_path.startswith("/")}
    regenerate = (
        "write the spec anew with the vendor's tool "
        "(`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` with NVIDIA), or remove the file"
    )
    for kind, paths, noun in (
        ("cdi-node-missing", nodes, "device node"),
        ("cdi-hook-missing", hooks, "hook program"),
        ("cdi-mount-missing", sources, "mount source"),
    ):
        missing = sorted(path for path in paths if not _exists(root, path))
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            yield Finding(
                kind=kind,
                severity="warning",
                message=f"the {noun} {missing[0]}{more} of {spec.spec.kind} doesn't exist on this machine, "
                "so containers with it don't start",
                fix=regenerate,
                where=spec.path,
            )


def _exists(root: Path, path: str) -> bool:
    try:
        return os.path.lexists(root / path.lstrip("/"))
    except (OSError, ValueError):
        return False
