"""Finding the dominant cause.

Causes are tried in this order:

1. errors: the claim, its class or a selector is wrong, a pool is incomplete or invalid;
2. the nodes: there is none, or it would fit on one that may not be used;
3. what is held: it would fit if nothing were;
4. single requests: one of them finds too few devices even if nothing is held (`draht.allocator.explain.request`);
5. all of them together: constraints, counters, or simply too few for all (`draht.allocator.explain.together`).

Three before four: who waits for a device needn't change the claim. If nothing would be enough even then, waiting
doesn't help, and the claim or the devices have to change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from draht.allocator.errors import AllocatorError, BudgetError, FatalError, FatalKind, NodeError
from draht.allocator.explain.explanation import Dominant, Explanation
from draht.allocator.explain.holders import holders, named, sufficient
from draht.allocator.explain.question import Question
from draht.allocator.explain.request import explain_request
from draht.allocator.explain.tally import Tally, tally
from draht.allocator.explain.together import explain_together
from draht.allocator.reporter import Cause
from draht.allocator.search import NO_LIMITS, Limits
from draht.allocator.snapshot import Snapshot
from draht.api.resource import ResourceClaim

__all__ = ["explain"]

_IN_USE: Final = (Cause.IN_USE, Cause.CAPACITY_IN_USE, Cause.COUNTERS, Cause.COMPATIBILITY)
_SHOWN: Final = 4

_KINDS: Final = {
    FatalKind.POOL_INCOMPLETE: Dominant.INCOMPLETE_POOL,
    FatalKind.POOL_INVALID: Dominant.INVALID_POOL,
    FatalKind.TOO_MANY_DEVICES: Dominant.RESULT_LIMIT,
    FatalKind.FEATURE_DISABLED: Dominant.FEATURE,
}


def explain(
    snapshot: Snapshot,
    claims: Sequence[ResourceClaim],
    *,
    nodes: Sequence[str] | None = None,
    wishes: Sequence[str] = (),
    limits: Limits = NO_LIMITS,
) -> Explanation:
    """Why the claims fit, or don't, all together on one node.

    Args:
        snapshot: The cluster.
        claims: Claims without allocation.
        nodes: Names of the nodes that may be used, in order of preference; None for all.
        wishes: In sentences, what keeps other nodes from being used; told where the choice of nodes is the cause.
        limits: Of one attempt; an explanation makes some dozens of them.
    """
    everywhere = tuple(snapshot.nodes)
    question = Question(snapshot, tuple(claims), everywhere if nodes is None else tuple(nodes), limits)
    answer = question.answer()
    if answer.node is not None:
        return Explanation(Dominant.FITS, f"it fits on node {answer.node}", node=answer.node)
    if answer.error is not None:
        return _error(answer.error, answer.at)
    if not question.nodes:
        return _no_node(question, wishes)
    other = question.on(everywhere).answer().node if nodes is not None else None
    if other is None:
        return _in_the_way(question)
    here = _in_the_way(question)
    elsewhere = f"it fits on node {other}, but that node may not be used"
    if len(question.nodes) == 1:
        # Whoever names one node wants to know what is wrong there.
        return replace(here, evidence=(*here.evidence, elsewhere, *wishes), next_steps=(*here.next_steps, _let(other)))
    return Explanation(
        Dominant.NODE_CHOICE,
        elsewhere,
        request=here.request,
        evidence=(
            f"{len(question.nodes)} of {len(everywhere)} nodes may be used",
            *wishes,
            f"on these: {here.summary}",
            *here.evidence,
        ),
        next_steps=(_let(other), *here.next_steps),
        groups=here.groups,
        blame=(other,),
    )


def _let(node: str) -> str:
    return f"let it run on node {node}"


def _in_the_way(question: Question) -> Explanation:
    """What keeps the claims from the nodes of the question."""
    emptied = question.emptied()
    if emptied.fits:
        return _held(question)
    for claim in range(len(question.claims)):
        for request in range(len(question.claims[claim].spec.devices.requests)):
            found = explain_request(emptied, claim, request)
            if found is not None:
                return found
    return explain_together(emptied)


def _error(error: AllocatorError, node: str) -> Explanation:
    cause = Dominant.ERROR
    blame: tuple[str, ...] = ()
    if isinstance(error, FatalError):
        cause, blame = _KINDS.get(error.kind, Dominant.ERROR), (error.kind.value,)
    elif isinstance(error, NodeError):
        cause, blame = Dominant.INVALID_POOL, (node,)
    elif isinstance(error, BudgetError):
        cause, blame = Dominant.BUDGET, (node,)
    steps = {
        Dominant.INCOMPLETE_POOL: "wait until the driver has published all slices, or ask for a number of devices",
        Dominant.INVALID_POOL: "mend what the driver publishes",
        Dominant.RESULT_LIMIT: "split the claim: a claim can have 32 devices",
        Dominant.BUDGET: "give it more time, or make the claim simpler",
        Dominant.FEATURE: "leave out what the release can't do, or switch the feature on",
        Dominant.ERROR: "mend it; `draht validate` points at each mistake of a manifest",
    }
    step = error.hint or steps.get(cause)
    return Explanation(
        cause,
        error.message,
        request=error.where,
        evidence=(f"found on node {node}",) if node else (),
        next_steps=(step,) if step else (),
        blame=blame,
    )


def _no_node(question: Question, wishes: Sequence[str]) -> Explanation:
    total = len(question.snapshot.nodes)
    if total:
        return Explanation(
            Dominant.NODE_CHOICE,
            "no node may be used",
            evidence=(f"none of {total} nodes meets what the pod asks of a node", *wishes),
            next_steps=("compare the pod's node name, node selector and affinity with the nodes' labels",),
        )
    return Explanation(
        Dominant.NO_NODE,
        "there is no node",
        evidence=("no slice names a node, and no Node is given",),
        next_steps=("add the driver's ResourceSlices, or Nodes for pools that aren't local to one",),
    )


def _bottleneck(question: Question) -> tuple[int, int, Tally, bool]:
    """The request that finds too little by itself, else the one that finds least; and whether it does by itself."""
    found: list[tuple[int, int, Tally, bool]] = []
    for claim in range(len(question.claims)):
        for number, request in enumerate(question.claims[claim].spec.devices.requests):
            alone = question.only(claim, number)
            entry = (claim, number, tally(alone if not request.first_available else question.only(claim, number, 0)))
            if not alone.fits:
                return (*entry, True)
            found.append((*entry, False))
    return min(found, key=lambda entry: entry[2].usable)


def _held(question: Question) -> Explanation:
    """It would fit if nothing were held."""
    claim, number, seen, alone = _bottleneck(question)
    request = question.claims[claim].spec.devices.requests[number]
    matching = seen.usable + seen.number(*_IN_USE)
    taken = seen.number(*_IN_USE)
    blocked = {device for group in seen.groups for cause in _IN_USE for device in group.refused.get(cause, ())}
    direct = {device for group in seen.groups for device in group.refused.get(Cause.IN_USE, ())}
    by = holders(question, direct) or holders(question, blocked) or holders(question)
    ends = sufficient(question, by if len(by) == len(holders(question)) else [*by, *_others(question, by)])
    evidence = [
        f"{matching} of {seen.devices} devices match; "
        + (f"all {taken} are held" if taken == matching else f"{taken} of them {'is' if taken == 1 else 'are'} held")
        + (f", the earliest by claim {named(by[0])}" if by else "")
    ]
    for cause, words in (
        (Cause.COUNTERS, "are partitions of devices that are held, in whole or in part"),
        (Cause.CAPACITY_IN_USE, "are shared, and what is left of them isn't enough"),
        (Cause.COMPATIBILITY, "aren't compatible with partitions that are held"),
    ):
        if count := seen.number(cause):
            evidence.append(f"{count} of these {words}")
    if not alone:
        evidence.append("each request alone would find enough, all of them together don't on any node")
    steps = []
    if len(ends) == 1:
        steps.append(f"wait for claim {named(ends[0])} to end")
    elif ends:
        names = ", ".join(named(each) for each in ends[:_SHOWN])
        more = f" and {len(ends) - _SHOWN} more" if len(ends) > _SHOWN else ""
        steps.append(f"wait for claims to end: {names}{more} would be enough")
    steps += _alternatives(question)
    return Explanation(
        Dominant.HELD,
        "what would do is held by others",
        request=f"claim {named(question.claims[claim])}, request {request.name}",
        evidence=tuple(evidence),
        next_steps=tuple(steps),
        groups=seen.shown(),
        blame=tuple(named(each) for each in ends),
    )


def _others(question: Question, known: Sequence[ResourceClaim]) -> list[ResourceClaim]:
    names = {named(each) for each in known}
    return [each for each in holders(question) if named(each) not in names]


def _alternatives(question: Question) -> list[str]:
    """What would fit now."""
    steps = []
    most = max(
        (
            request.exactly.count
            for each in question.claims
            for request in each.spec.devices.requests
            if request.exactly
        ),
        default=0,
    )
    for count in range(most - 1, 0, -1):
        if question.counting(count).fits:
            steps.append(f"ask for {count} instead of {most}: that fits now")
            break
    selective = any(
        request.exactly and request.exactly.selectors
        for each in question.claims
        for request in each.spec.devices.requests
    )
    if selective and (node := question.selecting().answer().node) is not None:
        steps.append(f"drop the request's selectors: other devices of the class are free on node {node}")
    if any(each.spec.devices.constraints for each in question.claims):
        loose = question
        for index in range(len(question.claims)):
            loose = loose.without_constraints(index)
        if loose.fits:
            steps.append("drop the constraints: without them it fits now")
    return steps
