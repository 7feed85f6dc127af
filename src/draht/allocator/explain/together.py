"""Why requests that could each be satisfied can't be satisfied together, even if nothing is held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draht.allocator.explain.attributes import values
from draht.allocator.explain.explanation import Dominant, Explanation
from draht.allocator.explain.holders import named
from draht.allocator.explain.question import Question
from draht.allocator.explain.tally import tally
from draht.api.resource import DeviceConstraint, DeviceSubRequest, ExactDeviceRequest

__all__ = ["explain_together"]

_SHOWN: Final = 4
_LOOKED_AT: Final = 16
"""Kinds of nodes that are looked at for the one that has most."""


def explain_together(question: Question) -> Explanation:
    """The cause that keeps the requests of a question without holders apart."""
    numbered = [
        (claim, number, constraint)
        for claim, each in enumerate(question.claims)
        for number, constraint in enumerate(each.spec.devices.constraints)
    ]
    for claim, number, constraint in numbered:
        if question.without_constraints(claim, {number}).fits:
            return _constraint(question, claim, constraint, alone=True)
    if question.uncounted().fits:
        return Explanation(
            Dominant.COUNTERS,
            "partitions of the same devices exclude each other",
            evidence=("each request finds partitions, but together they use more of the counters than there is",),
            next_steps=("ask for fewer or smaller partitions, or use several nodes",),
        )
    if numbered:
        loose = question
        for claim in range(len(question.claims)):
            loose = loose.without_constraints(claim)
        if loose.fits:
            # No single one is to blame; the first that matters while the others are gone.
            for claim, number, constraint in numbered:
                kept = question
                for other, each in enumerate(question.claims):
                    others = set(range(len(each.spec.devices.constraints)))
                    kept = kept.without_constraints(other, others - {number} if other == claim else None)
                if not kept.fits:
                    return _constraint(question, claim, constraint, alone=False)
            claim, _, constraint = numbered[0]
            return _constraint(question, claim, constraint, alone=False)
    return _too_few(question)


def _constraint(question: Question, claim: int, constraint: DeviceConstraint, *, alone: bool) -> Explanation:
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    same = constraint.match_attribute is not None
    requests = ", ".join(constraint.requests) or "all requests"
    return Explanation(
        Dominant.CONSTRAINT,
        f"no combination of devices has {'the same' if same else 'only different values of'} {name}",
        request=f"claim {named(question.claims[claim])}, constraint on {requests}",
        evidence=values(question, claim, constraint),
        next_steps=(
            ("drop or widen the constraint: without it the claims fit")
            if alone
            else "drop or widen the constraints: one alone is not enough",
            *(
                ("match a wider attribute, such as resource.kubernetes.io/numaNode",)
                if name.endswith("/pcieRoot")
                else ()
            ),
        ),
        blame=(name,),
    )


def _too_few(question: Question) -> Explanation:
    wanted = []
    total = 0
    for claim, number, name, asked in _requests(question):
        seen = tally(question.only(claim, number, 0 if name.endswith("/") else None))
        best = max((len(group.usable) for group in seen.groups), default=0)
        count = "all" if asked.allocation_mode == "All" else asked.count
        total += best if asked.allocation_mode == "All" else asked.count
        wanted.append(f"{name.removesuffix('/')} wants {count} of {best}")
    more = f"; and {len(wanted) - _SHOWN} more requests" if len(wanted) > _SHOWN else ""
    node, most = _most(question)
    return Explanation(
        Dominant.TOGETHER,
        "every request can be satisfied, but not all of them at once on one node",
        evidence=(
            f"on the best node for each: {'; '.join(wanted[:_SHOWN])}{more}",
            f"together they want {total} devices; node {node} has {most} that would do for one or more of them",
        ),
        next_steps=("ask for less, or put the claims into several pods that can run on different nodes",),
    )


def _requests(question: Question) -> Iterator[tuple[int, int, str, ExactDeviceRequest | DeviceSubRequest]]:
    """Claim, number, name and content of each request; of a prioritized list the first alternative, its name with /."""
    for claim, each in enumerate(question.claims):
        for number, request in enumerate(each.spec.devices.requests):
            name = f"{named(each)}/{request.name}"
            if request.exactly is not None:
                yield claim, number, name, request.exactly
            else:
                yield claim, number, f"{name}/", request.first_available[0]


def _most(question: Question) -> tuple[str, int]:
    """The node that has most devices for any of the requests, among those that have most for one, and their number."""
    kinds = [
        question.only(claim, number, 0 if name.endswith("/") else None)
        for claim, number, name, _ in _requests(question)
    ]
    examples = dict.fromkeys(group.name for kind in kinds for group in tally(kind).groups if group.usable)
    found = {
        node: len({device for kind in kinds for group in tally(kind.on((node,))).groups for device in group.usable})
        for node in list(examples)[:_LOOKED_AT]
    }
    node = max(found, key=found.__getitem__)
    return node, found[node]
