"""The cause of an explanation is true: take it away, and the claims fit or another cause comes to light."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import structs

from allocator_answers import snapshot_of
from allocator_generator import case, profile_of
from draht.allocator import Limits, Snapshot
from draht.allocator.explain import Dominant, Explanation, explain
from draht.api.resource import DeviceToleration, ResourceClaim

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "5"))
CASES = 200
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "50000")) // 10
LIMITS = Limits(steps=1_000)

World = tuple[Snapshot, tuple[ResourceClaim, ...]]


def of_requests(change: Callable[[Any], Any]) -> Callable[[World, Explanation], World]:
    """A removal that changes each request and alternative."""

    def remove(world: World, _found: Explanation) -> World:
        snapshot, claims = world
        changed = []
        for claim in claims:
            requests = tuple(
                structs.replace(
                    request,
                    exactly=request.exactly and change(request.exactly),
                    first_available=tuple(change(each) for each in request.first_available),
                )
                for request in claim.spec.devices.requests
            )
            devices = structs.replace(claim.spec.devices, requests=requests)
            changed.append(structs.replace(claim, spec=structs.replace(claim.spec, devices=devices)))
        return snapshot, tuple(changed)

    return remove


def release(world: World, found: Explanation) -> World:
    """End the claims that are blamed; all that hold something if none is."""
    snapshot, claims = world
    for (namespace, name), claim in snapshot.claims.items():
        label = f"{namespace}/{name}" if namespace else name
        if label in found.blame or not found.blame:
            assert claim.status.allocation is not None
            snapshot = snapshot.without_claim(namespace, name)
    return snapshot, claims


def uncount(world: World, _found: Explanation) -> World:
    """Let no device consume counters."""
    snapshot, claims = world
    for piece in snapshot.slices.values():
        devices = tuple(structs.replace(device, consumes_counters=()) for device in piece.spec.devices)
        snapshot = snapshot.with_slice(structs.replace(piece, spec=structs.replace(piece.spec, devices=devices)))
    return snapshot, claims


def unconstrain(world: World, _found: Explanation) -> World:
    """Drop all constraints."""
    snapshot, claims = world
    return snapshot, tuple(
        structs.replace(
            claim,
            spec=structs.replace(claim.spec, devices=structs.replace(claim.spec.devices, constraints=())),
        )
        for claim in claims
    )


REMOVALS: dict[Dominant, Callable[[World, Explanation], World]] = {
    Dominant.HELD: release,
    Dominant.SELECTOR: of_requests(lambda each: structs.replace(each, selectors=())),
    Dominant.TAINT: of_requests(lambda each: structs.replace(each, tolerations=(DeviceToleration(operator="Exists"),))),
    Dominant.CAPACITY: of_requests(lambda each: structs.replace(each, capacity=None)),
    Dominant.COUNTERS: uncount,
    Dominant.TOPOLOGY: of_requests(lambda each: structs.replace(each, count=1, allocation_mode="ExactCount")),
    Dominant.CONSTRAINT: unconstrain,
}
SPARE = {Dominant.ERROR, Dominant.INCOMPLETE_POOL, Dominant.INVALID_POOL, Dominant.RESULT_LIMIT, Dominant.FEATURE}
"""Causes that the allocator itself tells as errors; their removal is in `test_explain`."""


def check(seed: int, count: int) -> Counter[Dominant]:
    """Explain random cases and take away what is blamed, until it fits or nothing more can be taken away."""
    seen: Counter[Dominant] = Counter()
    for index in range(count):
        given = case(seed, index)
        snapshot = snapshot_of(given)
        world: World = (snapshot, msgspec.convert(given["claims"], tuple[ResourceClaim, ...]))
        told: set[tuple[Dominant, str | None]] = set()
        while True:
            found = explain(*world, limits=LIMITS)
            seen[found.cause] += 1
            assert found.summary
            where = f"seed {seed}, case {index} ({profile_of(index)}): {found.text()}"
            if found.cause not in REMOVALS:
                break
            assert (found.cause, found.request) not in told, f"taken away, and still there: {where}"
            told.add((found.cause, found.request))
            after = REMOVALS[found.cause](world, found)
            if found.cause is Dominant.HELD and found.blame:
                assert explain(*after, limits=LIMITS).cause in {Dominant.FITS, Dominant.BUDGET}, where
            world = after
    return seen


def test_without_its_cause_the_claims_fit_or_the_next_cause_appears() -> None:
    """Random clusters and claims of every feature; each cause occurs."""
    seen = check(SEED, CASES)
    assert set(REMOVALS) <= set(seen), f"never seen: {set(REMOVALS) - set(seen)}"


@pytest.mark.fuzz
def test_causes_stay_true_in_a_long_run() -> None:
    """The same, many times."""
    check(SEED + 1, FUZZ_CASES)
