"""Allocation results: the objects that go into the status of claims.

Owns the fields of a result, share ids and the order of devices. Results carry what the consumer needs without the
slice: tolerations of the request, binding conditions of the device, consumed capacity.

Ids of shares come from a source that the caller gives; without one they are derived from the claim, so that the same
claim gets the same ids wherever it is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from draht.allocator.config import configuration
from draht.allocator.errors import Failure, FatalError
from draht.allocator.node_selector import joint_selector
from draht.api.resource import AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from draht.allocator.pools import PoolId
    from draht.allocator.problem import Problem
    from draht.allocator.row import Row
    from draht.allocator.search import Solution
    from draht.api.core.scheduling import NodeSelector
    from draht.api.resource import Device, DeviceClass, ResourceClaim, ResourceSlice

__all__ = ["results", "unjoined"]

_NAMESPACE = UUID("6d1f5a2e-9c0b-5e43-8a77-0d6b0f6f4c11")


def results(
    claims: Sequence[ResourceClaim],
    row: Row,
    problem: Problem,
    solution: Solution,
    share_ids: Callable[[], str] | None = None,
) -> tuple[AllocationResult, ...]:
    """One allocation for each claim.

    Args:
        claims: The claims, in the order of the plan.
        row: The row that was searched.
        problem: The problem that was solved; any with the plan and the row's key.
        solution: What was found.
        share_ids: Gives a new lower-case RFC 4122 UUID each time.

    Raises:
        FatalError: The node selectors of the devices can't be joined.
    """
    last = row.last
    if last is not None and last[0] is solution:
        parts = last[1]
    else:
        parts = _parts(claims, row, problem, solution, share_ids)
        if not problem.multi:
            # Without shares nothing in it depends on the claims, and the next question is often the same one.
            row.last = (solution, parts)
    found: list[AllocationResult] = []
    for claim, (devices, selector, chosen) in zip(claims, parts, strict=True):
        # The plan serves all claims with these requests, so references come from it and configuration from the claim.
        config = configuration(claim.spec, chosen)
        given = DeviceAllocationResult(results=devices, config=config)
        found.append(AllocationResult(devices=given, node_selector=selector))
    return tuple(found)


def unjoined(row: Row, problem: Problem, solution: Solution) -> Failure | None:
    """Why a solution has no result: the node selectors of a claim's devices can't be joined. None if they can."""
    plan = problem.plan
    for number in range(len(plan.claims)):
        positions = [position for which, position in solution.taken if plan.alternatives[which].claim == number]
        try:
            joint_selector([(row.device(at), row.slice(at)) for at in positions], row.node.metadata.name, "")
        except FatalError as error:
            return Failure(error.kind, error.message, number, hint=error.hint)
    return None


_Part = tuple[
    tuple[DeviceRequestAllocationResult, ...], "NodeSelector | None", tuple[tuple[str, "DeviceClass | None"], ...]
]


def _parts(
    claims: Sequence[ResourceClaim],
    row: Row,
    problem: Problem,
    solution: Solution,
    share_ids: Callable[[], str] | None,
) -> list[_Part]:
    """For each claim its devices, the node selector, and the references and classes that were chosen."""
    plan = problem.plan
    by_claim: list[list[tuple[int, int]]] = [[] for _ in claims]
    for which, position in solution.taken:
        by_claim[plan.alternatives[which].claim].append((which, position))
    parts: list[_Part] = []
    for number, claim in enumerate(claims):
        devices: list[DeviceRequestAllocationResult] = []
        used: list[tuple[Device, ResourceSlice]] = []
        for which, position in by_claim[number]:
            index = row.pool_at(position)
            pool = row.usable[index]
            offset = position - row.starts[index]
            device, piece = pool.devices[offset], pool.slices[offset]
            used.append((device, piece))
            devices.append(_device(claim, len(devices), pool.id, device, piece, problem, which, position, share_ids))
        alternatives = [plan.alternatives[solution.chosen[index]] for index in plan.claims[number].requests]
        selector = joint_selector(used, row.node.metadata.name, claim.metadata.name)
        parts.append((tuple(devices), selector, tuple([(a.reference, a.device_class) for a in alternatives])))
    return parts


def _device(
    claim: ResourceClaim,
    order: int,
    pool: PoolId,
    device: Device,
    piece: ResourceSlice,
    problem: Problem,
    which: int,
    position: int,
    share_ids: Callable[[], str] | None,
) -> DeviceRequestAllocationResult:
    alternative = problem.plan.alternatives[which]
    features = problem.plan.features
    binding = features.device_binding_and_status
    share = None
    consumed: dict[str, str | int] = {}
    if problem.multi >> position & 1:
        name = f"{pool.driver}/{pool.name}/{device.name}"
        share = share_ids() if share_ids is not None else _share_id(claim, order, name)
        taken = problem.choices[which].consumed[position]
        consumed = {capacity: str(amount) for capacity, amount in taken.items()}
    return DeviceRequestAllocationResult(
        request=alternative.reference,
        driver=pool.driver,
        pool=pool.name,
        device=device.name,
        admin_access=True if alternative.admin else None,
        tolerations=alternative.tolerations,
        binding_conditions=device.binding_conditions if binding else (),
        binding_failure_conditions=device.binding_failure_conditions if binding else (),
        share_id=share,
        consumed_capacity=consumed,
        skip_node_operations=piece.spec.skip_node_operations if features.experimental else (),
    )


def _share_id(claim: ResourceClaim, order: int, device: str) -> str:
    metadata = claim.metadata
    owner = metadata.uid or f"{metadata.namespace}/{metadata.name}"
    return str(uuid5(_NAMESPACE, f"{owner}/{order}/{device}"))
