"""Device selectors against upstream's compiler: verdict, estimated cost, value or error, actual cost.

Expressions and devices are generated; a difference is shrunk before it is shown. What differences there were is in
``tests/data/cel/regressions.yaml``.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import cel_generator
from cel_difference import SETTINGS, Setting, ask, differences
from cel_shrink import shrunk, shrunk_text
from oracle_client import Oracle

SEED = os.environ.get("DRAHT_FUZZ_SEED", "1")
CASES = 3_000
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "100000"))
BATCH = 250
DEVICES = 2
MOST_SHOWN = 10
REGRESSIONS = yaml.safe_load((Path(__file__).parents[1] / "data/cel/regressions.yaml").read_text(encoding="utf-8"))


def _show(oracle: Oracle, setting: Setting, case: cel_generator.Case, devices: list[dict[str, Any]]) -> str:
    def differs(text: str) -> bool:
        verdict = ask(oracle, setting, [text], devices, derived=case.derived)[0]
        return bool(differences(oracle, setting, text, devices, verdict, derived=case.derived))

    small = shrunk(case.tree, differs) if case.tree else shrunk_text(case.expression, differs)
    verdict = ask(oracle, setting, [small], devices, derived=case.derived)[0]
    found = differences(oracle, setting, small, devices, verdict, derived=case.derived)
    return f"{small}\n    {'; '.join(map(str, found))}"


def _agree(oracle: Oracle, seed: str, count: int) -> None:
    shown: list[str] = []
    kinds: Counter[str] = Counter()
    for batch in range(count // BATCH):
        rng = random.Random(f"{seed}:{batch}")
        setting = rng.choice(SETTINGS)
        devices = [cel_generator.device(rng) for _ in range(DEVICES)]
        cases = [cel_generator.case(rng) for _ in range(BATCH)]
        for derived in (False, True):
            asked = [case for case in cases if case.derived == derived]
            verdicts = ask(oracle, setting, [case.expression for case in asked], devices, derived=derived)
            for case, verdict in zip(asked, verdicts, strict=True):
                kinds["accepted" if verdict["accepted"] else "refused"] += 1
                for outcomes in verdict.get("outcomes", ()):
                    kinds["error" if "error" in outcomes[0] else "value"] += 1
                if differences(oracle, setting, case.expression, devices, verdict, derived=derived):
                    shown.append(
                        f"{_show(oracle, setting, case, devices)}\n    of {case.expression!r}"
                        f"\n    reproduce: DRAHT_FUZZ_SEED={seed}, batch {batch}, {setting}, derived={derived}"
                    )
                assert len(shown) < MOST_SHOWN, "\n" + "\n".join(shown)
    assert not shown, "\n" + "\n".join(shown)
    assert kinds["accepted"] > count * 0.6, f"the generator makes mostly good expressions: {kinds}"
    assert kinds["refused"] > count * 0.03, f"and some bad ones: {kinds}"
    assert kinds["value"] > kinds["error"] > count * 0.1, f"with values and errors: {kinds}"


@pytest.mark.timeout(600)
def test_generated_selectors_get_upstreams_verdict_value_and_costs(oracle: Oracle) -> None:
    """3,000 generated expressions are accepted, priced and evaluated on two devices each as upstream does it."""
    _agree(oracle, SEED, CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_generated_selectors_get_upstreams_verdict_value_and_costs(oracle: Oracle) -> None:
    """A long run over fresh expressions finds no difference."""
    _agree(oracle, f"{SEED}-long", FUZZ_CASES)


@pytest.mark.parametrize("case", REGRESSIONS, ids=lambda case: str(case["name"]))
def test_what_once_differed_agrees(oracle: Oracle, case: dict[str, Any]) -> None:
    """Every difference that was ever found, minimised, is gone in every setting."""
    devices = case.get("devices", [{"driver": "gpu.example.com"}])
    for setting in SETTINGS:
        for derived in (False, True):
            verdict = ask(oracle, setting, [case["expression"]], devices, derived=derived)[0]
            found = differences(oracle, setting, case["expression"], devices, verdict, derived=derived)
            assert not found, f"{case['expression']} in {setting}, derived={derived}: {'; '.join(map(str, found))}"
