"""Skeleton."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import grpc.aio

from draht.driver.framework import Health, Offer

__all__ = ["HealthService"]


class HealthService:
    """The services v1.DRAResourceHealth and v1alpha1.DRAResourceHealth of one driver."""

    def __init__(self, node_name: str, *, timeout: float = 30.0, clock: Callable[[], float] = time.time) -> None:
        raise NotImplementedError

    def set(self, offer: Offer, health: Iterable[Health]) -> None:
        """Say how the devices are now; call it after every look, from the event loop's thread."""
        raise NotImplementedError

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """What a server needs to serve both versions."""
        raise NotImplementedError
