"""Everything about a node that checks are made from, as it was at one moment.

Owns the values only; `draht.node.doctor.local` and `draht.node.doctor.remote` fill them in. None stands for what
couldn't be seen, and then no check concludes anything from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from draht import cdi
from draht.api.core import Event, Node, Pod
from draht.api.resource import DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from draht.driver.claims.rows import Claim
from draht.driver.framework import Offer
from draht.node.kubelet.registered import DRA_PLUGIN, RegisteredPlugin

__all__ = ["Expectation", "Local", "NodeDirectories", "Permission", "Remote", "Scene", "Unseen"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeDirectories:
    """Where the agent of the node works.

    Attributes:
        kubelet: The kubelet's root directory.
        cdi: Where claims' CDI specs are written.
        state: Directory of the machine's database.
        root: Where the host's files are seen, such as those that specs name; None where they aren't, as in a pod.
    """

    kubelet: Path
    cdi: Path
    state: Path
    root: Path | None = Path("/")


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """What the agent of the node is to do, as far as its command line is known.

    Attributes:
        offers: Name of a driver → what it offers now.
        labels: Labels that the node is to have; empty if the agent writes none.
        problems: Why a driver or the machine couldn't be asked.
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something that couldn't be looked at, and why."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Local:
    """What the machine says.

    Attributes:
        plugins: Who answers in the kubelet's registry.
        sockets: Every socket of the kubelet's directories → whether somebody serves it.
        claims: Rows of the machine's database; None without one.
        database: State of the database, the sentence about it and its fix.
        cache: The CDI specs that a runtime reads.
        boot_id: The kernel's id of this boot.
        unseen: What couldn't be looked at.
    """

    plugins: Sequence[RegisteredPlugin]
    sockets: Mapping[Path, bool]
    claims: Sequence[Claim] | None
    database: tuple[Literal["absent", "healthy", "unreadable"], str, str]
    cache: cdi.Cache
    boot_id: str
    unseen: Sequence[Unseen] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    """Something that the agent has to be allowed, and whether who asked is."""

    words: str
    allowed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """What the API server says.

    Attributes:
        reached: It answered at all.
        version: The server's release.
        served: Versions of ``resource.k8s.io``.
        user: Who asked.
        node: The Node object; None if there is none or it couldn't be read.
        node_missing: The server says that there is no such node.
        kubelet_config: The kubelet's configuration (``/configz``).
        slices: ResourceSlices of this node.
        claims: All ResourceClaims.
        pods: Pods on this node.
        events: Events about claims that couldn't be prepared.
        permissions: What the agent needs.
        unseen: What couldn't be looked at.
    """

    reached: bool = False
    version: str = ""
    served: Sequence[str] | None = None
    user: str = ""
    node: Node | None = None
    node_missing: bool = False
    kubelet_config: Mapping[str, Any] | None = None
    slices: Sequence[ResourceSlice] | None = None
    claims: Sequence[ResourceClaim] | None = None
    pods: Sequence[Pod] | None = None
    events: Sequence[Event] | None = None
    permissions: Sequence[Permission] = ()
    unseen: Sequence[Unseen] = ()


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A node at one moment.

    Attributes:
        node_name: Name of the Node object.
        directories: Where the agent works.
        local: What the machine says.
        remote: What the API server says.
        expected: What the agent is to do.
        now: Seconds since the epoch.
        exists: Whether a path is there, and is writable for who asks.
    """

    node_name: str
    directories: NodeDirectories
    local: Local
    remote: Remote
    expected: Expectation
    now: float
    exists: Callable[[Path], Literal["writable", "readable", "missing"]]

    def drivers(self) -> Mapping[str, Sequence[RegisteredPlugin]]:
        """Name of a DRA driver → the plugins that answer under it."""
        found: dict[str, list[RegisteredPlugin]] = {}
        for plugin in self.local.plugins:
            if plugin.type == DRA_PLUGIN:
                found.setdefault(plugin.name, []).append(plugin)
        return found

    def ours(self) -> frozenset[str]:
        """Drivers that draht serves here, has served, or is to serve."""
        names = {name for name, plugins in self.drivers().items() if any(plugin.draht for plugin in plugins)}
        names |= {claim.record.driver for claim in self.local.claims or ()}
        return frozenset(names | set(self.expected.offers))

    def waiting(self) -> Iterator[tuple[Pod, ResourceClaim]]:
        """Pods on this node that haven't begun, with each of their claims that is made."""
        if self.remote.claims is None:
            return
        by_name = {(each.metadata.namespace, each.metadata.name): each for each in self.remote.claims}
        for pod in self.remote.pods or ():
            if pod.status.phase not in {"", "Pending"} or pod.metadata.deletion_timestamp:
                continue
            for name in claim_names(pod):
                claim = by_name.get((pod.metadata.namespace, name))
                if claim is not None:
                    yield pod, claim


def claim_names(pod: Pod) -> Iterable[str]:
    """Names of the claims that a pod uses, those that were made for it among them."""
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    names = [entry.resource_claim_name or made.get(entry.name) for entry in pod.spec.resource_claims]
    extended = pod.status.extended_resource_claim_status
    names.append(extended.resource_claim_name if extended is not None else None)
    return [name for name in names if name]


def results(claim: ResourceClaim) -> Sequence[DeviceRequestAllocationResult]:
    """The devices that a claim was given."""
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()
