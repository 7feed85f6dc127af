"""What allocated claims hold, by pool: whole devices, shares of devices, and the sum of what shares consume.

Follows how upstream's scheduler computes its ``AllocatedState``: a result with admin access holds nothing; a result
with a share id is a share, where the feature is on; any other result holds the device. Claims that are decided but not
yet written count the same: give them with their allocation.

Immutable: a changed usage is a new one that shares everything else. It doesn't know which devices exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from draht.api.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from draht.api.resource import AllocationResult, DeviceRequestAllocationResult

__all__ = ["EMPTY_POOL", "PoolUsage", "Share", "Usage", "edit"]


@dataclass(frozen=True, slots=True)
class Share:
    """The shares of one device: how many there are, and what they consume together by capacity name."""

    count: int
    consumed: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """What is held of one pool, by device name."""

    whole: Mapping[str, int] = field(default_factory=dict)
    """How many results hold the device as a whole; more than one is a mistake of somebody that must survive removal."""
    shares: Mapping[str, Share] = field(default_factory=dict)

    def holds(self, device: str) -> bool:
        """Whether any result holds the device or a share of it."""
        return device in self.whole or device in self.shares


EMPTY_POOL: Final = PoolUsage()
"""Nothing held."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What is held in the whole cluster.

    Args:
        pools: By driver and pool name; pools of which nothing is held are absent.
        shared: Whether share ids mean shares (the consumable capacity feature).
    """

    pools: Mapping[tuple[str, str], PoolUsage] = field(default_factory=dict)
    shared: bool = True

    def pool(self, driver: str, name: str) -> PoolUsage:
        """What is held of one pool."""
        return self.pools.get((driver, name), EMPTY_POOL)

    def plus(self, allocations: Iterable[AllocationResult]) -> Usage:
        """With these allocations held as well."""
        return self._changed(allocations, 1)

    def minus(self, allocations: Iterable[AllocationResult]) -> Usage:
        """Without these allocations, which must be held."""
        return self._changed(allocations, -1)

    def _changed(self, allocations: Iterable[AllocationResult], sign: int) -> Usage:
        pools = dict(self.pools)
        return Usage(pools, self.shared) if edit(pools, allocations, sign, shared=self.shared) else self


def edit(
    pools: dict[tuple[str, str], PoolUsage], allocations: Iterable[AllocationResult], sign: int, *, shared: bool
) -> set[tuple[str, str]]:
    """Change what is held in place, for whoever owns the mapping; returns the pools that were touched.

    Args:
        pools: As `Usage.pools`.
        allocations: What is held more, or less.
        sign: 1 for more, -1 for less.
        shared: As `Usage.shared`.
    """
    edits: dict[tuple[str, str], tuple[dict[str, int], dict[str, Share]]] = {}
    for allocation in allocations:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            pool = (result.driver, result.pool)
            edited = edits.get(pool)
            if edited is None:
                old = pools.get(pool, EMPTY_POOL)
                edited = edits[pool] = (dict(old.whole), dict(old.shares))
            whole, shares = edited
            if shared and result.share_id is not None:
                _share(shares, result, sign)
            else:
                count = whole.get(result.device, 0) + sign
                if count > 0:
                    whole[result.device] = count
                else:
                    whole.pop(result.device, None)
    for pool, (whole, shares) in edits.items():
        if whole or shares:
            pools[pool] = PoolUsage(whole, shares)
        else:
            pools.pop(pool, None)
    return set(edits)


def _share(shares: dict[str, Share], result: DeviceRequestAllocationResult, sign: int) -> None:
    old = shares.get(result.device)
    count = (old.count if old else 0) + sign
    if count <= 0:
        shares.pop(result.device, None)
        return
    consumed = dict(old.consumed) if old else {}
    for name, text in result.consumed_capacity.items():
        amount = Quantity.from_wire(text)
        before = consumed.get(name)
        if sign > 0:
            consumed[name] = amount if before is None else before + amount
        elif before is not None:
            consumed[name] = before - amount
    shares[result.device] = Share(count, consumed)
