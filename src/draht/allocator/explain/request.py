"""Why a single request finds too few devices even if nothing is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from draht.allocator.explain.explanation import Dominant, Explanation
from draht.allocator.explain.holders import named
from draht.allocator.explain.question import Question
from draht.allocator.explain.selection import Selection, selection, short, unready
from draht.allocator.explain.tally import Tally, tally
from draht.allocator.features import ALL, Features
from draht.allocator.reporter import Cause
from draht.allocator.snapshot import Snapshot
from draht.api.quantity import Quantity
from draht.api.resource import ExactDeviceRequest

__all__ = ["explain_request"]

_SHOWN: Final = 4
Change = Callable[[Question], Question]


@dataclass(frozen=True, slots=True)
class _Case:
    """The question of one exact request, the request, and what it finds."""

    question: Question
    asked: ExactDeviceRequest
    seen: Tally


def explain_request(question: Question, claim: int, request: int) -> Explanation | None:
    """The cause that keeps a request of a question without holders from being satisfied by itself; None if none does.

    Of a prioritised list the first alternative is explained, and the others are mentioned.
    """
    asked = question.claims[claim].spec.devices.requests[request]
    if question.only(claim, request).fits:
        return None
    if not asked.first_available:
        return _explain(question.only(claim, request), f"claim {named(question.claims[claim])}, request {asked.name}")
    found = [
        _explain(
            question.only(claim, request, number),
            f"claim {named(question.claims[claim])}, request {asked.name}/{sub.name}",
        )
        for number, sub in enumerate(asked.first_available)
    ]
    others = tuple(
        f"alternative {sub.name}: {each.summary}"
        for sub, each in zip(asked.first_available[1:], found[1:], strict=True)
    )
    return replace(found[0], evidence=(*found[0].evidence, *others))


def _explain(question: Question, where: str) -> Explanation:
    (claim,) = question.claims
    exactly = claim.spec.devices.requests[0].exactly
    assert exactly is not None
    seen = tally(question)
    dominant = _dominant(question, exactly, seen)
    made = _SAYERS[dominant](_Case(question, exactly, seen))
    return replace(made, request=where, groups=seen.shown())


def _changes(question: Question, asked: ExactDeviceRequest) -> dict[Dominant, Change]:
    """What can be taken away, in the order in which it is looked at."""
    changes: dict[Dominant, Change] = {}
    if question.snapshot.features != ALL:
        changes[Dominant.FEATURE] = _with_features
    if asked.selectors:
        changes[Dominant.SELECTOR] = lambda each: each.selecting()
    changes[Dominant.TAINT] = lambda each: each.tolerating()
    if asked.capacity is not None:
        changes[Dominant.CAPACITY] = lambda each: each.without_amounts()
    changes[Dominant.COUNTERS] = lambda each: each.uncounted()
    if asked.count > 1 and asked.allocation_mode == "ExactCount":
        changes[Dominant.TOPOLOGY] = lambda each: each.counting(1)
    return changes


def _dominant(question: Question, asked: ExactDeviceRequest, seen: Tally) -> Dominant:
    changes = _changes(question, asked)
    single = [cause for cause, change in changes.items() if change(question).fits]
    if Dominant.TOPOLOGY in single and Dominant.SELECTOR in single and seen.usable >= asked.count:
        # Enough devices match, only not on one node: that they are selected isn't the trouble.
        return Dominant.TOPOLOGY
    if single:
        return single[0]
    everything = question
    for change in changes.values():
        everything = change(everything)
    if not everything.fits:
        return Dominant.NO_DEVICES
    for cause in changes:
        rest = question
        for other, change in changes.items():
            if other is not cause:
                rest = change(rest)
        if not rest.fits:
            return cause
    # None is indispensable: the first of a few that are enough together, without those that change nothing.
    enough = list(changes)
    for cause in reversed(changes):
        rest = question
        for other in enough:
            if other is not cause:
                rest = changes[other](rest)
        if rest.fits:
            enough.remove(cause)
    return enough[0]


def _with_features(question: Question, features: Features = ALL) -> Question:
    old = question.snapshot
    snapshot = Snapshot.of(
        slices=old.slices.values(),
        classes=old.classes.values(),
        claims=old.claims.values(),
        nodes=old.nodes.values(),
        taint_rules=old.rules.values(),
        features=features,
    )
    return replace(question, snapshot=snapshot)


def _feature(case: _Case) -> Explanation:
    features = case.question.snapshot.features
    off = [name for name in ALL.__dataclass_fields__ if not getattr(features, name)]
    enough = [name for name in off if _with_features(case.question, replace(features, **{name: True})).fits]
    names = enough or off
    return Explanation(
        Dominant.FEATURE,
        f"the devices that would do need {' or '.join(names)}, which is off",
        evidence=(
            f"{len(off)} of {len(ALL.__dataclass_fields__)} features are off in the release that is asked about",
        ),
        next_steps=("switch the feature on, or use a release that has it",),
        blame=tuple(names),
    )


def _selector(case: _Case) -> Explanation:
    found = selection(case.question)
    steps = list(_relaxed(case.question, found))
    return Explanation(
        Dominant.SELECTOR,
        f"{_few(found.matching)} of {found.of_class} devices of class {case.asked.device_class_name} "
        f"{'meets' if found.matching == 1 else 'meet'} the request's selectors"
        + (f", {case.asked.count} are needed on one node" if case.asked.count > 1 else ""),
        evidence=tuple(map(str, found.misses[:_SHOWN])),
        next_steps=tuple(steps) or (f"relax the selectors of the request: {_together(found)}",),
        blame=found.texts,
    )


def _relaxed(question: Question, found: Selection) -> list[str]:
    """Single conditions whose removal is enough."""
    steps = []
    for miss in found.misses:
        others = [text for text in found.texts if text != miss.text]
        if question.selecting(others).fits:
            instead = f" ({miss.instead})" if miss.instead else ""
            steps.append(f"relax `{short(miss.text)}`{instead}: without it the request is satisfied")
    return steps[:_SHOWN]


def _together(found: Selection) -> str:
    return f"the nearest device meets {found.nearest} of {len(found.texts)} conditions"


def _taint(case: _Case) -> Explanation:
    details = case.seen.details(Cause.TAINT)
    names = ", ".join(f"{taint} on {number}" for taint, number in details[:_SHOWN])
    return Explanation(
        Dominant.TAINT,
        f"{case.seen.number(Cause.TAINT)} devices that would do have taints that the request doesn't tolerate",
        evidence=(f"{case.seen.devices} devices; tainted: {names}",),
        next_steps=(
            f"mend what the taint {details[0][0] if details else ''} is about",
            "tolerate it in the request, if the device is good enough",
        ),
        blame=tuple(taint for taint, _ in details),
    )


def _capacity(case: _Case) -> Explanation:
    assert case.asked.capacity is not None
    amounts = ", ".join(f"{name} {amount}" for name, amount in case.asked.capacity.requests.items())
    details = case.seen.details(Cause.CAPACITY)
    loose = tally(case.question.without_amounts())
    return Explanation(
        Dominant.CAPACITY,
        f"no device can give {amounts}",
        evidence=(
            f"{case.seen.number(Cause.CAPACITY)} of {case.seen.devices} devices can't: "
            + (", ".join(f"{detail} ({number})" for detail, number in details[:_SHOWN]) or "too little"),
            *_largest(case),
        ),
        next_steps=(f"ask for less: {loose.usable} devices would do without the amounts",),
        blame=tuple(case.asked.capacity.requests),
    )


def _largest(case: _Case) -> list[str]:
    """The largest value of each requested capacity among the devices that would do without the amounts."""
    assert case.asked.capacity is not None
    lines = []
    loose = tally(case.question.without_amounts())
    for name in case.asked.capacity.requests:
        bare = name.rpartition("/")[2]
        values = [
            Quantity.from_wire(entry.value)
            for group in loose.groups
            for pool in group.row.usable
            for device in pool.devices
            for key, entry in device.capacity.items()
            if key.rpartition("/")[2] == bare
        ]
        lines.append(f"the largest {name} is {max(values)}" if values else f"no device has a capacity {name}")
    return lines


def _counters(case: _Case) -> Explanation:
    if case.seen.usable:
        return Explanation(
            Dominant.COUNTERS,
            "partitions of the same devices exclude each other",
            evidence=(f"{case.seen.usable} devices match, but each uses counters that the others need",),
            next_steps=("ask for fewer or smaller partitions",),
        )
    details = case.seen.details(Cause.COUNTERS)
    return Explanation(
        Dominant.COUNTERS,
        "each device that would do needs more of its counters than there is, even alone",
        evidence=(
            f"{case.seen.number(Cause.COUNTERS)} of {case.seen.devices} devices do: "
            + "; ".join(f"{detail} ({number})" for detail, number in details[:_SHOWN]),
        ),
        next_steps=("have the driver's counters mended, or ask for smaller partitions",),
    )


def _topology(case: _Case) -> Explanation:
    best = max(case.seen.groups, key=lambda group: len(group.usable))
    most = next((count for count in range(case.asked.count - 1, 0, -1) if case.question.counting(count).fits), 0)
    spread = case.seen.usable >= case.asked.count
    return Explanation(
        Dominant.TOPOLOGY,
        f"{case.asked.count} devices are needed on one node, at most {most} are to be had on one",
        evidence=(f"{case.seen.usable} devices match on {_nodes(case.question)}; {best.name} has {len(best.usable)}",),
        next_steps=(
            f"ask for at most {most}",
            *((f"spread it: several pods with at most {most} devices each",) if spread else ()),
        ),
        blame=(str(most),),
    )


def _no_devices(case: _Case) -> Explanation:
    name = case.asked.device_class_name
    devices = sum(len(piece.spec.devices) for piece in case.question.snapshot.slices.values())
    drivers = sorted({piece.spec.driver for piece in case.question.snapshot.slices.values()})
    waiting, pools = unready(case.question)
    if waiting:
        return Explanation(
            Dominant.INCOMPLETE_POOL,
            f"{waiting} devices of class {name} are in pools whose slices aren't all there",
            evidence=(f"waiting for slices of pool {', '.join(pools[:_SHOWN])}",),
            next_steps=("wait until the driver has published all slices of the pool",),
            blame=pools,
        )
    found = selection(case.question)
    return Explanation(
        Dominant.NO_DEVICES,
        f"no device of class {name} is there"
        if not found.of_class
        else f"{found.of_class} devices of class {name} are there, {case.asked.count} are needed"
        if found.of_class < case.asked.count
        else f"none of {found.of_class} devices of class {name} can be given away",
        evidence=(
            f"{devices} devices are published, by {', '.join(drivers[:_SHOWN]) or 'no driver'}",
            f"{found.of_class} of them are what the class selects",
        ),
        next_steps=("start the driver on a node that has such devices, or name another class",),
        blame=(name,),
    )


def _nodes(question: Question) -> str:
    return f"{len(question.nodes)} nodes" if len(question.nodes) != 1 else "1 node"


def _few(number: int) -> str:
    return "none" if number == 0 else str(number)


_SAYERS: Final[dict[Dominant, Callable[[_Case], Explanation]]] = {
    Dominant.FEATURE: _feature,
    Dominant.SELECTOR: _selector,
    Dominant.TAINT: _taint,
    Dominant.CAPACITY: _capacity,
    Dominant.COUNTERS: _counters,
    Dominant.TOPOLOGY: _topology,
    Dominant.NO_DEVICES: _no_devices,
}
