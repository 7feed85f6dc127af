"""Snapshots: immutable, cheap to change, and always what a fresh one of the same objects would be."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from allocator_answers import features_of
from allocator_generator import case
from allocator_scenarios import case_of
from draht.allocator import AllocatorError, Features, Limits, Snapshot, allocate
from draht.api.core import Node
from draht.api.resource import (
    AllocationResult,
    DeviceClass,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
)


def _rule(name: str, **selector: str) -> DeviceTaintRule:
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {
                "deviceSelector": selector,
                "taint": {"key": name, "value": "x", "effect": "NoSchedule"},
            },
        },
        DeviceTaintRule,
    )


class _World:
    """Objects by name, as somebody would keep them beside the snapshot."""

    def __init__(self, seed: int) -> None:
        found = [case(seed, index) for index in range(3)]
        self.features = features_of(found[0])
        self.slices = [s for c in found for s in msgspec.convert(c["slices"], tuple[ResourceSlice, ...])]
        self.classes = [s for c in found for s in msgspec.convert(c["classes"], tuple[DeviceClass, ...])]
        self.nodes = [s for c in found for s in msgspec.convert(c["nodes"], tuple[Node, ...])]
        self.held = [s for c in found for s in msgspec.convert(c["allocatedClaims"], tuple[ResourceClaim, ...])]
        self.claims = [msgspec.convert(c["claims"], tuple[ResourceClaim, ...]) for c in found]
        drivers = sorted({s.spec.driver for s in self.slices})
        pools = sorted({s.spec.pool.name for s in self.slices})
        self.rules = [_rule("every"), _rule("driver", driver=drivers[0]), _rule("pool", pool=pools[0], device="dev-1")]
        self.now: dict[str, dict[Any, Any]] = {"slices": {}, "classes": {}, "nodes": {}, "claims": {}, "rules": {}}

    def change(self, rng: random.Random, snapshot: Snapshot) -> Snapshot:
        """One random change, in the objects and in the snapshot."""
        kind = rng.choice(["slices", "slices", "slices", "claims", "claims", "classes", "nodes", "rules"])
        now = self.now[kind]
        if now and rng.random() < 0.35:
            key = rng.choice(list(now))
            del now[key]
            if kind == "claims":
                return snapshot.without_claim(*key)
            return {
                "slices": snapshot.without_slice,
                "classes": snapshot.without_class,
                "nodes": snapshot.without_node,
                "rules": snapshot.without_taint_rule,
            }[kind](key)
        pool: Any = {
            "slices": self.slices,
            "classes": self.classes,
            "nodes": self.nodes,
            "claims": self.held,
            "rules": self.rules,
        }[kind]
        if not pool:
            return snapshot
        new = rng.choice(pool)
        key = (new.metadata.namespace, new.metadata.name) if kind == "claims" else new.metadata.name
        now[key] = new
        change: Any = {
            "slices": snapshot.with_slice,
            "classes": snapshot.with_class,
            "nodes": snapshot.with_node,
            "claims": snapshot.with_claim,
            "rules": snapshot.with_taint_rule,
        }[kind]
        return change(new)  # type: ignore[no-any-return]  # the five have one result type

    def fresh(self) -> Snapshot:
        """A snapshot of the objects as they are now."""
        return Snapshot.of(
            slices=self.now["slices"].values(),
            classes=self.now["classes"].values(),
            claims=self.now["claims"].values(),
            nodes=self.now["nodes"].values(),
            taint_rules=self.now["rules"].values(),
            features=self.features,
        )

    def answers(self, snapshot: Snapshot) -> list[object]:
        """What every claim gets on every node."""
        found: list[object] = []
        for name in sorted({*self.now["nodes"], "node-0", "unheard-of"}):
            for claims in self.claims:
                try:
                    found.append(allocate(snapshot, claims, name, limits=Limits(steps=20_000)))
                except AllocatorError as error:
                    found.append((type(error), getattr(error, "kind", None)))
        return found


@pytest.mark.parametrize("seed", range(25))
def test_a_changed_snapshot_is_like_a_fresh_one(seed: int) -> None:
    """After any changes the snapshot answers as one made of the same objects, and old snapshots answer as before."""
    rng = random.Random(seed)
    world = _World(seed)
    snapshot = Snapshot.of(nodes=(), features=world.features)
    old: list[tuple[Snapshot, list[object]]] = []
    for step in range(24):
        snapshot = world.change(rng, snapshot)
        if step % 6 == 5:
            answers = world.answers(snapshot)
            assert answers == world.answers(world.fresh()), f"seed {seed}, step {step}"
            old.append((snapshot, answers))
    for earlier, answers in old[:2]:
        fresh = Snapshot.of(
            slices=earlier.slices.values(),
            classes=earlier.classes.values(),
            claims=earlier.claims.values(),
            nodes=earlier.nodes.values(),
            taint_rules=earlier.rules.values(),
            features=earlier.features,
        )
        names = world.now["nodes"]
        world.now["nodes"] = dict(earlier.nodes)
        assert world.answers(earlier) == world.answers(fresh) == answers
        world.now["nodes"] = names


def _cluster(nodes: int = 4) -> Snapshot:
    slices = [
        {"node": f"node-{n}", "devices": [{"name": "d1", "memory": 80}, {"name": "d2", "memory": 80}]}
        for n in range(nodes)
    ]
    found = case_of({"slices": slices})
    return Snapshot.of(
        slices=msgspec.convert(found["slices"], tuple[ResourceSlice, ...]),
        classes=msgspec.convert(found["classes"], tuple[DeviceClass, ...]),
    )


def _slice(node: str, *devices: str) -> ResourceSlice:
    return msgspec.convert(case_of({"slices": [{"node": node, "devices": list(devices)}]})["slices"][0], ResourceSlice)


CLAIM = msgspec.convert(case_of({"claims": [{"requests": {"r": 2}}]})["claims"][0], ResourceClaim)


def _given(name: str, allocation: AllocationResult) -> ResourceClaim:
    metadata = msgspec.structs.replace(CLAIM.metadata, name=name)
    return msgspec.structs.replace(CLAIM, metadata=metadata, status=ResourceClaimStatus(allocation=allocation))


def test_one_changed_slice_leaves_other_rows_alone() -> None:
    """Rows of other nodes are the same objects; the changed node has a new one, and the old snapshot its old one."""
    old = _cluster()
    before = {name: old.row(name) for name in old.nodes}
    new = old.with_slice(_slice("node-2", "d9"))
    assert new.touched == frozenset({"node-2"})
    assert new.base is old.token
    for name, row in before.items():
        assert (new.row(name) is row) == (name != "node-2")
        assert old.row(name) is row
    assert [device.name for device in new.row("node-2").usable[0].devices] == ["d9"]


def test_rows_with_equal_devices_have_one_shape() -> None:
    """Nodes whose devices are equal in what a plan mentions share everything but their names."""
    snapshot = _cluster(8)
    plan = snapshot.plan([CLAIM])
    assert len({plan.key(row) for row in snapshot.rows()}) == 1


def test_a_claim_touches_the_nodes_of_its_devices() -> None:
    """An allocation is visible in the new snapshot only, and without the claim everything is free again."""
    old = _cluster()
    allocation = allocate(old, [CLAIM], "node-1")
    assert allocation is not None
    new = old.with_claim(_given("one", allocation[0]))
    assert new.touched == frozenset({"node-1"})
    assert allocate(new, [CLAIM], "node-1") is None
    assert allocate(old, [CLAIM], "node-1") == allocation
    assert allocate(new.without_claim("default", "one"), [CLAIM], "node-1") == allocation
    assert allocate(new, [CLAIM], "node-0") is not None


def test_a_claim_without_allocation_holds_nothing() -> None:
    """A claim that loses its allocation frees its devices."""
    old = _cluster()
    allocation = allocate(old, [CLAIM], "node-1")
    assert allocation is not None
    held = _given("one", allocation[0])
    freed = old.with_claim(held).with_claim(msgspec.structs.replace(held, status=ResourceClaimStatus()))
    assert allocate(freed, [CLAIM], "node-1") == allocation
    assert not freed.claims


def test_a_device_held_twice_stays_held_when_one_goes() -> None:
    """Two claims with the same device are somebody's mistake; both must go before it is free."""
    old = _cluster()
    allocation = allocate(old, [CLAIM], "node-1")
    assert allocation is not None
    twice = old.with_claim(_given("one", allocation[0])).with_claim(_given("two", allocation[0]))
    once = twice.without_claim("default", "one")
    assert allocate(once, [CLAIM], "node-1") is None
    assert allocate(once.without_claim("default", "two"), [CLAIM], "node-1") == allocation


def test_equal_claims_share_a_plan() -> None:
    """Claims of one template are compiled once; another class or count is another plan."""
    snapshot = _cluster()
    other = msgspec.structs.replace(CLAIM, metadata=msgspec.structs.replace(CLAIM.metadata, name="other"))
    assert snapshot.plan([CLAIM]) is snapshot.plan([other])
    assert snapshot.plan([CLAIM]) is not snapshot.plan([CLAIM, other])
    changed = snapshot.with_class(msgspec.convert({"metadata": {"name": "any"}}, DeviceClass))
    assert changed.plan([CLAIM]) is not snapshot.plan([CLAIM])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (DeviceTaintSelector(), []),
        (DeviceTaintSelector(driver="a.example.com"), []),
        (DeviceTaintSelector(driver="b.example.com"), ["d1", "d2"]),
        (DeviceTaintSelector(pool="node-1"), []),
        (DeviceTaintSelector(pool="node-2"), ["d1", "d2"]),
        (DeviceTaintSelector(driver="a.example.com", pool="node-1", device="d1"), ["d2"]),
        (DeviceTaintSelector(device="d2"), ["d1"]),
        (None, ["d1", "d2"]),
    ],
)
def test_a_taint_rule_taints_the_devices_it_selects(selector: DeviceTaintSelector | None, expected: list[str]) -> None:
    """All given fields must match; an empty selector matches all devices, none matches none."""
    taint = DeviceTaint(key="broken", effect="NoExecute")
    rule = DeviceTaintRule(spec=DeviceTaintRuleSpec(device_selector=selector, taint=taint))
    snapshot = _cluster().with_taint_rule(rule)
    one = msgspec.convert(case_of({})["claims"][0], ResourceClaim)
    found = []
    for _ in range(2):
        answer = allocate(snapshot, [one], "node-1")
        if answer is not None:
            found.append(answer[0].devices.results[0].device)
            snapshot = snapshot.with_claim(_given(f"c{len(found)}", answer[0]))
    assert found == expected


def test_taint_rules_do_nothing_where_taints_are_off() -> None:
    """Before device taints, a rule is an object that nobody reads."""
    found = _cluster()
    off = Snapshot.of(
        slices=found.slices.values(),
        classes=found.classes.values(),
        taint_rules=[_rule("every")],
        features=Features.of_kubernetes("1.35"),
    )
    assert allocate(off, [CLAIM], "node-1") is not None


def test_a_rule_goes_with_its_effects() -> None:
    """Removing a rule makes the devices usable again; rows of other pools never changed."""
    old = _cluster()
    rows = {name: old.row(name) for name in old.nodes}
    tainted = old.with_taint_rule(_rule("one", pool="node-1"))
    assert allocate(tainted, [CLAIM], "node-1") is None
    assert tainted.row("node-2") is rows["node-2"]
    assert allocate(tainted.without_taint_rule("one"), [CLAIM], "node-1") is not None


def test_nodes_that_nobody_gave_are_those_of_slices() -> None:
    """Without nodes, a node is what a slice names, and it comes and goes with its slices."""
    snapshot = _cluster(2)
    assert list(snapshot.nodes) == ["node-0", "node-1"]
    more = snapshot.with_slice(_slice("node-7", "d1"))
    assert list(more.nodes) == ["node-0", "node-1", "node-7"]
    assert list(more.without_slice("a.example.com-node-0").nodes) == ["node-1", "node-7"]
    labelled = msgspec.convert({"metadata": {"name": "node-0", "labels": {"zone": "a"}}}, Node)
    kept = more.with_node(labelled).without_slice("a.example.com-node-0")
    assert kept.nodes["node-0"] is labelled


def test_a_release_that_is_not_known_is_an_error() -> None:
    """The error names the releases that are known."""
    with pytest.raises(AllocatorError, match="not known") as caught:
        Features.of_kubernetes("1.99")
    assert "1.37" in (caught.value.hint or "")
