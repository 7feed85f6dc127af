"""Answers about whole clusters: equal to asking each node, before and after whatever happens."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import count as counting

import msgspec
import pytest

from allocator_answers import features_of, snapshot_of
from allocator_fleets import claims_of, cluster, slice_of
from allocator_generator import case
from draht.allocator import AllocatorError, BudgetError, Limits, Session, Snapshot, allocate, find, outcome
from draht.allocator.errors import Failure
from draht.allocator.problem import Problem, State
from draht.allocator.prune import decide as prune_decide
from draht.allocator.search import Solution
from draht.api.resource import AllocationResult, ResourceClaim, ResourceSlice

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "21"))
CASES = 60
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "50000")) // 25


def _alone(snapshot: Snapshot, claims: Sequence[ResourceClaim], node: str) -> tuple[AllocationResult, ...] | str | None:
    """What a single question about a node is answered, by a snapshot that knows nothing yet."""
    fresh = Snapshot.of(
        slices=snapshot.slices.values(),
        classes=snapshot.classes.values(),
        claims=snapshot.claims.values(),
        nodes=snapshot.nodes.values(),
        taint_rules=snapshot.rules.values(),
        features=snapshot.features,
    )
    try:
        return allocate(fresh, claims, node)
    except AllocatorError as error:
        return str(error)


def _together(snapshot: Snapshot, claims: Sequence[ResourceClaim]) -> list[tuple[AllocationResult, ...] | str | None]:
    """What the answer about all nodes says about each."""
    fit = find(snapshot, claims)
    errors = fit.errors
    found: list[tuple[AllocationResult, ...] | str | None] = []
    for index, name in enumerate(fit.nodes):
        if name in errors:
            found.append(str(errors[name]))
            assert not fit.bits >> index & 1
        else:
            results = fit.results(index)
            assert (results is not None) == bool(fit.bits >> index & 1)
            found.append(results)
    assert [fit.nodes[index] for index in fit.indexes()] == fit.names()
    assert len(fit) == fit.bits.bit_count() == len(fit.names())
    assert fit.first_results() == next((each for each in found if isinstance(each, tuple)), None)
    return found


def _expect_equal(snapshot: Snapshot, claims: Sequence[ResourceClaim], what: str) -> None:
    alone = [_alone(snapshot, claims, name) for name in snapshot.nodes]
    assert _together(snapshot, claims) == alone, what


def test_all_nodes_are_answered_as_each_alone() -> None:
    """Random questions of every kind get for each node what a question about that node gets."""
    _agree(SEED, CASES)


@pytest.mark.fuzz
def test_all_nodes_are_answered_as_each_alone_at_length() -> None:
    """The same, many times."""
    _agree(SEED + 1, FUZZ_CASES)


def _agree(seed: int, count: int) -> None:
    for index in range(count):
        one = case(seed, index)
        claims = msgspec.convert(one["claims"], tuple[ResourceClaim, ...])
        assert features_of(one) is not None
        _expect_equal(snapshot_of(one), claims, f"reproduce: allocator_generator.case({seed}, {index})")


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_snapshot_answers_as_a_new_one(seed: int) -> None:
    """After slices and claims come and go, a snapshot says of every node what one built from scratch says."""
    chance = random.Random(seed)
    snapshot = cluster(seed)
    numbers = counting()
    for _ in range(14):
        before = find(snapshot, claims_of(random.Random(0), 0))
        bits = before.bits
        happening = chance.randrange(4)
        if happening == 0:
            changed = snapshot.with_slice(slice_of(chance, chance.randrange(12)))
        elif happening == 1 and snapshot.claims:
            changed = snapshot.without_claim(*chance.choice(list(snapshot.claims)))
        else:
            claims = claims_of(chance, next(numbers))
            fit = find(snapshot, claims)
            node = chance.choice(list(fit.indexes()) or [None])
            changed = snapshot
            if node is not None:
                results = fit.results(node)
                assert results is not None
                for claim, allocation in zip(claims, results, strict=True):
                    status = msgspec.structs.replace(claim.status, allocation=allocation)
                    changed = changed.with_claim(msgspec.structs.replace(claim, status=status))
        assert before.bits == bits == find(snapshot, claims_of(random.Random(0), 0)).bits
        snapshot = changed
        _expect_equal(snapshot, claims_of(chance, 999), f"reproduce: seed {seed}")


@pytest.mark.parametrize("seed", range(4))
def test_a_session_is_a_snapshot_at_every_moment(seed: int) -> None:
    """After random allocations and releases, a session finds what a snapshot of its state finds, and both agree."""
    chance = random.Random(seed)
    base = cluster(seed)
    untouched = find(base, claims_of(random.Random(1), 0)).bits
    session = Session(base)
    held: list[tuple[Sequence[ResourceClaim], Sequence[AllocationResult]]] = []
    for number in range(40):
        if held and chance.random() < 0.4:
            session.release(*held.pop(chance.randrange(len(held))))
            continue
        claims = claims_of(chance, number)
        expected = find(session.snapshot(), claims)
        if expected.first is None and expected.errors:
            with pytest.raises(AllocatorError):
                session.allocate_first(claims)
            continue
        placement = session.allocate_first(claims)
        if placement is None:
            assert expected.first is None
            continue
        assert expected.first is not None
        assert placement.node == expected.nodes[expected.first]
        assert placement.results == expected.first_results()
        held.append((claims, placement.results))
        if number % 8 == 0:
            asked = claims_of(chance, 999)
            state = session.snapshot()
            assert session.find(asked).bits == find(state, asked).bits
            _expect_equal(state, asked, f"reproduce: seed {seed}")
    assert find(base, claims_of(random.Random(1), 0)).bits == untouched


def test_a_fit_of_a_session_stays_as_it_was() -> None:
    """What a session answered isn't changed by what happens afterwards."""
    session = Session(cluster(3))
    claims = claims_of(random.Random(3), 0)
    before = session.find(claims)
    bits, results = before.bits, before.first_results()
    while session.allocate_first(claims) is not None:
        pass
    assert session.find(claims).bits != bits
    assert (before.bits, before.first_results()) == (bits, results)


def test_a_session_allocates_on_a_given_node_or_not_at_all() -> None:
    """Claims go where they are asked to go; where they don't fit nothing changes, and unknown nodes are an error."""
    session = Session(cluster(5))
    claims = claims_of(random.Random(3), 0)
    node = session.find(claims).names()[-1]
    while (results := session.allocate(claims, node)) is not None:
        assert results[0].devices.results
    assert node not in session.find(claims).names()
    assert session.find(claims).names()
    with pytest.raises(AllocatorError, match="not known"):
        session.allocate(claims, "elsewhere")


def test_a_limit_is_an_error_of_the_node_and_not_remembered() -> None:
    """Where time runs out the node is among the errors, at once; with more time the same question is answered."""
    snapshot = cluster(2)
    claims = claims_of(random.Random(3), 0)
    limited = find(snapshot, claims, limits=Limits(deadline=lambda: True))
    assert limited.first is None
    assert all(isinstance(error, BudgetError) for error in limited.errors.values())
    assert len(limited.errors) == len(snapshot.nodes)
    with pytest.raises(BudgetError):
        limited.results(0)
    with pytest.raises(BudgetError):
        Session(snapshot, limits=Limits(deadline=lambda: True)).allocate_first(claims)
    assert find(snapshot, claims).first is not None


def test_equal_nodes_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred nodes of one kind cost one search."""
    slices = [slice_of(random.Random(7), node) for node in range(200)]
    snapshot = Snapshot.of(slices=slices, classes=cluster(0).classes.values())
    searched: list[Problem] = []
    decide = prune_decide.decide

    def counted(problem: Problem, state: State, limits: Limits) -> Solution | Failure | None:
        searched.append(problem)
        return decide(problem, state, limits)

    monkeypatch.setattr(outcome, "decide", counted)
    claims = (*claims_of(random.Random(3), 0), *claims_of(random.Random(3), 1))
    assert len(find(snapshot, claims)) == 200
    assert len(searched) == 1
    find(snapshot, claims)
    assert len(searched) == 1


@pytest.mark.parametrize("size", [4, 8])
def test_attributes_that_are_unique_make_no_difference(size: int) -> None:
    """Expressions about UUIDs, evaluated for all devices in one go, find what they find node by node."""
    slices = []
    for node in range(300):
        devices = [
            {
                "name": f"g{index}",
                # One device has another type, which some expressions can't judge.
                "attributes": {
                    "uuid": {"int": 3} if node == 9 and index == 2 else {"string": f"{node}-{index}"},
                    "odd": {"int": index % 2},
                },
            }
            for index in range(size)
        ]
        pool = {"name": f"n{node}", "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": f"n{node}", "pool": pool, "devices": devices}
        slices.append({"metadata": {"name": f"n{node}"}, "spec": spec})
    pieces = msgspec.convert(slices, tuple[ResourceSlice, ...])
    classes = cluster(0).classes.values()
    lazy = Snapshot.of(slices=pieces, classes=classes)
    ready = Snapshot.of(slices=pieces, classes=classes).prepare()
    here = 'device.attributes["gpu.example.com"]'
    failing = set()
    for text in (
        f'{here}.uuid.endsWith("7-2")',
        f'has({here}.uuid) && type({here}.uuid) == string && {here}.uuid.contains("11")',
        f'{here}.exists(name, name == "odd") && {here}.odd == 0',
        f'{here}.odd == 1 && {here}.uuid.startsWith("2")',
    ):
        exactly = {
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": 1,
            "selectors": [{"cel": {"expression": text}}],
        }
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
        claims = msgspec.convert([claim], tuple[ResourceClaim, ...])
        one, other = find(lazy, claims), find(ready, claims)
        assert one.bits == other.bits, text
        failing |= set(one.errors)
        assert {name: str(error) for name, error in one.errors.items()} == {
            name: str(error) for name, error in other.errors.items()
        }
        for index in list(one.indexes())[:5]:
            assert one.results(index) == other.results(index)
        moved = ready.with_slice(
            msgspec.structs.replace(pieces[5], spec=msgspec.structs.replace(pieces[5].spec, devices=()))
        )
        assert find(moved, claims).bits == find(ready, claims).bits & ~(1 << 5)
    assert failing == {"n9"}
