"""Allocations against upstream's own allocator, on random questions about every feature.

Upstream is ``k8s.io/dynamic-resource-allocation/structured`` with its incubating and experimental variants; the stable
one takes pools in random order. Both sides have a budget for each case; where one of them runs out, there is nothing to
compare, and the test says if that happens too often.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from allocator_answers import MODES, Answer, Case, ask, differ, ours, snapshot_of
from allocator_generator import case, profile_of
from allocator_shrink import difference, from_yaml
from oracle_client import Oracle

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "11"))
CASES = 1_500
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "50000"))
BATCH = 100
MAX_UNDECIDED = 0.06
"""Largest part of the cases in which upstream or draht may run out of budget; on an idle machine it is 0.01."""

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.yaml"))


def _asked(oracle: Oracle, seed: int, count: int) -> Iterator[tuple[int, Case, list[Answer]]]:
    """Cases with upstream's answers by node, which are fetched while the ones before are looked at."""

    def batch(start: int) -> list[tuple[int, Case, list[Answer]]]:
        indexes = range(start, min(start + BATCH, count))
        cases = [case(seed, index) for index in indexes]
        return list(zip(indexes, cases, ask(oracle, cases), strict=True))

    with ThreadPoolExecutor(1) as ahead:
        following = ahead.submit(batch, 0)
        for start in range(0, count, BATCH):
            ready = following.result()
            if start + BATCH < count:
                following = ahead.submit(batch, start + BATCH)
            yield from ready


def _agree(oracle: Oracle, seed: int, count: int, *, every: bool) -> None:
    """Ask in the default mode and in one of the others by turns, or in all of them."""
    others = [mode for mode in MODES if mode != "default"]
    outcomes: Counter[str] = Counter()
    undecided: Counter[str] = Counter()
    for index, each, answers in _asked(oracle, seed, count):
        snapshot = snapshot_of(each)
        modes = others if every else [others[index % len(others)]]
        for node, their in zip(each["on"], answers, strict=True):
            outcomes[their.kind] += 1
            undecided["upstream"] += not their.decided
            for mode in ("default", *modes) if their.decided else ():
                mine = ours(each, node, mode, snapshot)
                undecided[mode] += not mine.decided
                found = differ(mine, their)
                assert not found, (
                    f"reproduce: python tests/allocator_shrink.py {seed} {index} {mode}  # {profile_of(index)}: {found}"
                )
    assert max(undecided.values(), default=0) <= count * MAX_UNDECIDED, f"no answer in time: {undecided}"
    assert count / 4 < outcomes["fits"] < count / 4 * 3, f"the generator makes both good and bad questions: {outcomes}"


@pytest.mark.timeout(300)
def test_allocations_are_those_of_upstream(oracle: Oracle) -> None:
    """1,500 random questions get upstream's outcome, devices, amounts, configuration and node selector."""
    _agree(oracle, SEED, CASES, every=False)


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_allocations_are_those_of_upstream(oracle: Oracle) -> None:
    """A long run over fresh questions finds no difference."""
    _agree(oracle, SEED + 1, FUZZ_CASES, every=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("file", REGRESSIONS, ids=[file.stem for file in REGRESSIONS])
def test_what_once_differed_stays_equal(oracle: Oracle, file: Path, mode: str) -> None:
    """A case on which draht once differed from upstream has upstream's answer."""
    assert difference(oracle, from_yaml(file.read_text()), mode) is None
