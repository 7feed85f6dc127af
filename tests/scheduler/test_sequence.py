"""Pods one after the other get what asking each node in turn would give them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from allocator_fleets import claims_of, cluster
from draht.allocator import AllocatorError, BudgetError, Limits, NodeError, Snapshot, allocate
from draht.allocator.nodes import SelectorError
from draht.allocator.policies import named
from draht.api.core import Node, Pod
from draht.api.errors import DrahtError
from draht.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate
from draht.manifests import ManifestError, Manifests, PodClaim, pod_claims
from draht.scheduler import Sequence
from draht.scheduler.eligible import may_use
from draht.scheduler.sequence import UNDECIDED

CASES = 60
PODS = 14
NODES = 10

Key = tuple[str, str]
Object = dict[str, Any]


class _OneByOne:
    """The same rules without an index: each node is asked by itself."""

    def __init__(self, manifests: Manifests, snapshot: Snapshot, node: str | None, policy: str, limits: Limits) -> None:
        self.manifests = manifests
        self.snapshot = snapshot
        self.nodes = [each for name, each in snapshot.nodes.items() if node in {None, name}]
        self.policy = named(policy)
        self.limits = limits

    def place(self) -> Iterator[tuple[Pod | None, tuple[ResourceClaim, ...], str | None, DrahtError | None]]:
        used: set[Key] = set()
        for pod in self.manifests.pods.values():
            try:
                claims = pod_claims(pod, self.manifests)
            except ManifestError as error:
                yield pod, (), None, error
                continue
            used |= {_key(each.claim) for each in claims}
            if claims:
                yield self._pod(pod, claims)
        for key, claim in self.manifests.claims.items():
            if key not in used:
                yield self._pod(None, (PodClaim("", claim, generated=False),))

    def _pod(
        self, pod: Pod | None, entries: tuple[PodClaim, ...]
    ) -> tuple[Pod | None, tuple[ResourceClaim, ...], str | None, DrahtError | None]:
        claims = tuple(self.snapshot.claims.get(_key(each.claim), each.claim) for each in entries)
        wanted = {_key(claim): claim for claim in claims if claim.status.allocation is None}
        kept: AllocatorError | None = None
        undecided = 0
        for node in self.nodes:
            try:
                if not may_use(pod, claims, node):
                    continue
                found = allocate(
                    self.snapshot,
                    list(wanted.values()),
                    node.metadata.name,
                    policy=self.policy,
                    limits=self.limits,
                )
            except (NodeError, BudgetError, SelectorError) as error:
                kept = kept or error
                undecided += isinstance(error, BudgetError)
                if undecided == UNDECIDED:
                    break
                continue
            except DrahtError as error:
                return pod, claims, None, error
            if found is not None:
                for claim, result in zip(wanted.values(), found, strict=True):
                    status = msgspec.structs.replace(claim.status, allocation=result)
                    self.snapshot = self.snapshot.with_claim(msgspec.structs.replace(claim, status=status))
                done = tuple(self.snapshot.claims.get(_key(claim), claim) for claim in claims)
                return pod, done, node.metadata.name, None
        return pod, claims, None, kept


def _key(claim: ResourceClaim) -> Key:
    return claim.metadata.namespace, claim.metadata.name


def _requirement(chance: random.Random) -> Object:
    return chance.choice(
        [
            {"key": "rack", "operator": "In", "values": chance.sample(["0", "1", "2"], 2)},
            {"key": "rack", "operator": "Gt", "values": ["0"]},
            {"key": "zone", "operator": "Exists"},
            {"key": "zone", "operator": "In"},  # malformed
        ]
    )


def _wishes(chance: random.Random) -> Object:
    """What a pod says about nodes, mostly nothing; a malformed selector among it."""
    kind = chance.random()
    if kind < 0.5:
        return {}
    if kind < 0.62:
        return {"nodeName": f"node-{chance.randrange(NODES + 1)}"}
    if kind < 0.77:
        return {"nodeSelector": {"rack": str(chance.randrange(3))}}
    terms = [{"matchExpressions": [_requirement(chance)]} for _ in range(chance.randint(1, 2))]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    both = {"nodeSelector": {"rack": "1"}} if chance.random() < 0.2 else {}
    return {"affinity": {"nodeAffinity": required}, **both}


def _node(chance: random.Random, name: str) -> Object:
    labels = {"rack": str(chance.randrange(3)), **({"zone": "a"} if chance.random() < 0.5 else {})}
    taints = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}] if chance.random() < 0.3 else []
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}


def _claim(name: str, claim: ResourceClaim) -> ResourceClaim:
    meta = msgspec.structs.replace(claim.metadata, name=name, namespace="default")
    return msgspec.structs.replace(claim, metadata=meta)


def _manifests(chance: random.Random, snapshot: Snapshot) -> Manifests:
    claims: dict[Key, ResourceClaim] = {}
    templates: dict[Key, ResourceClaimTemplate] = {}
    for number in range(4):
        for claim in claims_of(chance, number):
            shared = _claim(f"shared-{len(claims)}", claim)
            claims[_key(shared)] = shared
            name = f"template-{len(templates)}"
            template = {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"spec": msgspec.to_builtins(claim.spec)},
            }
            templates["default", name] = msgspec.convert(template, ResourceClaimTemplate)
    pods: dict[Key, Pod] = {}
    for number in range(PODS):
        entries = []
        for entry in range(chance.choice([0, 1, 1, 1, 2])):
            named = chance.random() < 0.5
            target = chance.choice(list(claims if named else templates))[1]
            kind = "resourceClaimName" if named else "resourceClaimTemplateName"
            entries.append({"name": f"e{entry}", kind: "missing" if chance.random() < 0.05 else target})
        limits = {"example.com/gpu": str(chance.randint(1, 2))} if chance.random() < 0.2 else {}
        containers = [{"name": "main", "image": "any", "resources": {"limits": limits}}]
        spec: Object = {"resourceClaims": entries, "containers": containers, **_wishes(chance)}
        name = f"pod-{number}"
        pods["default", name] = msgspec.convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod)
    return Manifests(pods=pods, claims=claims, templates=templates, classes=dict(snapshot.classes))


def _some_are_allocated(chance: random.Random, snapshot: Snapshot, manifests: Manifests) -> tuple[Snapshot, Manifests]:
    """A claim that others share is held already, as the allocator writes it."""
    claims = dict(manifests.claims)
    for key, claim in list(claims.items())[:2]:
        try:
            found = allocate(snapshot, [claim], chance.choice(list(snapshot.nodes)))
        except AllocatorError:
            continue
        if found is not None:
            status = msgspec.structs.replace(claim.status, allocation=found[0])
            claims[key] = msgspec.structs.replace(claim, status=status)
            snapshot = snapshot.with_claim(claims[key])
    return snapshot, replace(manifests, claims=claims)


def _cluster(chance: random.Random, seed: int) -> Snapshot:
    base = cluster(seed, NODES)
    slices = dict(base.slices)
    for name in list(slices):
        if chance.random() < 0.1:
            # A device that is there twice makes a pool invalid, and its node one with an error instead of "no".
            piece = slices[name]
            spec = msgspec.structs.replace(piece.spec, devices=(*piece.spec.devices, *piece.spec.devices[:1]))
            slices[name] = msgspec.structs.replace(piece, spec=spec)
    classes = msgspec.to_builtins(list(base.classes.values()))
    classes[0]["spec"]["extendedResourceName"] = "example.com/gpu"
    return Snapshot.of(
        slices=slices.values(),
        classes=msgspec.convert(classes, list[DeviceClass]),
        nodes=msgspec.convert([_node(chance, name) for name in base.nodes], list[Node]),
    )


def test_pods_get_what_asking_node_by_node_gives_them() -> None:
    """On random clusters, with everything that a pod can say about nodes and claims, under every policy and limit."""
    outcomes: Counter[str] = Counter()
    for seed in range(CASES):
        chance = random.Random(seed)
        snapshot = _cluster(chance, seed)
        snapshot, manifests = _some_are_allocated(chance, snapshot, _manifests(chance, snapshot))
        node = f"node-{chance.randrange(NODES)}" if chance.random() < 0.2 else None
        policy = chance.choice(["first-fit", "first-fit", "best-fit", "spread", "topology-compact"])
        limits = Limits(steps=chance.choice([1, 2, 5, 200]))
        expected = list(_OneByOne(manifests, snapshot, node, policy, limits).place())
        sequence = Sequence(manifests, snapshot, node=node, policy=named(policy), limits=limits)
        for mine, (pod, claims, where, error) in zip(sequence.place(), expected, strict=True):
            assert mine.pod is pod, seed
            assert tuple(each.claim for each in mine.claims) == claims, f"reproduce: seed {seed}, {mine.name}"
            assert mine.node == where, f"reproduce: seed {seed}, {mine.name}"
            assert (type(mine.error), str(mine.error)) == (type(error), str(error)), f"seed {seed}, {mine.name}"
            outcomes[type(error).__name__ if error else "none" if where is None else "fits"] += 1
    missing = {"fits", "none", "NodeError", "BudgetError", "FatalError", "SelectorError", "ManifestError"} - set(
        outcomes
    )
    assert not missing, outcomes
