"""Keeps the ResourceSlices of one driver on one node as the driver offers them.

Owns the loop: when to look, when to write, what to remember of it, and what to say about it. Which writes lead from what
is there to what should be there is `draht.node.slice_plan`; how an offer becomes slices is `draht.driver.slices`.

Slices stay when the publisher ends: a restart of the agent must not disturb scheduling, and the kubelet removes them
when a driver stays away for 30 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from draht.api.errors import DrahtError
from draht.driver.framework import Health, Offer

__all__ = ["Delays", "NodeIdentity", "Publisher"]


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """The node that owns the slices.

    Args:
        name: Name of the Node object.
        uid: Its UID; slices go with it.
    """

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Delays:
    """How long the publisher waits, in seconds.

    Args:
        repair: After a change by somebody else, before the first repair; each further one waits twice as long.
        repair_most: The longest wait for a repair.
        retry: After a failed write, before the next try; doubled with every failure.
        retry_most: The longest wait for a try.
        lag: How long the watch may take to show an own write before the server is asked.
    """

    repair: float = 1.0
    repair_most: float = 30.0
    retry: float = 0.5
    retry_most: float = 60.0
    lag: float = 60.0


class Publisher:
    """Keeps the API server's slices equal to what was set last.

    Args:
        client: A `draht.kube.Client`.
        driver: Name of the driver.
        node: The node.
        delays: How long to wait.
        combined: Counter sets go into the slices of the devices that consume them, as Kubernetes before 1.35 needs it;
            None asks the server for its version.
    """

    def __init__(
        self,
        client: object,
        driver: str,
        node: NodeIdentity,
        *,
        delays: Delays = Delays(),
        combined: bool | None = None,
    ) -> None:
        raise NotImplementedError

    def set(self, offer: Offer, health: Iterable[Health] = ()) -> None:
        """What is to be published from now on; returns at once, and may be called from the event loop only."""
        raise NotImplementedError

    async def run(self) -> None:
        """Work until cancelled. Never raises for what a server says."""
        raise NotImplementedError

    async def settled(self) -> None:
        """Wait until what was set last is on the server, as far as the server takes it."""
        raise NotImplementedError

    @property
    def synced(self) -> bool:
        """Whether the server has exactly what was set last, as far as it is known here."""
        raise NotImplementedError

    @property
    def problems(self) -> tuple[DrahtError, ...]:
        """What is wrong now; empty when all is well."""
        raise NotImplementedError

    @property
    def counters(self) -> Mapping[str, int]:
        """How often: ``create``, ``update``, ``delete`` (writes that were done), ``failed``, ``repairs``."""
        raise NotImplementedError
