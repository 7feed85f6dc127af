"""One answer of the allocator in a form in which draht's and upstream's can be compared.

Owns the way from a case (plain data, see `allocator_generator`) to both answers, and what counts as a difference: the
outcome, the devices in order, consumed amounts, tolerations, conditions, skipped operations, configuration, node
selector, and the class of an error. Not compared: share ids, which are random upstream, and the texts of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from draht.allocator import (
    AllocatorError,
    BudgetError,
    FatalError,
    Features,
    Limits,
    NodeError,
    Snapshot,
    allocate,
    find,
)
from draht.allocator.allocation import node_error
from draht.allocator.errors import Failure
from draht.allocator.problem import Problem, State
from draht.allocator.prune.decide import prune
from draht.allocator.prune.strict import reason as strict_reason
from draht.allocator.result import results
from draht.allocator.search import Solution, solve
from draht.api.core import Node
from draht.api.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from oracle_client import Oracle

__all__ = ["MODES", "Answer", "Case", "ask", "comparable", "differ", "features_of", "ours", "snapshot_of", "theirs"]

Case = dict[str, Any]
Claims = tuple[ResourceClaim, ...]
Results = tuple[AllocationResult, ...] | None
Way = Callable[[Snapshot, Claims, str], Results]
Decider = Callable[[Problem, State, Limits], Solution | Failure | None]

DEADLINE_MS = 300
"""How long upstream may take for one case."""
LIMITS = Limits(steps=50_000)
"""What draht's search may take for one case."""
SPARE = 120.0
"""Seconds that a batch may take beside its cases' deadlines."""


@dataclass(frozen=True)
class Answer:
    """What an allocator said about one node.

    Args:
        kind: ``fits``, ``none``, ``timeout``, ``panic``, ``pools-invalid-on-node`` or the kind of a fatal error.
        results: One result a claim where it fits.
        detail: For people.
    """

    kind: str
    results: tuple[AllocationResult, ...] = ()
    detail: str = ""

    @property
    def decided(self) -> bool:
        """Whether there is something to compare: a search that was stopped says nothing."""
        return self.kind not in {"timeout", "panic"}


def comparable(results: Sequence[AllocationResult]) -> tuple[AllocationResult, ...]:
    """Results without what upstream draws at random."""
    found = []
    for result in results:
        devices = tuple(msgspec.structs.replace(device, share_id=None) for device in result.devices.results)
        given = msgspec.structs.replace(result.devices, results=devices)
        found.append(msgspec.structs.replace(result, devices=given))
    return tuple(found)


def theirs(answer: Mapping[str, Any]) -> Answer:
    """Upstream's answer, from what the oracle says about one node."""
    if answer["results"] is None:
        return Answer(answer["class"] or "none", detail=answer["error"])
    return Answer("fits", comparable(msgspec.convert(answer["results"], tuple[AllocationResult, ...])))


def features_of(case: Case) -> Features:
    """The case's features, whose names upstream spells in camel case."""
    switches = {}
    for name, on in case["features"].items():
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        switches[snake.removeprefix("_")] = on
    return Features(**switches)


def snapshot_of(case: Case, slices: tuple[ResourceSlice, ...] | None = None) -> Snapshot:
    """The case's cluster; its slices may have been decoded already."""
    return Snapshot.of(
        slices=msgspec.convert(case["slices"], tuple[ResourceSlice, ...]) if slices is None else slices,
        classes=msgspec.convert(case["classes"], tuple[DeviceClass, ...]),
        claims=msgspec.convert(case["allocatedClaims"], tuple[ResourceClaim, ...]),
        nodes=msgspec.convert(case["nodes"], tuple[Node, ...]),
        features=features_of(case),
    )


def _decided_by(decide: Decider) -> Way:
    """`allocate` with another search."""

    def way(snapshot: Snapshot, claims: Claims, node: str) -> Results:
        row = snapshot.row(node)
        if row.error is not None:
            raise row.error
        problem = Problem.of(snapshot.plan(claims), row)
        found = problem.failure or decide(problem, problem.state(row, snapshot.usage), LIMITS)
        if isinstance(found, Failure):
            raise found.error(claims, row)
        if found is None and problem.has_invalid:
            raise node_error(row)
        return None if found is None else results(claims, row, problem, found, None)

    return way


def _pruned(problem: Problem, state: State, limits: Limits) -> Solution | Failure | None:
    return solve(problem, state, limits) if strict_reason(problem) else prune(problem, state, limits)


def _found(snapshot: Snapshot, claims: Claims, node: str) -> Results:
    """The answer about one node from the question about all of them."""
    fit = find(snapshot, claims, limits=LIMITS)
    if error := fit.errors.get(node):
        raise error
    index = list(snapshot.nodes).index(node)
    if index not in fit.indexes():
        return None
    try:
        return fit.results(index)
    except AllocatorError as error:
        raise AssertionError(f"{node} fits, but has no results: {error}") from error


MODES: dict[str, Way] = {
    "default": lambda snapshot, claims, node: allocate(snapshot, claims, node, limits=LIMITS),
    "plain": _decided_by(solve),
    "pruned": _decided_by(_pruned),
    "find": _found,
}
"""Ways to ask draht: as everybody does, without pruning, pruned from the first step, and through the index of nodes."""


def ours(case: Case, node: str, mode: str = "default", snapshot: Snapshot | None = None) -> Answer:
    """Draht's answer for one node of a case."""
    claims = msgspec.convert(case["claims"], tuple[ResourceClaim, ...])
    try:
        found = MODES[mode](snapshot or snapshot_of(case), claims, node)
    except (FatalError, NodeError, BudgetError) as error:
        return Answer(str(error.kind), detail=str(error))
    return Answer("none") if found is None else Answer("fits", comparable(found))


def ask(oracle: Oracle, cases: Sequence[Case], deadline_ms: int = DEADLINE_MS) -> list[list[Answer]]:
    """Upstream's answers to many cases, for each node that is asked about."""
    with_deadline = [case | {"timeoutMs": case.get("timeoutMs", deadline_ms)} for case in cases]
    seconds = SPARE + sum(case["timeoutMs"] * max(1, len(case["on"])) for case in with_deadline) / 1000
    answers = oracle.call("structured.allocate", deadline=seconds, cases=with_deadline)
    return [[theirs(answer) for answer in each] for each in answers]


def differ(mine: Answer, their: Answer) -> str | None:
    """What differs, in a few words; None if nothing does or one of the two had no answer in time."""
    if not (mine.decided and their.decided):
        return None
    if mine.kind != their.kind:
        return f"draht: {mine.kind} {mine.detail}, upstream: {their.kind} {their.detail}".replace("\n", " ")
    for number, (one, other) in enumerate(zip(mine.results, their.results, strict=True)):
        if one == other:
            continue
        for field in ("results", "config"):
            if getattr(one.devices, field) != getattr(other.devices, field):
                return f"claim {number}, {field}:\n  draht:    {_text(one, field)}\n  upstream: {_text(other, field)}"
        return f"claim {number}, node selector: draht {one.node_selector}, upstream {other.node_selector}"
    return None


def _text(result: AllocationResult, field: str) -> str:
    return msgspec.json.encode(getattr(result.devices, field)).decode()
