"""A preparer that needs no machine: it remembers what it was asked, and hangs, fails or crashes as it is told."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from draht.api.errors import DrahtError
from draht.api.meta import ObjectMeta
from draht.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)

__all__ = ["ApiServer", "FakePreparer", "Prepared", "PreparedDevice", "the_claim"]


@dataclass(frozen=True)
class PreparedDevice:
    """As `draht.node.kubelet.claim_calls.PreparedDevice`."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_device_ids: tuple[str, ...]
    share_id: str | None = None


@dataclass(frozen=True)
class Prepared:
    """As `draht.node.kubelet.claim_calls.PreparedClaim`."""

    uid: str
    devices: tuple[PreparedDevice, ...]


@dataclass
class FakePreparer:
    """Gives each claim one device that is named after it.

    Attributes:
        errors: UID → what its preparation raises.
        gates: UID → what its preparation waits for.
        shares: UID → the share of its device.
        calls: (operation, uid) → how often.
        most: How many preparations ran at once, at most.
    """

    errors: dict[str, Exception] = field(default_factory=dict)
    gates: dict[str, threading.Event] = field(default_factory=dict)
    shares: dict[str, str] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    order: list[str] = field(default_factory=list)
    prepared: dict[str, Prepared] = field(default_factory=dict)
    most: int = 0
    _running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, claim: ResourceClaim) -> Prepared:
        """Prepare one claim, or do what was arranged for it."""
        uid = claim.metadata.uid
        with self._lock:
            self.calls["prepare", uid] += 1
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            if (gate := self.gates.get(uid)) is not None and not gate.wait(30):
                raise DrahtError("the gate never opened")
            if (error := self.errors.get(uid)) is not None:
                raise error
            device = PreparedDevice(
                ("gpu",), "node-0", f"gpu-{uid}", (f"k8s.test/claim={uid}-gpu",), self.shares.get(uid)
            )
            self.prepared[uid] = Prepared(uid, (device,))
            self.order.append(f"prepared {uid}")
            return self.prepared[uid]
        finally:
            with self._lock:
                self._running -= 1

    def unprepare(self, uid: str) -> None:
        """Forget one claim, or do what was arranged for it."""
        self.calls["unprepare", uid] += 1
        if (error := self.errors.get(uid)) is not None:
            raise error
        self.prepared.pop(uid, None)
        self.order.append(f"unprepared {uid}")


class ApiServer:
    """What `fetch` asks: every claim exists as it was named, unless something else was arranged.

    Attributes:
        claims: Name of a claim → what is there, or what asking raises.
    """

    def __init__(self) -> None:
        self.claims: dict[str, ResourceClaim | Exception | None] = {}

    async def fetch(self, namespace: str, name: str) -> ResourceClaim | None:
        """The claim of a name."""
        found = self.claims.get(name, the_claim(name.removeprefix("claim-"), namespace=namespace, name=name))
        if isinstance(found, Exception):
            raise found
        return found


def the_claim(uid: str, *, namespace: str = "team", name: str = "") -> ResourceClaim:
    """An allocated claim that a pod uses."""
    user = ResourceClaimConsumerReference(resource="pods", name=f"pod-of-{uid}", uid=f"pod-{uid}")
    return ResourceClaim(
        metadata=ObjectMeta(namespace=namespace, name=name or f"claim-{uid}", uid=uid),
        status=ResourceClaimStatus(allocation=AllocationResult(), reserved_for=(user,)),
    )
