"""Pods that come one after the other: what the first ones got is visible to the next ones, as it is to upstream.

Upstream is asked anew at each step, with everything that is held then; draht goes on with one session, which follows
changes instead of starting over.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from allocator_answers import LIMITS, Answer, Case, Claims, ask, comparable, differ, snapshot_of
from allocator_generator import sequence
from draht.allocator import AllocatorError, BudgetError, Session
from draht.api.resource import AllocationResult, ResourceClaim
from oracle_client import Oracle

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "11"))
SEQUENCES = 60
FUZZ_SEQUENCES = int(os.environ.get("DRAHT_FUZZ_CASES", "50000")) // 25
STEPS = 6
BATCH = 30
MAX_UNDECIDED = 0.06
"""Largest part of the steps in which upstream or draht may run out of budget."""


class _Run:
    """One sequence: the cluster as plain data for upstream, and draht's session."""

    def __init__(self, seed: int, index: int) -> None:
        self.case, self.pods = sequence(seed, index, STEPS)
        self.rng = random.Random(f"{seed}:{index}:releases")
        self.session = Session(snapshot_of(self.case), limits=LIMITS)
        self.placed: list[tuple[Claims, tuple[AllocationResult, ...], list[Any]]] = []

    def question(self, step: int) -> Case:
        """What upstream is asked in a step."""
        held = [claim for _, _, claims in self.placed for claim in claims]
        return self.case | {"claims": self.pods[step], "allocatedClaims": self.case["allocatedClaims"] + held}

    def advance(self, step: int, answers: list[Answer]) -> tuple[str, str | None]:
        """Take the step; upstream's outcome, and what differs."""
        if not all(answer.decided for answer in answers):
            return "undecided", None
        claims = msgspec.convert(self.pods[step], tuple[ResourceClaim, ...])
        if any(isinstance(error, BudgetError) for error in self.session.find(claims).errors.values()):
            # A problem that must not be pruned may take more steps than allowed here; upstream's bound is time.
            return "undecided", None
        expected = next((number for number, answer in enumerate(answers) if answer.kind == "fits"), None)
        failing = sorted({answer.kind for answer in answers} - {"fits", "none"})
        try:
            placement = self.session.allocate_first(claims)
        except AllocatorError as error:
            kind = str(getattr(error, "kind", ""))
            wrong = expected is not None or kind not in failing
            return "error", f"draht: {kind} {error}, upstream: {[each.kind for each in answers]}" if wrong else None
        if placement is None or expected is None:
            wrong = placement is not None or expected is not None or bool(failing)
            return "none", f"draht: {placement}, upstream: {[each.kind for each in answers]}" if wrong else None
        node = self.case["on"][expected]
        if placement.node != node:
            return "fits", f"draht takes {placement.node}, upstream {node}"
        found = differ(Answer("fits", comparable(placement.results)), answers[expected])
        held = [
            claim | {"status": {"allocation": msgspec.to_builtins(result)}}
            for claim, result in zip(self.pods[step], placement.results, strict=True)
        ]
        self.placed.append((claims, placement.results, held))
        if self.rng.random() < 0.25:
            gone, results, _ = self.placed.pop(self.rng.randrange(len(self.placed)))
            self.session.release(gone, results)
        return "fits", found


def _agree(oracle: Oracle, seed: int, count: int) -> None:
    outcomes: Counter[str] = Counter()
    for start in range(0, count, BATCH):
        indexes = range(start, min(start + BATCH, count))
        runs = [_Run(seed, index) for index in indexes]
        for step in range(STEPS):
            answers = ask(oracle, [run.question(step) for run in runs])
            for index, run, each in zip(indexes, runs, answers, strict=True):
                outcome, found = run.advance(step, each)
                outcomes[outcome] += 1
                assert not found, f"reproduce: sequence({seed}, {index}, {STEPS}), step {step}: {found}"
    assert outcomes["undecided"] <= sum(outcomes.values()) * MAX_UNDECIDED, f"no answer in time: {outcomes}"
    assert outcomes["fits"] > sum(outcomes.values()) / 4, f"the generator makes sequences that go on: {outcomes}"


@pytest.mark.timeout(300)
def test_a_session_decides_as_upstream_would_at_each_step(oracle: Oracle) -> None:
    """60 sequences of 6 pods, some of which end again, get upstream's first node and devices at each step."""
    _agree(oracle, SEED, SEQUENCES)


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_sessions_decide_as_upstream_would(oracle: Oracle) -> None:
    """A long run over fresh sequences finds no difference."""
    _agree(oracle, SEED + 1, FUZZ_SEQUENCES)
