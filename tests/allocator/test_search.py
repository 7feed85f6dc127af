"""The plain search: it goes back without a trace, is bounded, and never meets the interpreter's limit."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from allocator_answers import snapshot_of
from allocator_generator import case
from allocator_scenarios import case_of
from draht.allocator import BudgetError, FatalError, Limits, allocate
from draht.allocator.problem import Problem
from draht.allocator.search import Solution, _Search, solve
from draht.api.resource import DeviceRequest, ExactDeviceRequest, ResourceClaim


def _claims(found: dict[str, Any]) -> tuple[ResourceClaim, ...]:
    return msgspec.convert(found["claims"], tuple[ResourceClaim, ...])


def _solve(found: dict[str, Any], limits: Limits) -> object:
    snapshot = snapshot_of(found)
    row = snapshot.row("node-1")
    problem = Problem.of(snapshot.plan(_claims(found)), row)
    return solve(problem, problem.state(row, snapshot.usage), limits)


def _shares(count: int, devices: int) -> dict[str, Any]:
    """Requests for shares of devices that can't all be satisfied, so that the search tries very much."""
    capacity = {"memory": 80}
    return case_of(
        {
            "slices": [
                {
                    "node": "node-1",
                    "devices": [{"name": f"d{n}", "multi": True, "capacity": capacity} for n in range(devices)],
                }
            ],
            "claims": [{"requests": {f"r{n}": {"amounts": {"memory": 35}} for n in range(count)}}],
        }
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_failed_search_leaves_no_trace(seed: int) -> None:
    """After a search without success everything it tracked is as it was at the start."""
    found = case(4711, seed)
    snapshot = snapshot_of(found)
    row = snapshot.row("node-0")
    if row.error is not None:
        return
    problem = Problem.of(snapshot.plan(_claims(found)), row)
    if problem.failure is not None:
        return
    state = problem.state(row, snapshot.usage)
    search = _Search(problem, state, Limits(steps=20_000), None)
    try:
        answer = search.run()
    except BudgetError:
        return
    if answer is None:
        used, mine, left, shared, _, groups, _ = search.values
        assert (used, left, shared, groups) == (state.used, state.left, state.shared, state.groups)
        assert mine == 0
        assert search.taken == []
        assert search.stack == []
    assert problem.state(row, snapshot.usage) == state
    assert _same(solve(problem, state, Limits(steps=20_000)), answer)


def _same(one: object, other: object) -> bool:
    return one == other if isinstance(one, Solution) or one is None else type(one) is type(other)


def test_a_search_is_the_same_each_time() -> None:
    """Two allocators with the same cluster find the same, ids of shares included."""
    found = _shares(4, 4)
    answers = [allocate(snapshot_of(found), _claims(found), "node-1") for _ in range(2)]
    assert answers[0] is not None
    assert answers[0] == answers[1]
    ids = [result.share_id for result in answers[0][0].devices.results]
    assert len(set(ids)) == 4


def test_ids_of_shares_come_from_their_source() -> None:
    """Where the caller has a source of ids, each share gets the next one."""
    found = _shares(2, 1)
    ids = iter(["one", "two", "three"])
    answer = allocate(snapshot_of(found), _claims(found), "node-1", share_ids=lambda: next(ids))
    assert answer is not None
    assert [result.share_id for result in answer[0].devices.results] == ["one", "two"]


def test_steps_end_a_search() -> None:
    """A search that takes too many steps ends with an error that says so."""
    with pytest.raises(BudgetError, match="after 5000 search steps"):
        _solve(_shares(20, 9), Limits(steps=5000))


def test_a_deadline_ends_a_search() -> None:
    """A search that isn't finished in time ends with an error that says so."""
    asked = []

    def late() -> bool:
        asked.append(1)
        return len(asked) > 10

    with pytest.raises(BudgetError, match="in time"):
        _solve(_shares(20, 9), Limits(deadline=late))


def test_a_deadline_ends_the_testing_of_devices() -> None:
    """Time can be up before the search begins; nothing half-done is kept."""
    found = _shares(2, 2)
    snapshot = snapshot_of(found)
    with pytest.raises(BudgetError, match="while devices were tested"):
        allocate(snapshot, _claims(found), "node-1", limits=Limits(deadline=lambda: True))
    assert allocate(snapshot, _claims(found), "node-1") is not None


def test_a_thousand_requests_are_no_problem() -> None:
    """Depth is no limit: a claim with a thousand requests is too large, one with as many empty ones isn't."""
    found = case_of({"slices": [{"node": "node-1", "devices": ["d1"]}]})
    snapshot = snapshot_of(found)

    def claim(count: int) -> ResourceClaim:
        exactly = ExactDeviceRequest(device_class_name="any", allocation_mode="ExactCount", count=count)
        base = _claims(found)[0]
        requests = tuple(DeviceRequest(name=f"r{n}", exactly=exactly) for n in range(1000))
        devices = msgspec.structs.replace(base.spec.devices, requests=requests)
        return msgspec.structs.replace(base, spec=msgspec.structs.replace(base.spec, devices=devices))

    with pytest.raises(FatalError, match="more than 32 devices"):
        allocate(snapshot, [claim(1)], "node-1")
    answer = allocate(snapshot, [claim(0)], "node-1")
    assert answer is not None
    assert answer[0].devices.results == ()


def test_many_claims_are_no_problem() -> None:
    """Two hundred claims of 32 shares each are six thousand levels deep."""
    found = _shares(1, 1)
    found["slices"][0]["spec"]["devices"][0].pop("capacity")
    base = _claims(found)[0]
    request = base.spec.devices.requests[0]
    assert request.exactly is not None
    exactly = msgspec.structs.replace(request.exactly, capacity=None)
    requests = tuple(msgspec.structs.replace(request, name=f"r{n}", exactly=exactly) for n in range(32))
    devices = msgspec.structs.replace(base.spec.devices, requests=requests)
    claims = [msgspec.structs.replace(base, spec=msgspec.structs.replace(base.spec, devices=devices))] * 200
    answer = allocate(snapshot_of(found), claims, "node-1")
    assert answer is not None
    assert sum(len(claim.devices.results) for claim in answer) == 6400


def test_a_full_device_list_is_no_problem() -> None:
    """128 devices with 32 attributes each, and an expression over all of them."""
    rng = random.Random(7)
    devices = [
        {"name": f"d{n}", "attributes": {f"a{m}": rng.randrange(4) for m in range(32)}, "memory": n} for n in range(128)
    ]
    where = "device.attributes['a.example.com'].exists(k, k == 'a31') && device.attributes['a.example.com'].memory > 99"
    found = case_of(
        {
            "slices": [{"node": "node-1", "devices": devices}],
            "claims": [{"requests": {"r": {"count": 8, "where": [where]}}, "match": "a5"}],
        }
    )
    answer = allocate(snapshot_of(found), _claims(found), "node-1", limits=Limits(steps=100_000))
    assert answer is None or len(answer[0].devices.results) == 8
