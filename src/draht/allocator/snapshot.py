"""A snapshot: the cluster as the allocator sees it at one moment. Immutable; changes make new ones that share the rest.

Owns which slice reaches which row, what a change makes invalid, and the caches that go with a snapshot. Rows are built
when somebody asks for them. A snapshot made by ``with_…`` or ``without_…`` keeps every row, pool and plan that the
change can't affect, and says which nodes it may affect (`Snapshot.touched`), so that an index over nodes follows by
looking at those only.

It doesn't know time: claims that are decided but not yet written are given like any other, with their allocation.

Length: which change keeps which cache is one argument; a change apart from the caches would lack its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from draht.allocator.errors import FatalError, FatalKind
from draht.allocator.features import ALL, Features
from draht.allocator.gathering import build_pool, gather
from draht.allocator.nodes import SelectorError
from draht.allocator.plan import Plan
from draht.allocator.plan_cache import PlanCache
from draht.allocator.pools import Pool, PoolId, pool_id
from draht.allocator.projection import Fleet
from draht.allocator.row import Row
from draht.allocator.usage import Usage
from draht.api.core.node import Node
from draht.api.meta import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from draht.api.resource import (
        AllocationResult,
        Device,
        DeviceClass,
        DeviceTaint,
        DeviceTaintRule,
        ResourceClaim,
        ResourceSlice,
    )

__all__ = ["Snapshot"]


@final
class Snapshot:
    """The cluster at one moment.

    Attributes:
        features: What is switched on; the same in all snapshots made from this one.
        slices: By name, in the order in which they were given first.
        classes: Device classes by name.
        claims: Allocated claims by namespace and name: the usage is theirs.
        nodes: By name. Where no nodes were given, every node that a slice names.
        rules: Taint rules by name.
        usage: What the claims hold.
        base: Token of the snapshot that this one was made from, or None.
        token: A unique object for this snapshot.
        touched: Nodes of which row or usage may differ from the base's; None where it may be all of them.
    """

    __slots__ = (
        "_before",
        "_derived_nodes",
        "_fleet",
        "_of_node",
        "_of_pool",
        "_plans",
        "_pools",
        "_rows",
        "_unnamed",
        "base",
        "claims",
        "classes",
        "features",
        "nodes",
        "rules",
        "slices",
        "token",
        "touched",
        "usage",
    )

    features: Features
    slices: Mapping[str, ResourceSlice]
    classes: Mapping[str, DeviceClass]
    claims: Mapping[tuple[str, str], ResourceClaim]
    nodes: Mapping[str, Node]
    rules: Mapping[str, DeviceTaintRule]
    usage: Usage
    base: object | None
    token: object
    touched: frozenset[str] | None

    @staticmethod
    def of(
        *,
        slices: Iterable[ResourceSlice] = (),
        classes: Iterable[DeviceClass] = (),
        claims: Iterable[ResourceClaim] = (),
        nodes: Iterable[Node] | None = None,
        taint_rules: Iterable[DeviceTaintRule] = (),
        features: Features = ALL,
    ) -> Snapshot:
        """A snapshot of these objects.

        Args:
            slices: All slices of the cluster. Their order matters only between slices that contradict each other.
            classes: All device classes.
            claims: Claims; those without allocation are ignored.
            nodes: All nodes; None to take every node that a slice names, without labels.
            taint_rules: DeviceTaintRules, merged into the taints of devices where device taints are on.
            features: What is switched on.
        """
        self = object.__new__(Snapshot)
        self.features = features
        by_name: dict[str, ResourceSlice] = {}
        for piece in slices:
            name = piece.metadata.name
            # A server can't have two of a name, a file can: both count.
            while name in by_name:
                name += "\0"
            by_name[name] = piece
        self.slices = by_name
        self.classes = {c.metadata.name: c for c in classes}
        allocated = [c for c in claims if c.status.allocation is not None]
        self.claims = {(c.metadata.namespace, c.metadata.name): c for c in allocated}
        self.usage = Usage(shared=features.consumable_capacity).plus(
            c.status.allocation for c in self.claims.values() if c.status.allocation is not None
        )
        self.rules = {r.metadata.name: r for r in taint_rules}
        self._of_node = _grouped(by_name.values(), lambda piece: piece.spec.node_name or None)
        self._of_pool = _grouped(by_name.values(), pool_id)
        self._unnamed = tuple(piece for piece in by_name.values() if not piece.spec.node_name)
        self._derived_nodes = nodes is None
        self.nodes = (
            {name: _bare(name) for name in self._of_node} if nodes is None else {n.metadata.name: n for n in nodes}
        )
        self._rows = {}
        self._pools = {}
        self._plans = PlanCache()
        self._fleet = None
        self._before = None
        self.base = None
        self.token = object()
        self.touched = None
        return self

    _of_node: Mapping[str, tuple[ResourceSlice, ...]]
    _of_pool: Mapping[PoolId, tuple[ResourceSlice, ...]]
    _unnamed: tuple[ResourceSlice, ...]
    _derived_nodes: bool
    _rows: dict[str, Row]
    _pools: dict[tuple[Any, ...], Pool]
    _plans: PlanCache
    _fleet: Fleet | None
    # The fleet of the last snapshot that had one, the nodes that may differ since, and pools of which usage may differ.
    _before: tuple[Fleet, frozenset[str], frozenset[PoolId]] | None

    # Reading

    def row(self, node: str | Node) -> Row:
        """What a node reaches.

        Args:
            node: The name of a node (one that isn't known has no labels), or a node that counts instead of the
                snapshot's.
        """
        if isinstance(node, str):
            row = self._rows.get(node)
            if row is None:
                row = self._rows[node] = self._row(self.nodes.get(node) or _bare(node))
            return row
        if self.nodes.get(node.metadata.name) is node:
            return self.row(node.metadata.name)
        return self._row(node)

    def rows(self) -> Iterator[Row]:
        """The rows of all nodes, in the order of `nodes`."""
        for name in self.nodes:
            yield self.row(name)

    def plan(self, claims: Sequence[ResourceClaim]) -> Plan:
        """The compiled claims; claims with equal requests and constraints share a plan."""
        return self._plans.get(claims, lambda: Plan([claim.spec for claim in claims], self.classes, self.features))

    def fleet(self) -> Fleet:
        """All nodes with what they reach and hold, indexed; not to be changed, but for what it learns by itself."""
        if self._fleet is None:
            self._fleet = self._follow() or Fleet(tuple(self.nodes), list(self.rows()), self.usage)
            self._before = None
        return self._fleet

    def prepare(self) -> Snapshot:
        """Build everything now that would else be built when somebody first asks about all nodes; the same snapshot."""
        if self._fleet is None:
            self.fleet().tabulate(lists=self.features.list_type_attributes)
        return self

    # Changing

    def with_slice(self, piece: ResourceSlice) -> Snapshot:
        """With a slice added, or replaced by its name."""
        return self._with_slice(piece.metadata.name, piece)

    def without_slice(self, name: str) -> Snapshot:
        """Without a slice; the same snapshot if there is none of that name."""
        return self._with_slice(name, None) if name in self.slices else self

    def with_claim(self, claim: ResourceClaim) -> Snapshot:
        """With a claim added, or replaced by its name; without allocation it holds nothing."""
        return self._with_claim((claim.metadata.namespace, claim.metadata.name), claim)

    def without_claim(self, namespace: str, name: str) -> Snapshot:
        """Without a claim; the same snapshot if it held nothing."""
        return self._with_claim((namespace, name), None) if (namespace, name) in self.claims else self

    def with_claims(self, claims: Iterable[ResourceClaim]) -> Snapshot:
        """With many claims added, or replaced by name, one after the other."""
        changed = list(claims)
        new = self._copy(None)
        held = dict(self.claims)
        gone: list[AllocationResult] = []
        come: dict[tuple[str, str], AllocationResult] = {}
        for claim in changed:
            key = (claim.metadata.namespace, claim.metadata.name)
            old = held.pop(key, None)
            if old is not None and come.pop(key, None) is None and old.status.allocation is not None:
                gone.append(old.status.allocation)
            if claim.status.allocation is not None:
                held[key] = claim
                come[key] = claim.status.allocation
        pools = {PoolId(r.driver, r.pool) for each in (*gone, *come.values()) for r in each.devices.results}
        new._precede(self, frozenset(), frozenset(pools))
        new.touched = self._seeing(pools, self)
        new.claims = held
        new.usage = self.usage.minus(gone).plus(come.values())
        return new

    def with_class(self, device_class: DeviceClass) -> Snapshot:
        """With a class added, or replaced by its name."""
        return self._with_classes({**self.classes, device_class.metadata.name: device_class})

    def without_class(self, name: str) -> Snapshot:
        """Without a class; the same snapshot if there is none of that name."""
        if name not in self.classes:
            return self
        return self._with_classes({n: c for n, c in self.classes.items() if n != name})

    def with_node(self, node: Node) -> Snapshot:
        """With a node added, or replaced by its name."""
        new = self._copy(frozenset({node.metadata.name}))
        new.nodes = {**self.nodes, node.metadata.name: node}
        new._forget((node.metadata.name,))
        return new

    def without_node(self, name: str) -> Snapshot:
        """Without a node; its slices stay. The same snapshot if there is none of that name."""
        if name not in self.nodes:
            return self
        new = self._copy(frozenset({name}))
        new.nodes = {n: node for n, node in self.nodes.items() if n != name}
        new._forget((name,))
        return new

    def with_taint_rule(self, rule: DeviceTaintRule) -> Snapshot:
        """With a taint rule added, or replaced by its name."""
        return self._with_rules({**self.rules, rule.metadata.name: rule}, rule, self.rules.get(rule.metadata.name))

    def without_taint_rule(self, name: str) -> Snapshot:
        """Without a taint rule; the same snapshot if there is none of that name."""
        old = self.rules.get(name)
        if old is None:
            return self
        return self._with_rules({n: r for n, r in self.rules.items() if n != name}, old)

    # Inside

    def _copy(self, touched: frozenset[str] | None) -> Snapshot:
        new = object.__new__(Snapshot)
        for name in Snapshot.__slots__:
            setattr(new, name, getattr(self, name))
        new._fleet = None
        new._precede(self, touched)
        new.base = self.token
        new.token = object()
        new.touched = touched
        return new

    def _precede(self, base: Snapshot, touched: frozenset[str] | None, pools: frozenset[PoolId] = frozenset()) -> None:
        """Remember where the fleet of this snapshot can start from."""
        if touched is None:
            self._before = None
        elif base._fleet is not None:
            self._before = (base._fleet, touched, pools)
        elif base._before is not None:
            fleet, earlier, more = base._before
            self._before = (fleet, earlier | touched, more | pools)

    def _follow(self) -> Fleet | None:
        """The fleet of an earlier snapshot with what may have changed since, if nodes are the same."""
        if self._before is None:
            return None
        before, touched, pools = self._before
        if len(before.names) != len(self.nodes) or any(
            before.number(name) is None for name in touched & set(self.nodes)
        ):
            return None
        fleet = before.copy()
        fleet.usage = self.usage
        for name in touched:
            node = fleet.number(name)
            if node is None:
                continue
            row = self.row(name)
            if row is not fleet.rows[node]:
                fleet.replace(node, row)
            else:
                fleet.look(node)
        for pool in pools:
            names = self._seeing({pool}, self)
            if names is None:
                # Asked of the earlier fleet where possible: it answers the next snapshots as well.
                sharers = fleet.sharers(pool) if touched else before.sharers(pool)
            else:
                sharers = [index for index in map(fleet.number, names) if index is not None]
            for index in sharers:
                fleet.look(index)
        fleet.learn(before)
        return fleet

    def _forget(self, names: Iterable[str]) -> None:
        """Drop rows. Only for a copy that nobody has seen yet."""
        rows = dict(self._rows)
        for name in names:
            rows.pop(name, None)
        self._rows = rows

    def _row(self, node: Node) -> Row:
        slices = (*self._of_node.get(node.metadata.name, ()), *self._unnamed)

        def build(
            key: PoolId, node: Node, found: Sequence[ResourceSlice], rest: Sequence[ResourceSlice], features: Features
        ) -> Pool:
            extra = self._extra_taints(key)
            if any(piece.spec.node_name or piece.spec.per_device_node_selection for piece in found):
                return build_pool(key, node, found, rest, features, extra)
            # The pool keeps its slices alive, so their ids stay valid as long as it is here.
            identity = (key, tuple(map(id, found)), tuple(map(id, rest)))
            pool = self._pools.get(identity)
            if pool is None:
                pool = self._pools[identity] = build_pool(key, node, found, rest, features, extra)
            return pool

        try:
            return Row(node, gather(node, slices, self._of_pool, self.features, build))
        except SelectorError as error:
            return Row(
                node,
                (),
                FatalError(
                    FatalKind.NODE_SELECTOR,
                    f"a slice has a malformed node selector: {error}",
                    where=f"node {node.metadata.name}",
                    hint="ask the driver's authors",
                ),
            )

    def _extra_taints(self, key: PoolId) -> Callable[[ResourceSlice, Device], list[DeviceTaint]] | None:
        rules = [rule for rule in self.rules.values() if _concerns(rule, key)]
        if not rules:
            return None

        def taints(_piece: ResourceSlice, device: Device) -> list[DeviceTaint]:
            return [
                rule.spec.taint
                for rule in rules
                if rule.spec.device_selector is not None and rule.spec.device_selector.device in {None, device.name}
            ]

        return taints

    def _with_slice(self, name: str, piece: ResourceSlice | None) -> Snapshot:
        old = self.slices.get(name)
        changed = [s for s in (old, piece) if s is not None]
        before = {pool_id(s) for s in changed}
        new = self._copy(None)
        slices = dict(self.slices)
        if piece is None:
            del slices[name]
        else:
            slices[name] = piece
        new.slices = slices
        of_pool = dict(self._of_pool)
        of_node = dict(self._of_node)
        unnamed = self._unnamed
        _regroup(of_pool, pool_id, old, piece, slices)
        _regroup(of_node, lambda each: each.spec.node_name or None, old, piece, slices)
        if any(not s.spec.node_name for s in changed):
            unnamed = tuple(s for s in slices.values() if not s.spec.node_name)
        new._of_pool = of_pool
        new._of_node = of_node
        new._unnamed = unnamed
        if self._derived_nodes:
            nodes = dict(self.nodes)
            for which in changed:
                node = which.spec.node_name
                if node and node in of_node:
                    nodes.setdefault(node, _bare(node))
                elif node and nodes.get(node) == _bare(node):
                    del nodes[node]
            new.nodes = nodes
        new.touched = self._seeing(before, new)
        new._precede(self, new.touched)
        if any(key[0] in before for key in self._pools):
            new._pools = {key: pool for key, pool in self._pools.items() if key[0] not in before}
        new._forget(self._rows if new.touched is None else new.touched)
        return new

    def _seeing(self, pools: set[PoolId], new: Snapshot) -> frozenset[str] | None:
        """Nodes whose row may depend on one of these pools, before or after the change; None for all."""
        names: set[str] = set()
        for pool in pools:
            for piece in (*self._of_pool.get(pool, ()), *new._of_pool.get(pool, ())):
                if not piece.spec.node_name:
                    return None
                names.add(piece.spec.node_name)
        return frozenset(names)

    def _with_claim(self, key: tuple[str, str], claim: ResourceClaim | None) -> Snapshot:
        old = self.claims.get(key)
        claims = dict(self.claims)
        claims.pop(key, None)
        usage = self.usage
        pools: set[PoolId] = set()
        for which in (old, claim):
            if which is not None and which.status.allocation is not None:
                pools |= {PoolId(r.driver, r.pool) for r in which.status.allocation.devices.results}
        if old is not None and old.status.allocation is not None:
            usage = usage.minus((old.status.allocation,))
        if claim is not None and claim.status.allocation is not None:
            claims[key] = claim
            usage = usage.plus((claim.status.allocation,))
        new = self._copy(self._seeing(pools, self))
        # Rows stay as they are, so the nodes that reach the pools are known even where slices don't name them.
        new._precede(self, frozenset(), frozenset(pools))
        new.claims = claims
        new.usage = usage
        return new

    def _with_classes(self, classes: Mapping[str, DeviceClass]) -> Snapshot:
        new = self._copy(frozenset())
        new.classes = classes
        new._plans = PlanCache()
        return new

    def _with_rules(self, rules: Mapping[str, DeviceTaintRule], *changed: DeviceTaintRule | None) -> Snapshot:
        concerned = {key for key in self._of_pool if any(rule is not None and _concerns(rule, key) for rule in changed)}
        new = self._copy(self._seeing(concerned, self))
        new.rules = rules
        new._pools = {key: pool for key, pool in self._pools.items() if key[0] not in concerned}
        new._forget(self._rows if new.touched is None else new.touched)
        return new


def _concerns(rule: DeviceTaintRule, key: PoolId) -> bool:
    """Whether a taint rule can be about devices of a pool; without a selector it is about none."""
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in {None, key.driver} and selector.pool in {None, key.name}


def _bare(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))


def _grouped(
    slices: Iterable[ResourceSlice], key: Callable[[ResourceSlice], Any]
) -> dict[Any, tuple[ResourceSlice, ...]]:
    groups: dict[Any, list[ResourceSlice]] = {}
    for piece in slices:
        which = key(piece)
        if which is not None:
            groups.setdefault(which, []).append(piece)
    return {which: tuple(pieces) for which, pieces in groups.items()}


def _regroup(
    groups: dict[Any, tuple[ResourceSlice, ...]],
    key: Callable[[ResourceSlice], Any],
    old: ResourceSlice | None,
    new: ResourceSlice | None,
    slices: Mapping[str, ResourceSlice],
) -> None:
    """Put a slice into the place of another one, so that groups are as if made of all slices in their order."""
    before = None if old is None else key(old)
    after = None if new is None else key(new)
    if before is not None and before == after:
        assert new is not None
        groups[before] = tuple([new if piece is old else piece for piece in groups[before]])
        return
    if before is not None:
        rest = tuple([piece for piece in groups[before] if piece is not old])
        if rest:
            groups[before] = rest
        else:
            del groups[before]
    if new is not None and after is not None:
        if old is None:
            groups[after] = (*groups.get(after, ()), new)
        else:
            groups[after] = tuple([piece for piece in slices.values() if key(piece) == after])
