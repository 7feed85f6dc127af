"""Preparing claims: a small state machine with a record before and after every effect.

The interface stands; the machine itself follows.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from pathlib import Path

from draht.api.resource import ResourceClaim
from draht.driver.database import Database
from draht.driver.framework import Driver, Offer
from draht.driver.prepared import Places, PreparedClaim, PreparedDevice, Recovered

__all__ = ["Places", "PreparedClaim", "PreparedDevice", "Preparer", "Recovered"]


class Preparer:
    """Prepares the claims of one driver on this machine. Thread-safe; claims don't wait for each other.

    Args:
        driver: The vendor's driver.
        database: The machine's database, shared with ``draht run`` and other drivers.
        places: Where files go.
        node_name: Name of the node, which is also the name of the node's own pool.
        host_root: Where the host's root file system is, to see whether device nodes are there.
        cdi_version: The highest CDI version that the container runtime reads; None: the newest.
        steps: Called with the name of each step when it is done; tests kill here.
        lock_seconds: How long to wait for another call that works on the same claim.
    """

    def __init__(
        self,
        driver: Driver,
        database: Database,
        places: Places,
        *,
        node_name: str,
        host_root: Path = Path("/"),
        cdi_version: str | None = None,
        steps: Callable[[str], None] = lambda name: None,
        lock_seconds: float = 30.0,
    ) -> None:
        self.driver = driver
        self.database = database
        self.places = places
        self.node_name = node_name

    def offer(self) -> Offer:
        """What the driver offers, as it was last discovered; discovers it on the first call."""
        raise NotImplementedError

    def refresh(self) -> Offer:
        """Discover again."""
        raise NotImplementedError

    def prepare(self, claim: ResourceClaim) -> PreparedClaim:
        """Make the claim's devices usable. A claim prepared twice gives the same answer.

        Raises:
            ClaimError: It can't be prepared; nothing of it is left, or what is left is undone by the next call.
            StateError: The database can't be used.
        """
        raise NotImplementedError

    def unprepare(self, uid: str) -> None:
        """Undo `prepare`, with what the database has; an unknown claim is a success.

        Raises:
            ClaimError: Something couldn't be undone; the next call goes on.
            StateError: The database can't be used.
        """
        raise NotImplementedError

    def recover(self) -> Recovered:
        """Call it at the start, before the kubelet can ask: half-done claims are rolled back, lost files made again.

        Raises:
            StateError: The database can't be used.
        """
        raise NotImplementedError

    def orphans(self, alive: Container[str] | Callable[[str], bool]) -> tuple[str, ...]:
        """Unprepare what nobody will ask for any more: claims stuck half-way that the API server doesn't have.

        Args:
            alive: UIDs of the claims that exist, or a question for one; it may block.

        Returns:
            The UIDs that are gone now.

        Raises:
            StateError: The database can't be used.
        """
        raise NotImplementedError

    def prepared(self) -> list[PreparedClaim]:
        """The claims that are prepared, oldest first."""
        raise NotImplementedError
