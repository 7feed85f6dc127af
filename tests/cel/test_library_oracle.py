"""Every function of Kubernetes' CEL libraries against upstream: verdict, both ends of the estimate, value, actual cost.

All expressions are synthetic. A failure prints the expression, which holds its whole case.
"""

from __future__ import annotations

import os
import random

import pytest

from cel_base import ask, differences
from cel_library_cases import make
from cel_library_templates import TEMPLATES
from oracle_client import Oracle

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "53"))
CASES = 200
"""Expressions of each library in the normal run."""
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "100000"))
BATCH = 2_000


def _compare(oracle: Oracle, expressions: list[str]) -> None:
    found = []
    for start in range(0, len(expressions), BATCH):
        batch = expressions[start : start + BATCH]
        for expression, theirs in zip(batch, ask(oracle, batch), strict=True):
            found += [f"{expression}\n    {line}" for line in differences(expression, theirs)]
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:20])


@pytest.mark.parametrize("library", TEMPLATES)
def test_a_library_says_what_upstream_says(oracle: Oracle, library: str) -> None:
    """Calls with generated arguments have upstream's verdict, price and value."""
    rng = random.Random(f"{SEED}:{library}")
    templates = TEMPLATES[library]
    _compare(oracle, [make(rng, templates[number % len(templates)]) for number in range(CASES)])


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("library", TEMPLATES)
def test_a_library_says_what_upstream_says_at_length(oracle: Oracle, library: str) -> None:
    """The same for as many calls as `make fuzz` has time for."""
    rng = random.Random(f"long:{SEED}:{library}")
    _compare(oracle, [make(rng, rng.choice(TEMPLATES[library])) for _ in range(FUZZ_CASES // len(TEMPLATES))])
