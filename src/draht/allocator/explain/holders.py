"""Who holds the devices that would do, and whose end would help."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from draht.allocator.explain.question import Question
from draht.api.resource import ResourceClaim

__all__ = ["holders", "named", "sufficient"]

_TRIED: Final = 64
"""Claims whose end is tried one by one: a bound for the work, not for the truth of what is found."""


def named(claim: ResourceClaim) -> str:
    """``namespace/name``."""
    return f"{claim.metadata.namespace}/{claim.metadata.name}" if claim.metadata.namespace else claim.metadata.name


def holders(question: Question, devices: Collection[tuple[str, str, str]] | None = None) -> list[ResourceClaim]:
    """The claims that hold some of these devices (all claims without them), the earliest allocation first."""
    wanted = None if devices is None else set(devices)
    found = []
    for claim in question.snapshot.claims.values():
        allocation = claim.status.allocation
        results = allocation.devices.results if allocation else ()
        held = {(each.driver, each.pool, each.device) for each in results if not each.admin_access}
        if held and (wanted is None or held & wanted):
            found.append(claim)
    return sorted(found, key=lambda claim: (_since(claim), named(claim)))


def sufficient(question: Question, claims: Sequence[ResourceClaim]) -> tuple[ResourceClaim, ...]:
    """Claims whose end would make room: one if one is enough, else the first ones until there is room, or none."""
    for claim in claims[:_TRIED]:
        if _without(question, (claim,)).fits:
            return (claim,)
    ended = question
    for number, claim in enumerate(claims):
        ended = _without(ended, (claim,))
        # Asking after each one costs as much again as all of them together, so it is asked at every doubling.
        due = (number + 1) & number == 0 or number + 1 == len(claims)
        if due and ended.fits:
            return tuple(claims[: number + 1])
    return ()


def _without(question: Question, claims: Sequence[ResourceClaim]) -> Question:
    snapshot = question.snapshot
    for claim in claims:
        snapshot = snapshot.without_claim(claim.metadata.namespace, claim.metadata.name)
    return replace(question, snapshot=snapshot)


def _since(claim: ResourceClaim) -> str:
    allocation = claim.status.allocation
    moment = (allocation.allocation_timestamp if allocation else None) or claim.metadata.creation_timestamp
    return str(moment or "")
