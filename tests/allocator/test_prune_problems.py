"""Pruning on whole problems: the same answers as the plain search, and none where its proofs don't hold."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from allocator_answers import snapshot_of
from allocator_generator import case
from draht.allocator import BudgetError, Limits, Snapshot
from draht.allocator.errors import Failure
from draht.allocator.problem import Problem, State
from draht.allocator.prune.decide import PLAIN_STEPS, decide, prune
from draht.allocator.prune.easy import Easy
from draht.allocator.prune.strict import reason
from draht.allocator.search import Solution, solve
from draht.api.resource import DeviceClass, ResourceClaim, ResourceSlice

CASES = 300
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "50000"))
STEPS = 20_000


def _problems(seed: int, count: int, profile: str | None = None) -> Iterator[tuple[int, Problem, State]]:
    for index in range(count):
        one = case(seed, index, profile)
        snapshot = snapshot_of(one)
        claims = msgspec.convert(one["claims"], tuple[ResourceClaim, ...])
        for row in snapshot.rows():
            if row.error is None:
                problem = Problem.of(snapshot.plan(claims), row)
                if problem.failure is None:
                    yield index, problem, problem.state(row, snapshot.usage)


def _agree(seed: int, count: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for index, problem, state in _problems(seed, count):
        why = reason(problem)
        if why is not None:
            outcomes[why] += 1
            continue
        try:
            expected = solve(problem, state, Limits(steps=STEPS))
        except BudgetError:
            outcomes["too long"] += 1
            continue
        outcomes[type(expected).__name__] += 1
        try:
            found = prune(problem, state, Limits(steps=STEPS))
        except BudgetError:
            outcomes["gave up"] += 1
            continue
        assert found == expected, f"reproduce: allocator_generator.case({seed}, {index})"
        assert decide(problem, state, Limits(steps=STEPS)) == expected
        outcomes["easy"] += Easy.of(problem) is not None
    return outcomes


def test_pruning_from_the_first_step_changes_nothing() -> None:
    """On random questions the pruned search gives the plain search's solution, failure or nothing."""
    outcomes = _agree(41, CASES)
    assert outcomes["Solution"] > CASES // 10
    assert outcomes["NoneType"] > CASES // 10
    assert outcomes["Failure"]
    assert outcomes["easy"] > CASES // 30
    assert not outcomes["gave up"]


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_pruning_from_the_first_step_changes_nothing_at_length() -> None:
    """As above, for many fresh questions."""
    _agree(42, FUZZ_CASES)


@pytest.mark.parametrize(
    ("why", "profile"),
    [
        ("a constraint may refuse one of all devices", "all"),
        ("a claim may reach the limit of results", "limits"),
        ("a constraint takes values from several sources", "derived"),
        ("a derived attribute can't be computed for some device", "derived"),
        ("a constraint depends on the order of devices", "derived"),
    ],
)
def test_what_the_proofs_do_not_cover_is_not_pruned(why: str, profile: str) -> None:
    """Each reason to keep away is one: pruning nevertheless would give a wrong answer, or none, within 120 cases."""
    for _, problem, state in _problems(3, 120, profile):
        if reason(problem) != why:
            continue
        try:
            expected = solve(problem, state, Limits(steps=STEPS))
        except BudgetError:
            continue
        assert decide(problem, state, Limits(steps=STEPS)) == expected
        try:
            if prune(problem, state, Limits(steps=STEPS)) != expected:
                return
        except (IndexError, BudgetError):
            # The model has no place for what it doesn't cover.
            return
    pytest.fail(f"no case shows why {why!r} forbids pruning")


def _partitions(amounts: list[str]) -> tuple[Snapshot, tuple[ResourceClaim, ...]]:
    """A node with one counter of 1, partitions that consume these amounts, and a claim for all but one of them."""
    devices = [
        {"name": f"p{i}", "consumesCounters": [{"counterSet": "s", "counters": {"n": {"value": amount}}}]}
        for i, amount in enumerate(amounts)
    ]
    pool = {"name": "p", "resourceSliceCount": 2}
    spec = {"driver": "d", "pool": pool, "nodeName": "n"}
    slices = [
        {"metadata": {"name": "a"}, "spec": spec | {"devices": devices}},
        {
            "metadata": {"name": "b"},
            "spec": spec | {"sharedCounters": [{"name": "s", "counters": {"n": {"value": "1"}}}]},
        },
    ]
    exactly = {"deviceClassName": "c", "allocationMode": "ExactCount", "count": len(amounts) - 1}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    snapshot = Snapshot.of(
        slices=msgspec.convert(slices, tuple[ResourceSlice, ...]),
        classes=(msgspec.convert({"metadata": {"name": "c"}, "spec": {}}, DeviceClass),),
    )
    return snapshot, msgspec.convert([claim], tuple[ResourceClaim, ...])


def test_negative_amounts_are_not_pruned() -> None:
    """A device that gives counters back makes room for another, so sets of devices are no longer sets."""
    snapshot, claims = _partitions(["1", "-1", "1"])
    problem = Problem.of(snapshot.plan(claims), snapshot.row("n"))
    assert reason(problem) == "an amount is negative"
    snapshot, claims = _partitions(["1", "1", "1"])
    assert reason(Problem.of(snapshot.plan(claims), snapshot.row("n"))) is None


def _hopeless() -> tuple[Problem, State]:
    """A claim that takes the plain search long to refuse, and counting doesn't see why."""
    snapshot, claims = _partitions(["1"] * 12)
    row = snapshot.row("n")
    problem = Problem.of(snapshot.plan(claims), row)
    return problem, problem.state(row, snapshot.usage)


def test_limits_are_kept() -> None:
    """Steps and the deadline end the pruned search too, with an error that says so."""
    problem, state = _hopeless()
    assert prune(problem, state) is None
    with pytest.raises(BudgetError, match="search steps"):
        prune(problem, state, Limits(steps=1))
    for _, each, where in _problems(41, 60):
        if reason(each) is None:
            try:
                prune(each, where, Limits(deadline=lambda: True))
            except BudgetError:
                return
    pytest.fail("no search was long enough to look at the clock")


def test_the_plain_search_comes_first() -> None:
    """What a few steps decide never builds a model."""
    problem, state = next(
        (problem, state)
        for _, problem, state in _problems(41, 60)
        if reason(problem) is None and isinstance(solve(problem, state), Solution)
    )
    assert not isinstance(solve(problem, state, Limits(steps=PLAIN_STEPS)), Failure)
    decide(problem, state)
    assert not problem.memory.models
