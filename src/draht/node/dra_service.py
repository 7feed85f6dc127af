"""Skeleton."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import grpc.aio

from draht.api.resource import ResourceClaim

__all__ = ["DEADLINE", "DRAService", "Fetch", "PreparedClaim", "PreparedDevice", "Preparer", "Report"]

DEADLINE = 40.0


class PreparedDevice(Protocol):
    """One device of a prepared claim, as `draht.driver.preparation` describes it."""

    @property
    def requests(self) -> Sequence[str]:
        """Requests it was given for; empty means all."""
        ...

    @property
    def pool(self) -> str:
        """Name of its pool, the node's own written out."""
        ...

    @property
    def device(self) -> str:
        """Its name in the pool."""
        ...

    @property
    def cdi_device_ids(self) -> Sequence[str]:
        """Fully qualified names for the container engine."""
        ...

    @property
    def share_id(self) -> str | None:
        """The share of the device, if it is shared by capacity."""
        ...


class PreparedClaim(Protocol):
    """What came of a preparation."""

    @property
    def uid(self) -> str:
        """UID of the claim."""
        ...

    @property
    def namespace(self) -> str:
        """Namespace of the claim."""
        ...

    @property
    def name(self) -> str:
        """Name of the claim."""
        ...

    @property
    def devices(self) -> Sequence[PreparedDevice]:
        """Its devices of this driver."""
        ...


class Preparer(Protocol):
    """Who prepares claims: blocking, idempotent, callable from several threads."""

    def prepare(self, claim: ResourceClaim) -> PreparedClaim:
        """Prepare the devices of a claim; raises `DrahtError` with what the pod's events shall say."""
        ...

    def unprepare(self, uid: str) -> None:
        """Undo it, from what is stored only; a UID that isn't known is a success."""
        ...


Fetch = Callable[[str, str], Awaitable[ResourceClaim | None]]
"""(namespace, name) → the claim as the API server has it, or None where it has none."""
Report = Callable[[PreparedClaim], Awaitable[None]]
"""Writes what became of a claim to its status."""


class DRAService:
    """The services v1.DRAPlugin and v1beta1.DRAPlugin of one driver."""

    def __init__(
        self,
        preparer: Preparer,
        fetch: Fetch,
        *,
        report: Report | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        raise NotImplementedError

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """What a server needs to serve both versions."""
        raise NotImplementedError

    async def close(self, patience: float = 5.0) -> None:
        """Wait for work that is under way, at most ``patience`` seconds."""
        raise NotImplementedError
