"""What runc's state directories say of containers: draht's own, and those of other callers.

runc knows only what it was given: labels come back as annotations, device nodes are in the bundle's config.json. It
changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from draht.host.engine import CDI_LABEL, HOLD_LABEL, Container, EngineError, Node, State
from draht.host.engines.bundle import read_config
from draht.host.engines.command import Command, Outcome

__all__ = ["containers_of", "foreign_containers", "from_bundle", "is_missing"]

ENGINE = "runc"

_STATES: Mapping[str, State] = {
    "creating": "created",
    "created": "created",
    "running": "running",
    "paused": "running",
    "pausing": "running",
    "stopped": "exited",
}
_FOREIGN = ("run/runc", "run/containerd/runc/*")
"""Where other callers' containers are. Podman's are among them and are left to podman; docker's are elsewhere."""


def containers_of(command: Command) -> list[Container]:
    """The containers in the root directory that a runc command names as its last global option.

    Podman's are left out: podman lists them.

    Raises:
        EngineError: It can't be asked.
    """
    root = Path(command.options[-1])
    if not root.is_dir():
        return []
    outcome = command.run("list", "--format", "json")
    if outcome.status == 0:
        items = command.decode("list containers", outcome.stdout)
    elif "no such file or directory" in outcome.stderr:
        # A container that is removed meanwhile makes the whole list fail.
        items = _one_by_one(command, root)
    else:
        raise command.failure("list containers", outcome)
    return [
        _container(item)
        for item in items or ()
        if isinstance(item, dict) and (item.get("annotations") or {}).get("io.container.manager") != "libpod"
    ]


def foreign_containers(command: Command, root: Path) -> list[Container]:
    """Containers of other callers of runc below a root directory; what can't be read is passed over."""
    found: list[Container] = []
    for pattern in _FOREIGN:
        for directory in sorted(root.glob(pattern)):
            if directory.name != "moby" and directory.is_dir():
                with contextlib.suppress(EngineError):
                    found += containers_of(command.with_options("--root", str(directory)))
    return found


def from_bundle(container_id: str, config: Mapping[str, Any]) -> Container:
    """A bundle that runc knows nothing of: its creator is at work, or was killed."""
    labels = {str(key): str(value) for key, value in (config.get("annotations") or {}).items()}
    return Container(
        engine=ENGINE,
        id=container_id,
        name=container_id,
        hold=labels.get(HOLD_LABEL),
        state="created",
        cdi_names=_cdi_names(labels),
        device_nodes=_nodes(config),
        labels=labels,
    )


def is_missing(outcome: Outcome) -> bool:
    """Whether a command failed because runc has no such container."""
    return "does not exist" in outcome.stderr


def _one_by_one(command: Command, root: Path) -> list[Any]:
    """The states of the containers in runc's root directory; those that go meanwhile are passed over."""
    try:
        ids = sorted(entry.name for entry in root.iterdir() if entry.is_dir())
    except OSError as error:
        raise EngineError(
            f"runc can't list containers: {os.strerror(error.errno or 0).lower()}", where=str(root)
        ) from None
    states = []
    for container_id in ids:
        outcome = command.run("state", container_id)
        if outcome.status == 0:
            states.append(command.decode("tell a container's state", outcome.stdout))
        elif not is_missing(outcome) and "no such file or directory" not in outcome.stderr:
            raise command.failure("tell a container's state", outcome)
    return states


def _container(item: Mapping[str, Any]) -> Container:
    labels = {str(key): str(value) for key, value in (item.get("annotations") or {}).items()}
    state = _STATES.get(str(item.get("status")), "unknown")
    pid = item.get("pid")
    return Container(
        engine=ENGINE,
        id=str(item.get("id", "")),
        name=str(item.get("id", "")),
        hold=labels.get(HOLD_LABEL),
        state=state,
        pid=pid if isinstance(pid, int) and pid > 0 and state != "exited" else None,
        started_at=str(item.get("created")) if state in {"running", "exited"} and item.get("created") else None,
        cdi_names=_cdi_names(labels),
        device_nodes=_nodes(read_config(Path(str(item.get("bundle", ""))))),
        labels=labels,
    )


def _cdi_names(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in labels.get(CDI_LABEL, "").split(",") if name)


def _nodes(config: Mapping[str, Any]) -> tuple[Node, ...]:
    linux = config.get("linux")
    devices = linux.get("devices") if isinstance(linux, dict) else None
    return tuple(
        Node(path=str(device.get("path", "")), major=device.get("major"), minor=device.get("minor"))
        for device in devices or ()
        if isinstance(device, dict)
    )
