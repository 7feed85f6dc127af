"""Which slices an offer asks for on a given server.

Owns the way from what a driver offers to slices that can be written: without devices that break a rule, without what
this server is known not to take, and in the layout of its release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from draht.api.resource import ResourceSliceSpec
from draht.driver.framework import Offer
from draht.driver.pool_check import check_pool
from draht.driver.slices import pool_name, pool_slices
from draht.node.slices.answers import ServerAnswers
from draht.node.slices.errors import DeviceRefusedError

__all__ = ["Wishes", "combines_counters", "wishes"]

_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)")
_APART: Final = (1, 35)
"""The release since which counter sets are in slices of their own."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is to be on the server.

    Attributes:
        pools: Name of a pool → its slices.
        left_out: What can't be published, and why.
    """

    pools: Mapping[str, tuple[ResourceSliceSpec, ...]]
    left_out: tuple[DeviceRefusedError, ...]

    @property
    def slices(self) -> tuple[ResourceSliceSpec, ...]:
        """The slices of all pools."""
        return tuple(spec for specs in self.pools.values() for spec in specs)


def wishes(offer: Offer, answers: ServerAnswers, *, driver: str, node_name: str, combined: bool) -> Wishes:
    """The slices for an offer.

    Args:
        offer: What the driver offers, taints included.
        answers: What is known of the server.
        driver: Name of the driver.
        node_name: Name of the node.
        combined: See `draht.driver.slices.pool_slices`.
    """
    pools: dict[str, tuple[ResourceSliceSpec, ...]] = {}
    left_out: list[DeviceRefusedError] = []
    for pool in offer.pools:
        name = pool_name(pool, node_name)
        checked = check_pool(driver, pool, node_name=node_name)
        left_out += [
            DeviceRefusedError(
                f"it isn't published: {each.message}",
                where=f"device {name}/{each.name}" if each.name else f"pool {name}",
                hint="correct what the driver offers",
            )
            for each in checked.left_out
        ]
        if checked.pool is not None:
            allowed = answers.allowed(checked.pool, name)
            pools[name] = pool_slices(driver, allowed, node_name=node_name, combined=combined)
    return Wishes(pools, tuple(left_out))


def combines_counters(release: str) -> bool:
    """Whether counter sets belong into the slices of the devices that consume them, by the server's version."""
    match = _RELEASE.match(release)
    return match is not None and (int(match.group(1)), int(match.group(2))) < _APART
