"""Taints of devices: those that bad health puts on them, and those that an administrator's rules do.

Owns both as functions of values. Taints by health go into the slices that the node publishes. Rules stay where they
are and each reader of slices applies them (KEP-5055), so `draht devices` asks here which ones do. Nothing heavy is
loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import msgspec

from draht.api.resource import DeviceTaint, DeviceTaintRule, DeviceTaintSelector
from draht.driver.framework import Health, Offer, Offered, Pool
from draht.validation.limits import TAINTS

__all__ = ["rules_for", "selects", "with_health"]

_ACTING: Final = ("NoExecute", "NoSchedule")


def with_health(offer: Offer, health: Iterable[Health]) -> Offer:
    """The offer with the taints that the devices' health asks for; a device that isn't offered is passed over.

    A device takes 16 taints at most. Where there are more, those that keep claims away stay.
    """
    asked: dict[tuple[str, str], list[DeviceTaint]] = {}
    for each in health:
        if each.taint is not None:
            asked.setdefault((each.pool, each.device), []).append(each.taint)
    if not asked:
        return offer
    return Offer(pools=tuple(_pool(pool, asked) for pool in offer.pools))


def _pool(pool: Pool, asked: dict[tuple[str, str], list[DeviceTaint]]) -> Pool:
    groups = tuple(
        tuple(_tainted(each, asked.get((pool.name, each.device.name), [])) for each in group) for group in pool.groups
    )
    return replace(pool, groups=groups)


def _tainted(offered: Offered, taints: list[DeviceTaint]) -> Offered:
    if not taints:
        return offered
    # One taint for each key and effect, the last one's value; a time that is given is the older taint's to keep.
    merged = {(taint.key, taint.effect): taint for taint in (*offered.device.taints, *taints)}
    # Sorting keeps the order among equals: what acts comes first, the rest may fall off the end.
    kept = sorted(merged.values(), key=lambda taint: taint.effect not in _ACTING)[:TAINTS]
    return replace(offered, device=msgspec.structs.replace(offered.device, taints=tuple(kept)))


def selects(selector: DeviceTaintSelector | None, *, driver: str, pool: str, device: str) -> bool:
    """Whether a rule is about a device: all fields that it gives must match; no selector matches nothing."""
    if selector is None:
        return False
    pairs = ((selector.driver, driver), (selector.pool, pool), (selector.device, device))
    return all(wanted is None or wanted == actual for wanted, actual in pairs)


def rules_for(rules: Iterable[DeviceTaintRule], *, driver: str, pool: str, device: str) -> tuple[DeviceTaintRule, ...]:
    """The rules that put a taint on a device, by name."""
    found = (rule for rule in rules if selects(rule.spec.device_selector, driver=driver, pool=pool, device=device))
    return tuple(sorted(found, key=lambda rule: rule.metadata.name))
