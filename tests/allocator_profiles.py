"""How often each feature appears in the generated questions for the allocator: named sets of probabilities.

Each profile leans on one feature, so that every pair of rules it touches meets often; ``everything`` mixes them all.
``planted`` makes upstream search long: that is where pruning could go wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["PROFILES", "Knobs"]

Range = tuple[int, int]


@dataclass(frozen=True)
class Knobs:
    """Probabilities (float) and ranges (both ends included) that shape a case."""

    turns: int = 1
    # the cluster
    nodes: Range = (1, 2)
    every_node: bool = False
    """Whether all nodes are asked about; else only the first."""
    second_driver: float = 0.25
    pools: Range = (1, 2)
    slices: Range = (1, 2)
    devices: Range = (2, 6)
    occupancy: float = 0.2
    gates_off: float = 0.04
    alpha_off: float = 0.25
    often_off: tuple[str, ...] = ()
    """Features that are off in one of three cases, alone."""
    # where devices can be used: weights
    local: float = 6
    other_node: float = 0.7
    all_nodes: float = 1
    node_selector: float = 0.7
    no_place: float = 0.1
    mixed_places: float = 0.1
    per_device: float = 0.03
    bad_node_selector: float = 0.01
    skip_operations: float = 0.03
    # what is wrong with pools
    generations: float = 0.04
    incomplete: float = 0.02
    duplicate_device: float = 0.01
    unknown_counter: float = 0.02
    odd_slices: float = 0.01
    # devices
    groups: int = 2
    odd_types: float = 0.03
    list_attributes: float = 0.05
    missing_attribute: float = 0.01
    unknown_attribute: float = 0.002
    counters: float = 0.1
    counter_sets: Range = (1, 2)
    consumes: float = 0.9
    compatibility: float = 0.03
    taints: float = 0.04
    binding: float = 0.03
    binds_to_node: float = 0.05
    shared: float = 0.08
    changed_sharing: float = 0.03
    capacity: float = 0.5
    policies: float = 0.3
    odd_default: float = 0.02
    bad_capacity: float = 0.002
    # classes and claims
    claims: Range = (1, 2)
    requests: Range = (1, 2)
    counts: Range = (1, 3)
    first_available: float = 0.1
    subrequests: Range = (1, 3)
    all_mode: float = 0.08
    admin: float = 0.05
    selectors: float = 0.4
    risky_selector: float = 0.06
    failing_selector: float = 0.01
    class_selectors: float = 0.3
    constraints: float = 0.25
    constraint_count: Range = (1, 2)
    scoped_constraint: float = 0.5
    distinct: float = 0.35
    derived: float = 0.03
    derived_failing: float = 0.05
    tolerations: float = 0.15
    capacity_requests: float = 0.15
    configs: float = 0.15
    bad_claim: float = 0.01
    planted: float = 0.0
    """How often the whole case is one with a hidden solution."""
    early_only: float = 0.0
    """How often a request only takes one of the first devices, which requests before it took: late solutions."""


BASE = Knobs()

PROFILES: dict[str, Knobs] = {
    "basic": BASE,
    "everything": replace(
        BASE,
        every_node=True,
        turns=3,
        counters=0.3,
        shared=0.3,
        list_attributes=0.2,
        derived=0.15,
        first_available=0.3,
        claims=(1, 3),
    ),
    "prioritized": replace(BASE, turns=2, first_available=0.8, requests=(1, 3), constraints=0.5, counts=(1, 4)),
    "limits": replace(
        BASE,
        turns=2,
        first_available=0.7,
        counts=(1, 40),
        devices=(15, 24),
        slices=(1, 3),
        requests=(2, 3),
        claims=(1, 3),
        constraints=0.0,
        selectors=0.03,
        taints=0.0,
        counters=0.0,
        capacity=0.0,
        shared=0.0,
        occupancy=0.02,
        class_selectors=0.05,
    ),
    "all": replace(BASE, turns=2, all_mode=0.7, first_available=0.2, constraints=0.2, incomplete=0.05, occupancy=0.15),
    "admin": replace(BASE, admin=0.6, claims=(1, 3), occupancy=0.6),
    "constraints": replace(
        BASE,
        often_off=("ListTypeAttributes",),
        turns=2,
        constraints=0.95,
        requests=(1, 3),
        groups=2,
        constraint_count=(1, 3),
    ),
    "lists": replace(
        BASE,
        often_off=("ListTypeAttributes",),
        turns=2,
        constraints=0.9,
        list_attributes=0.6,
        odd_types=0.15,
        requests=(1, 3),
        alpha_off=0.1,
    ),
    "intersections": replace(
        BASE,
        turns=3,
        constraints=1.0,
        distinct=0.2,
        scoped_constraint=0.2,
        list_attributes=0.9,
        devices=(4, 7),
        counts=(2, 4),
        alpha_off=0.0,
        gates_off=0.0,
        counters=0.0,
        taints=0.0,
        selectors=0.1,
    ),
    "counters": replace(BASE, turns=2, counters=0.95, devices=(2, 5), claims=(1, 3), occupancy=0.25, pools=(1, 2)),
    "counters-elsewhere": replace(
        BASE,
        every_node=True,
        turns=2,
        counters=0.9,
        mixed_places=0.6,
        other_node=3,
        per_device=0.2,
        unknown_counter=0.06,
        occupancy=0.4,
    ),
    "over-consumed": replace(BASE, counters=0.95, devices=(3, 5), occupancy=0.8, counts=(1, 1)),
    "compatibility": replace(
        BASE, turns=2, counters=1.0, compatibility=0.7, alpha_off=0.05, devices=(2, 5), shared=0.2
    ),
    "shares": replace(
        BASE,
        changed_sharing=0.5,
        odd_default=0.1,
        turns=4,
        shared=0.8,
        capacity=0.9,
        policies=0.0,
        capacity_requests=0.7,
        claims=(1, 3),
        occupancy=0.4,
    ),
    "policies": replace(
        BASE,
        changed_sharing=0.2,
        odd_default=0.5,
        often_off=("FractionalCapacityRange",),
        turns=4,
        shared=0.7,
        capacity=0.95,
        policies=0.9,
        capacity_requests=0.8,
        claims=(1, 3),
        bad_capacity=0.05,
    ),
    "shared-partitions": replace(
        BASE,
        changed_sharing=0.2,
        odd_default=0.1,
        turns=2,
        shared=0.6,
        capacity=0.8,
        counters=0.9,
        capacity_requests=0.4,
        claims=(1, 3),
        occupancy=0.3,
    ),
    "taints": replace(BASE, taints=0.6, tolerations=0.7, all_mode=0.15, first_available=0.3),
    "binding": replace(BASE, binding=0.5, binds_to_node=0.4, pools=(2, 3), all_nodes=4, gates_off=0.1),
    "places": replace(
        BASE,
        every_node=True,
        often_off=("PartitionableDevices",),
        turns=2,
        per_device=0.5,
        all_nodes=3,
        node_selector=4,
        nodes=(1, 3),
        mixed_places=0.5,
        bad_node_selector=0.06,
    ),
    "pools": replace(
        BASE,
        every_node=True,
        turns=2,
        generations=0.4,
        odd_slices=0.2,
        incomplete=0.15,
        duplicate_device=0.08,
        all_mode=0.25,
        other_node=2,
        mixed_places=0.4,
    ),
    "operations": replace(BASE, skip_operations=0.7, alpha_off=0.1),
    "configs": replace(BASE, configs=0.95, first_available=0.5, requests=(1, 3), claims=(1, 2)),
    "selectors": replace(
        BASE,
        turns=2,
        selectors=1.0,
        failing_selector=0.15,
        class_selectors=0.8,
        missing_attribute=0.1,
        risky_selector=0.3,
    ),
    "derived": replace(
        BASE,
        often_off=("ListTypeAttributes",),
        turns=2,
        derived=0.8,
        constraints=0.9,
        alpha_off=0.05,
        derived_failing=0.08,
        requests=(1, 3),
    ),
    "gates": replace(
        BASE, gates_off=1.0, shared=0.3, counters=0.3, taints=0.2, binding=0.2, list_attributes=0.2, derived=0.05
    ),
    "errors": replace(
        BASE, odd_slices=0.3, bad_claim=0.3, failing_selector=0.1, bad_capacity=0.05, unknown_attribute=0.03
    ),
    "tight": replace(
        BASE,
        turns=2,
        pools=(1, 1),
        slices=(1, 2),
        devices=(4, 7),
        second_driver=0.0,
        requests=(2, 4),
        early_only=0.4,
        occupancy=0.05,
        constraints=0.4,
        gates_off=0.0,
        counters=0.3,
        shared=0.3,
        capacity_requests=0.3,
        all_mode=0.02,
    ),
    "planted": replace(BASE, turns=12, planted=1.0, gates_off=0.0),
}
