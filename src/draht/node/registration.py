"""Skeleton."""

from __future__ import annotations

from pathlib import Path

from draht.node.dra_service import DRAService
from draht.node.health_service import HealthService

__all__ = ["KubeletPlugin"]


class KubeletPlugin:
    """A DRA driver as the kubelet sees it: its service socket and its registration."""

    def __init__(
        self,
        driver_name: str,
        service: DRAService,
        *,
        health: HealthService | None = None,
        kubelet: Path = Path("/var/lib/kubelet"),
        instance: str = "",
        interval: float = 1.0,
    ) -> None:
        raise NotImplementedError

    registered: bool
    problem: str | None

    async def start(self) -> None:
        """Serve, then register; raises `SocketError` or `DriverRegisteredError`."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Remove both sockets, the registration's first, and wait for calls that are under way."""
        raise NotImplementedError

    async def __aenter__(self) -> KubeletPlugin:
        raise NotImplementedError

    async def __aexit__(self, *_: object) -> None:
        raise NotImplementedError
