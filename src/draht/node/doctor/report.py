"""Looking at a node as a whole: what was seen, what follows from it, and whether pods with claims can work."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from draht import __version__, cdi
from draht.api.finding import SEVERITIES, Finding
from draht.kube import Client
from draht.node.doctor import claims, cluster, kubelet, slices
from draht.node.doctor.local import DatabaseState, ask_machine
from draht.node.doctor.remote import ask_server
from draht.node.doctor.scene import Expectation, NodeDirectories, Remote, Scene, Unseen

__all__ = ["CHECKS", "Report", "examine"]

PATIENCE: Final = 15.0
"""Seconds for one question to the API server."""
SOCKET_PATIENCE: Final = 2.0
_NOTHING_KNOWN: Final = Expectation()


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What was looked at and found.

    Attributes:
        node: Name of the node.
        versions: Name → version of what the node stands on, as far as it was seen.
        places: What → directory.
        drivers: DRA drivers that are registered: name → who serves it.
        counts: What there is how often.
        findings: The worst first.
    """

    node: str
    versions: Mapping[str, str]
    places: Mapping[str, str]
    drivers: Mapping[str, str]
    counts: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> bool:
        """Whether something stops pods with claims."""
        return any(finding.severity == "broken" for finding in self.findings)


async def examine(
    node_name: str,
    directories: NodeDirectories,
    *,
    client: Client | None,
    unreachable: str = "",
    cache: cdi.Cache,
    database: Callable[[], DatabaseState],
    expected: Expectation = _NOTHING_KNOWN,
    clock: Callable[[], float] = time.time,
    patience: float = PATIENCE,
    socket_patience: float = SOCKET_PATIENCE,
) -> Report:
    """Look at everything.

    Args:
        node_name: Name of the Node object.
        directories: Where the node's agent works.
        client: The API server; None to do without.
        unreachable: Why there is no client.
        cache: The CDI specs that the container runtime reads.
        database: Looks at the machine's database without changing it.
        expected: What the agent is to do, as far as that is known.
        clock: Seconds since the epoch.
        patience: Seconds for one question to the API server.
        socket_patience: Seconds for one socket.
    """
    local = asyncio.create_task(ask_machine(directories, cache=cache, database=database, patience=socket_patience))
    if client is not None:
        remote = await ask_server(client, node_name, patience=patience)
    else:
        remote = Remote(unseen=(Unseen("the API server", unreachable),))
    scene = Scene(
        node_name=node_name,
        directories=directories,
        local=await local,
        remote=remote,
        expected=expected,
        now=clock(),
        exists=_condition,
    )
    findings = [finding for check in CHECKS for finding in check(scene)]
    findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.kind, finding.where or ""))
    return Report(
        node=node_name,
        versions=_versions(scene),
        places={
            "kubelet": str(directories.kubelet),
            "cdi": str(directories.cdi),
            "state": str(directories.state),
        },
        drivers={
            name: " and ".join(f"draht {plugin.draht}" if plugin.draht else "another plugin" for plugin in plugins)
            for name, plugins in sorted(scene.drivers().items())
        },
        counts=_counts(scene),
        findings=tuple(findings),
    )


def _unseen(scene: Scene) -> Iterator[Finding]:
    """What couldn't be looked at: one finding for each reason."""
    by_reason: dict[str, list[str]] = {}
    for each in (*scene.local.unseen, *scene.remote.unseen):
        if scene.remote.reached or each.what != "the API server":
            by_reason.setdefault(each.why, []).append(each.what)
        else:
            yield Finding(
                kind="api-server-unseen",
                severity="warning",
                message=f"the API server can't be asked, so only this machine was looked at: {each.why}",
                fix="name a kubeconfig with --kubeconfig, or run it in the agent's pod",
            )
    for why, what in by_reason.items():
        yield Finding(
            kind="not-looked-at",
            severity="note",
            message=f"{', '.join(what)} couldn't be looked at: {why}",
            fix="ask with an identity that may see them, as root on the node",
        )
    for problem in scene.expected.problems:
        yield Finding(
            kind="offer-unknown",
            severity="note",
            message=f"what the agent should publish isn't known: {problem}",
            fix="give the options that the agent is started with, such as --profile or --driver",
        )


def _condition(path: Path) -> Literal["writable", "readable", "missing"]:
    try:
        if not path.is_dir():
            return "missing"
    except OSError:
        return "readable"
    return "writable" if os.access(path, os.W_OK | os.X_OK) else "readable"


def _versions(scene: Scene) -> Mapping[str, str]:
    info = scene.remote.node.status.node_info if scene.remote.node is not None else None
    found = {
        "draht": __version__,
        "kubernetes": scene.remote.version,
        "kubelet": info.kubelet_version if info else "",
        "runtime": info.container_runtime_version if info else "",
        "resource.k8s.io": " ".join(scene.remote.served or ()),
    }
    return {name: version for name, version in found.items() if version}


def _counts(scene: Scene) -> Mapping[str, int]:
    seen: dict[str, Sequence[object] | None] = {
        "prepared claims": scene.local.claims,
        "slices": scene.remote.slices,
        "pods": scene.remote.pods,
    }
    return {name: len(each) for name, each in seen.items() if each is not None}


CHECKS: Final[tuple[Callable[[Scene], Iterator[Finding]], ...]] = (
    _unseen,
    *kubelet.CHECKS,
    *cluster.CHECKS,
    *slices.CHECKS,
    *claims.CHECKS,
)
"""Every question; each yields what it finds and concludes nothing from what wasn't seen."""
