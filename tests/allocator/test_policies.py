"""Policies: they change which devices are chosen, and never whether claims fit."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from allocator_answers import snapshot_of
from allocator_fleets import claims_of, cluster
from allocator_generator import case
from draht.allocator import AllocatorError, Policy, Scored, Session, Snapshot, View, allocate
from draht.allocator.policies import NAMES, named
from draht.api.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
CASES = 120


class _Shuffled:
    """A policy without any sense."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def order(self, view: View) -> Sequence[int]:
        positions = list(range(view.size))
        self.chance.shuffle(positions)
        return positions

    def rank(self, view: View) -> float | None:
        return self.chance.random()


def _outcome(
    snapshot: Snapshot, claims: Sequence[ResourceClaim], node: str, policy: Policy | None
) -> tuple[AllocationResult, ...] | str | None:
    try:
        return allocate(snapshot, claims, node, policy=policy)
    except AllocatorError as error:
        return str(error)


def _acceptable(snapshot: Snapshot, claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]) -> bool:
    """Whether devices of one allocation, and those held, are still each other's neighbours: no device twice."""
    held = {
        (r.driver, r.pool, r.device)
        for claim in snapshot.claims.values()
        if claim.status.allocation is not None
        for r in claim.status.allocation.devices.results
        if r.share_id is None and not r.admin_access
    }
    taken = [(r.driver, r.pool, r.device) for each in results for r in each.devices.results if not r.admin_access]
    dedicated = [
        device
        for device, r in zip(taken, [r for each in results for r in each.devices.results], strict=False)
        if r.share_id is None
    ]
    return len(set(dedicated)) == len(dedicated) and not held & set(dedicated)


@pytest.mark.parametrize("name", [*NAMES[1:], "shuffled"])
def test_feasibility_never_changes(name: str) -> None:
    """Whatever is asked, a policy gives a solution exactly where there is one, and the same errors."""
    for index in range(CASES):
        one = case(31, index)
        snapshot = snapshot_of(one)
        claims = msgspec.convert(one["claims"], tuple[ResourceClaim, ...])
        policy = _Shuffled(index) if name == "shuffled" else named(name)
        expected = _outcome(snapshot, claims, "node-0", None)
        found = _outcome(snapshot, claims, "node-0", policy)
        reproduce = f"reproduce: allocator_generator.case(31, {index}) with {name}"
        if isinstance(expected, tuple):
            assert isinstance(found, tuple), reproduce
            counts = [[len(each.devices.results) for each in answer] for answer in (expected, found)]
            assert [bool(count) for count in counts[0]] == [bool(count) for count in counts[1]], reproduce
        else:
            assert found == expected, reproduce


@pytest.mark.parametrize("name", [*NAMES[1:], "shuffled"])
@pytest.mark.parametrize("seed", range(2))
def test_solutions_of_policies_are_solutions(name: str, seed: int) -> None:
    """What a session allocates by a policy holds no device twice, and leaves room or not as counters say."""
    chance = random.Random(seed)
    session = Session(cluster(seed), policy=_Shuffled(seed) if name == "shuffled" else named(name))
    for number in range(30):
        claims = claims_of(chance, number)
        before = session.snapshot()
        if session.find(claims).first is None:
            continue
        placement = session.allocate_first(claims)
        assert placement is not None
        # Upstream's search must agree that the rest still has this solution: held devices can't be had again.
        assert _acceptable(before, claims, placement.results)
        assert (
            session.snapshot().usage
            == before.with_claims(
                [
                    msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=allocation))
                    for claim, allocation in zip(claims, placement.results, strict=True)
                ]
            ).usage
        )


def _node(devices: list[dict[str, Any]], counters: list[dict[str, Any]] | None = None, node: str = "n") -> list[Any]:
    parts: list[dict[str, Any]] = [{"devices": devices}]
    if counters:
        parts.append({"sharedCounters": counters})
    pool = {"name": node, "resourceSliceCount": len(parts)}
    return [
        {"metadata": {"name": f"{node}-{i}"}, "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, **part}}
        for i, part in enumerate(parts)
    ]


def _snapshot(slices: list[Any]) -> Snapshot:
    classes = [{"metadata": {"name": "gpu"}, "spec": {}}]
    return Snapshot.of(
        slices=msgspec.convert(slices, tuple[ResourceSlice, ...]),
        classes=msgspec.convert(classes, tuple[DeviceClass, ...]),
    )


def _claims(count: int = 1) -> tuple[ResourceClaim, ...]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    return msgspec.convert([claim], tuple[ResourceClaim, ...])


def _devices(results: tuple[AllocationResult, ...] | None) -> list[str]:
    assert results is not None
    return [result.device for each in results for result in each.devices.results]


def test_best_fit_takes_the_smallest_that_suffices() -> None:
    """Of partitions it takes the smallest, of GPUs the one with the least memory, wherever they are listed."""
    counters = [{"name": "gpu", "counters": {"slices": {"value": "7"}}}]
    partitions = [
        {"name": f"p{size}", "consumesCounters": [{"counterSet": "gpu", "counters": {"slices": {"value": str(size)}}}]}
        for size in (7, 3, 1, 2)
    ]
    snapshot = _snapshot(_node(partitions, counters))
    assert _devices(allocate(snapshot, _claims(), "n")) == ["p7"]
    assert _devices(allocate(snapshot, _claims(), "n", policy=named("best-fit"))) == ["p1"]
    gpus = [{"name": f"g{size}", "capacity": {"memory": {"value": f"{size}Gi"}}} for size in (80, 24, 40)]
    assert _devices(allocate(_snapshot(_node(gpus)), _claims(), "n", policy=named("best-fit"))) == ["g24"]


def test_best_fit_fills_what_is_begun_and_spread_does_not() -> None:
    """With one partition in use, best fit goes to the same GPU and spread to the other one."""
    sets = [{"name": f"gpu{g}", "counters": {"slices": {"value": "4"}}} for g in range(2)]
    partitions = [
        {"name": f"g{g}-{i}", "consumesCounters": [{"counterSet": f"gpu{g}", "counters": {"slices": {"value": "1"}}}]}
        for g in range(2)
        for i in range(4)
    ]
    base = _snapshot(_node(partitions, sets))
    session = Session(base, policy=Scored(lambda view, position: float(view.device(position).name != "g1-0")))
    assert session.allocate_first(_claims()) is not None
    held = session.snapshot()
    assert _devices(allocate(held, _claims(), "n", policy=named("best-fit"))) == ["g1-1"]
    assert _devices(allocate(held, _claims(), "n", policy=named("spread"))) == ["g0-0"]


def test_topology_compact_stays_in_the_smallest_group_that_suffices() -> None:
    """Two GPUs come from the root that has two left, not from the one with four or the one with one."""
    roots = ["a", "b", "b", "b", "b", "c", "c"]
    gpus = [
        {"name": f"g{i}", "attributes": {"resource.kubernetes.io/pcieRoot": {"string": root}, "numa": {"int": i // 4}}}
        for i, root in enumerate(roots)
    ]
    snapshot = _snapshot(_node(gpus))
    policy = named("topology-compact")
    assert _devices(allocate(snapshot, _claims(2), "n")) == ["g0", "g1"]
    assert _devices(allocate(snapshot, _claims(2), "n", policy=policy)) == ["g5", "g6"]
    assert _devices(allocate(snapshot, _claims(4), "n", policy=policy)) == ["g1", "g2", "g3", "g4"]


def test_nodes_are_ranked_in_sessions() -> None:
    """Best fit goes on with the node it began, spread takes the next one, a score decides if it is given."""
    slices = [piece for node in "abc" for piece in _node([{"name": f"g{i}"} for i in range(3)], node=node)]
    places = {}
    for name in ("first-fit", "best-fit", "spread"):
        session = Session(_snapshot(slices), policy=named(name))
        found = [session.allocate_first(_claims()) for _ in range(4)]
        places[name] = "".join(placement.node for placement in found if placement)
    assert places == {"first-fit": "aaab", "best-fit": "aaab", "spread": "abca"}
    last = Scored(node=lambda view: -float(ord(view.row.node.metadata.name)))
    placement = Session(_snapshot(slices), policy=last).allocate_first(_claims())
    assert placement is not None
    assert placement.node in {"a", "c"}


def test_names_of_policies_are_known() -> None:
    """First fit is no policy, the others have a name, and an unknown name says which ones there are."""
    assert named(None) is None
    assert named("first-fit") is None
    assert all(named(name) is not None for name in NAMES[1:])
    with pytest.raises(AllocatorError, match="worst-fit") as caught:
        named("worst-fit")
    assert "topology-compact" in str(caught.value.hint)
