"""Writing a decision: the allocation of a pod's claims, and the patch that lets the stock scheduler bind the pod.

Owns the order of the writes and undoing them. The order makes each half-written state one that Kubernetes knows: a
claim has its finalizer before it has an allocation, and a pod loses its gate only when all its claims are allocated,
pinned to the node in the same patch. Otherwise, when that node fails another filter, the scheduler would clear the
allocation and choose devices itself.

It doesn't decide anything, and doesn't look whether CPU, memory or taints of the node suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from draht.api.core import Node, Pod
from draht.api.errors import DrahtError
from draht.api.resource import ResourceClaim
from draht.kube import CLAIMS, PODS, Client, InvalidError, KubeError, NotFoundError

__all__ = ["FINALIZER", "GATE", "MANAGED", "Decision", "DecisionError", "Writer", "hindrance"]

GATE: Final = "draht.dev/placement"
"""The scheduling gate of pods whose devices draht chooses."""
MANAGED: Final = "draht.dev/managed"
"""Key of the taint, given by a DeviceTaintRule, that keeps the stock allocator off the devices draht gives out."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim while a pod may use it; the claim controller removes it (KEP-4381)."""
HOSTNAME: Final = "kubernetes.io/hostname"
"""The label by which a pod can be bound to one node and stays readable for cluster autoscalers."""


class DecisionError(DrahtError):
    """A decision couldn't be written; what was written of it has been taken back."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The devices of one pod, or of a claim that no pod uses yet.

    Attributes:
        pod: The pod as it was read; None for a claim by itself.
        claims: The claims to allocate, as they were read, each with the allocation to write in its status.
        node: The node that the pod goes to; None for a claim by itself.
    """

    pod: Pod | None
    claims: tuple[ResourceClaim, ...]
    node: Node | None


def hindrance(pod: Pod) -> str | None:
    """Why nothing must be decided for this pod now; None if it waits for a decision."""
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if pod.metadata.deletion_timestamp:
        return "it is being deleted"
    if pod.spec.node_name:
        return f"it is on node {pod.spec.node_name}"
    if pod.status.phase not in {"", "Pending"}:
        return f"it is {pod.status.phase.lower()}"
    # An allocation would hold devices for as long as somebody else's gate stays.
    others = [name for name in gates if name != GATE]
    return f"it waits for the gate {', '.join(others)}" if others else None


class Writer:
    """Writes decisions to an API server.

    Args:
        client: Its identity needs to list claims, and to patch them, their status (with ``resourceclaims/binding``) and
            pods.
        known: UIDs of the claims that were allocated when the decisions were made; what others allocate beside them is
            a conflict.
        now: The moment that an allocation is dated with.
    """

    def __init__(
        self,
        client: Client,
        *,
        known: Iterable[str] = (),
        now: Callable[[], datetime] = lambda: datetime.now(tz=UTC),
    ) -> None:
        self._client = client
        self._known = set(known)
        self._now = now

    async def write(self, decision: Decision) -> None:
        """Allocate every claim, then pin the pod and remove its gate.

        A pod without the gate needs no patch: the scheduler sees its claims change.

        Raises:
            DecisionError: A write was refused or somebody was faster; the claims of this decision that had been written
                are free again, or the error says which one isn't.
        """
        written: list[ResourceClaim] = []
        try:
            for claim in decision.claims:
                await self._allocate(claim, written)
            if written:
                await self._check_alone(written)
            if decision.pod is not None and decision.node is not None:
                await self._release(decision.pod, decision.node)
        except (KubeError, _TakenError) as error:
            left = await self._undo(written)
            text = f"the decision couldn't be written: {error.message}"
            if left:
                text += f"; still allocated, and to be freed by hand: {', '.join(left)}"
            raise DecisionError(text, where=error.where, hint=_hint(error)) from error
        self._known |= {claim.metadata.uid for claim in written}

    async def _allocate(self, claim: ResourceClaim, written: list[ResourceClaim]) -> None:
        meta = claim.metadata
        if FINALIZER not in meta.finalizers:
            protected = await self._client.patch(
                CLAIMS,
                meta.name,
                {"metadata": {"uid": meta.uid, "finalizers": [*meta.finalizers, FINALIZER]}},
                namespace=meta.namespace,
                resource_version=meta.resource_version,
            )
            meta = protected.metadata
        allocation: dict[str, Any] = msgspec.to_builtins(claim.status.allocation)
        # With binding conditions on (1.36), the scheduler would fill in a missing time while it reserves, and the API
        # server refuses any change of an allocation: the pod would wait forever.
        allocation["allocationTimestamp"] = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        allocated = await self._client.patch(
            CLAIMS,
            meta.name,
            {"metadata": {"uid": meta.uid}, "status": {"allocation": allocation}},
            namespace=meta.namespace,
            subresource="status",
            resource_version=meta.resource_version,
        )
        written.append(allocated)

    async def _check_alone(self, written: Sequence[ResourceClaim]) -> None:
        """See that nobody else gave devices of the same pools away since the decision was made.

        The API server compares no two claims. Whoever of two writers looks later sees the other's allocation, since
        both write before they look. Pools and not devices: a device can use up counters of another one, or share it.
        """
        own = {claim.metadata.uid for claim in written}
        pools = {pool for claim in written for pool in _pools(claim)}
        for claim in (await self._client.list(CLAIMS)).items:
            taken = sorted(pools & _pools(claim))
            if taken and claim.metadata.uid not in self._known | own:
                raise _TakenError(
                    f"devices of pool {taken[0][1]} were given to claim {claim.metadata.namespace}/"
                    f"{claim.metadata.name} meanwhile"
                )

    async def _release(self, pod: Pod, node: Node) -> None:
        place = next((at for at, gate in enumerate(pod.spec.scheduling_gates) if gate.name == GATE), None)
        if place is None:
            return
        host = node.metadata.labels.get(HOSTNAME, node.metadata.name)
        await self._client.patch(
            PODS,
            pod.metadata.name,
            [
                {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
                {"op": "test", "path": f"/spec/schedulingGates/{place}/name", "value": GATE},
                {"op": "remove", "path": f"/spec/schedulingGates/{place}"},
                {"op": "add", "path": "/spec/nodeSelector", "value": {**pod.spec.node_selector, HOSTNAME: host}},
            ],
            namespace=pod.metadata.namespace,
            type="json",
        )

    async def _undo(self, written: Sequence[ResourceClaim]) -> list[str]:
        """Free claims in reverse; the names of those that couldn't be."""
        left = []
        for claim in reversed(written):
            meta = claim.metadata
            try:
                await self._client.patch(
                    CLAIMS,
                    meta.name,
                    {"metadata": {"uid": meta.uid}, "status": {"allocation": None}},
                    namespace=meta.namespace,
                    subresource="status",
                    resource_version=meta.resource_version,
                )
            except NotFoundError:
                continue
            except KubeError:
                left.append(f"{meta.namespace}/{meta.name}")
        return left


class _TakenError(DrahtError):
    """Somebody else allocated devices that the decision was about."""


def _pools(claim: ResourceClaim) -> set[tuple[str, str]]:
    """(driver, pool) of what a claim has; access for administrators takes nothing away."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return {(result.driver, result.pool) for result in results if not result.admin_access}


def _hint(error: DrahtError) -> str:
    if isinstance(error, InvalidError) and any(cause.field == "spec" for cause in error.causes):
        # The server compares parameters of drivers byte by byte with what it stores in compact form, so the finalizer
        # can't be added to such a claim by anybody; a policy that sets it when the claim is made doesn't need to.
        return "write the parameters in the claim as compact JSON, or have the finalizer set by deploy/placement"
    return error.hint or "decide again"
