"""Claims as a driver sees them, for tests of drivers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from draht.api.resource import DeviceRequestAllocationResult
from draht.driver.framework import Allocated, ClaimDevices, Driver, Offered, Parameters

__all__ = ["claim_of", "parameters"]

PATH = "status.allocation.devices.config"


def parameters(value: Any, *, index: int = 0, requests: tuple[str, ...] = (), source: str = "FromClaim") -> Parameters:
    """Opaque parameters at a position of the allocation."""
    return Parameters(source=source, requests=requests, value=value, index=index)


def claim_of(
    driver: Driver, devices: Mapping[str, str], *config: Parameters, uid: str = "uid-1", pool: str = "node-1"
) -> ClaimDevices:
    """A claim that was given devices of a driver.

    Args:
        driver: Asked for what it offers.
        devices: Request → name of the device.
        config: What is configured, in the order of the allocation.
        uid: UID of the claim.
        pool: Name of the pool in the results; the node's own if the driver doesn't offer one of this name.
    """
    offered = driver.discover().devices()
    return ClaimDevices(
        uid=uid,
        namespace="default",
        name="claim",
        devices=tuple(
            Allocated(
                result=DeviceRequestAllocationResult(request=request, driver=driver.name, pool=pool, device=name),
                offered=_offered(offered, pool, name),
                parameters=tuple(each for each in config if not each.requests or request in each.requests),
            )
            for request, name in devices.items()
        ),
    )


def _offered(offered: Mapping[tuple[str, str], Offered], pool: str, name: str) -> Offered | None:
    return offered.get((pool, name)) or offered.get(("", name))
