"""The pruning rules: they skip much, they change nothing, and a mistake in any of them is noticed."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

from allocator_broken import BROKEN
from allocator_models import (
    PROFILES,
    Alternative,
    Constraint,
    Device,
    Instance,
    TooLongError,
    instance,
    model_of,
    planted,
    slow_search,
)
from draht.allocator.prune.rules import DEFAULT, Rules
from draht.allocator.prune.search import Outcome, search

CASES = 360
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "50000"))
NOTHING = Rules(classes=None, blocks=None, key=None, exact=False, infeasible=None)


def _answer(outcome: Outcome) -> tuple[str, object]:
    if outcome.error is not None:
        return ("error", None)
    if outcome.found is None:
        return ("none", None)
    return ("found", tuple(zip(outcome.found.alternatives, outcome.found.positions, strict=True)))


def _agree(start: int, count: int, steps: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    for seed in range(start, start + count):
        case = instance(seed)
        try:
            expected = slow_search(case, steps)
        except TooLongError:
            outcomes["too long"] += 1
            continue
        outcomes[expected[0]] += 1
        model, root = model_of(case)
        found = _answer(search(model, root))
        assert found == expected, f"reproduce: allocator_models.instance({seed}): {found}, expected {expected}"
    return outcomes


def test_the_first_solution_is_that_of_a_search_without_rules() -> None:
    """On random problems with every feature, pruning changes neither the solution nor whether there is an error."""
    outcomes = _agree(0, CASES, 3000)
    assert min(outcomes["found"], outcomes["none"], outcomes["error"]) > CASES // 30, outcomes


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_the_first_solution_is_that_of_a_search_without_rules_at_length() -> None:
    """As above, for many fresh problems."""
    _agree(100_000, FUZZ_CASES, 20_000)


@pytest.mark.parametrize("off", ["classes", "blocks", "key", "infeasible", "exact"])
def test_each_rule_is_right_without_the_others(off: str) -> None:
    """No rule needs another one to be right, and none is missed where it is switched off."""
    alone = replace(NOTHING, **{off: getattr(DEFAULT, off)})
    for seed in range(60):
        case = instance(seed)
        model, root = model_of(case)
        try:
            expected = slow_search(case, 1000)
        except TooLongError:
            continue
        assert _answer(search(model, root, alone)) == expected, f"reproduce: instance({seed}) with {off} alone"


CAUGHT: dict[str, tuple[str, int | str]] = {
    "rule 1: classes ignore values of constraints": ("values", 66),
    "rule 1: classes ignore needs": ("mixed", 26),
    "rule 1: classes ignore errors": ("errors", 1901),
    "rule 1: classes ignore candidates": ("mixed", 69),
    "rule 1: classes ignore sharing": ("shares", 3428),
    "rule 1: classes ignore compatibility groups": ("groups", 37),
    "rule 1: any status of use": ("admin", 4058),
    "rule 1b: same kind is enough": ("blocks", 28),
    "rule 1b: amounts are not compared": ("blocks", 83),
    "rule 1b: numbers of free devices are not compared": ("blocks", 177),
    "rule 2: devices taken are not in the key": ("mixed", 9),
    "rule 2: the alternative is not in the key": ("mixed", 7),
    "rule 2: free devices are not in the key": ("mixed", 9),
    "rule 2: amounts are not in the key": ("shares", 17),
    "rule 2: allowed values are not in the key": ("blocks", 83),
    "rule 2: shares are not in the key": ("planted", "paid shares"),
    "rule 2: shares that the request has are not in the key": ("admin", 389),
    "rule 2: common list elements are not in the key": ("planted", "common elements"),
    "rule 2: compatibility groups are not in the key": ("groups", 253),
    "rule 2: admin marks are not in the key": ("admin", 2010),
    "rule 3: shared devices count once": ("mixed", 7),
    "rule 3: admin access needs free devices": ("admin", 43),
    "rule 3: only the first alternative counts": ("mixed", 7),
    "rule 3: no error gate": ("errors", 3),
}
"""For each mistake a profile, and the number of its first case there that shows it (or a case made for it)."""


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_rule_is_noticed(mistake: str) -> None:
    """Each way to get a rule wrong gives a wrong answer within the first few thousand cases of some profile."""
    profile, which = CAUGHT[mistake]
    case = planted(str(which)) if profile == "planted" else instance(int(which), profile)
    expected = slow_search(case, 100_000)
    model, root = model_of(case)
    assert _answer(search(model, root)) == expected
    model, root = model_of(case)
    assert _answer(search(model, root, BROKEN[mistake])) != expected


def test_mistakes_are_in_every_rule() -> None:
    """There are mistakes for each rule, and profiles that are known."""
    assert {name.partition(":")[0] for name in BROKEN} == {"rule 1", "rule 1b", "rule 2", "rule 3"}
    assert {profile for profile, _ in CAUGHT.values()} <= {*PROFILES, "planted"}


def _equal_devices(count: int, requests: list[int], *, last: set[int]) -> Instance:
    """Equal devices for requests of these numbers, then a request for one of a few devices."""
    everyone = set(range(count))
    claim = [[Alternative(number, everyone)] for number in requests]
    claim.append([Alternative(1, last)])
    return Instance([Device({}) for _ in everyone], [claim], [[]], {}, used=set(last))


def _partitioned(blocks: int) -> Instance:
    """GPUs with four quarters each; halves are asked for until they don't fit beside quarters."""
    devices = []
    for block in range(blocks):
        sizes = [2, 2, 1, 1, 1, 1]
        devices += [Device({"near": (block,)}, {f"memory{block}": size}, block=block) for size in sizes]
    small = {p for p, device in enumerate(devices) if 1 in device.needs.values()}
    large = set(range(len(devices))) - small
    claim = [[Alternative(2, small)], [Alternative(2 * blocks, large)]]
    return Instance(devices, [claim], [[]], {f"memory{block}": 4 for block in range(blocks)})


def _visited(case: Instance, rules: Rules) -> int:
    model, root = model_of(case)
    return search(model, root, rules).visited


def test_equal_devices_are_tried_once() -> None:
    """Rule 1: nine equal devices for three requests make one path instead of hundreds."""
    case = _equal_devices(9, [2, 2], last={8})
    alone = replace(NOTHING, classes=DEFAULT.classes)
    assert _visited(case, alone) < 12
    assert _visited(case, NOTHING) > 400


def test_equal_blocks_are_tried_once() -> None:
    """Rule 1b: partitions of one GPU stand for those of the others."""
    case = _partitioned(3)
    both = replace(NOTHING, classes=DEFAULT.classes, blocks=DEFAULT.blocks)
    one = replace(NOTHING, classes=DEFAULT.classes)
    assert _visited(case, both) * 2 < _visited(case, one)


def test_failed_nodes_are_remembered_up_to_renaming() -> None:
    """Rule 2: what failed on one set of GPUs isn't tried on another that looks the same."""
    case = _partitioned(3)
    alone = replace(NOTHING, key=DEFAULT.key)
    assert _visited(case, alone) * 4 < _visited(case, NOTHING)


def test_failed_nodes_are_remembered() -> None:
    """Rule 0: the very same state isn't searched twice, whichever order led to it."""
    case = _equal_devices(7, [1, 1, 1], last={6})
    assert _visited(case, replace(NOTHING, exact=True)) < _visited(case, NOTHING)


def test_counting_ends_what_cannot_fit() -> None:
    """Rule 3: a match constraint whose values are all too rare fails at the first node."""
    devices = [Device({"near": (position // 3,)}) for position in range(9)]
    claim = [[Alternative(2, set(range(9)))], [Alternative(2, set(range(9)))]]
    case = Instance(devices, [claim], [[Constraint("near", False, {0, 1})]], {})
    assert _visited(case, replace(NOTHING, infeasible=DEFAULT.infeasible)) == 1
    assert _visited(case, NOTHING) > 20


def test_counting_is_off_where_an_error_may_be_met() -> None:
    """An error at a free position is found although counting knows that there is no solution."""
    claim = [[Alternative(1, {0, 1})], [Alternative(3, {0, 1}, errors={2})]]
    case = Instance([Device({}) for _ in range(3)], [claim], [[]], {})
    assert slow_search(case)[0] == "error"
    model, root = model_of(case)
    assert search(model, root).error == (1, 0, 2)


def test_depth_is_limited_by_memory_alone() -> None:
    """Fifteen hundred requests are no deeper for the interpreter than two."""
    claim = [[Alternative(1, {position})] for position in range(1500)]
    case = Instance([Device({}) for _ in range(1500)], [claim], [[]], {})
    model, root = model_of(case)
    found = search(model, root, replace(NOTHING)).found
    assert found is not None
    assert len(found.positions) == 1500
