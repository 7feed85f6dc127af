"""Expressions made without regard for types are refused as upstream refuses them, or get its type and its price."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from cel_untyped import Maker
from draht.cel.checker import check
from draht.cel.cost import estimate
from draht.cel.device import Features, device_environment, input_size
from draht.cel.errors import CompileError
from draht.cel.folding import fold
from draht.cel.parser import parse
from draht.cel.source import Source
from draht.cel.validators import validate
from oracle_client import Oracle

SEED = os.environ.get("DRAHT_FUZZ_SEED", "1")
CASES = 4_000
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "100000"))
BATCH = 500
MOST_SHOWN = 10
UNSUITABLE = "must evaluate to"
"""How upstream says that the type is right but not for an attribute; whether it is typed and priced, it doesn't say."""


def _verdict(text: str, features: Features) -> list[Any] | str:
    environment = device_environment(features)
    source = Source(text)
    try:
        checked = check(parse(text, environment.macros), environment, source)
        validate(checked, environment, source)
        fold(checked, source)
    except CompileError as refused:
        return str(refused)
    return [str(checked.output), estimate(checked, input_size(features)).most]


def _agree(oracle: Oracle, seed: str, count: int) -> None:
    shown: list[str] = []
    accepted = 0
    for batch in range(count // BATCH):
        rng = random.Random(f"{seed}:{batch}")
        lists, consumable = rng.random() < 0.5, rng.random() < 0.5
        features = Features(list_attributes=lists, consumable_capacity=consumable, stored=False)
        maker = Maker(rng, device_environment(features))
        texts = [maker.expression(rng.randrange(1, 4)) for _ in range(BATCH)]
        answers = oracle.call(
            "cel.compile",
            deadline=300,
            features={"listAttributes": lists, "consumableCapacity": consumable},
            environment="new",
            derived=True,
            expressions=texts,
        )
        for text, answer in zip(texts, answers, strict=True):
            if answer.get("panic") or UNSUITABLE in answer.get("error", ""):
                continue
            ours = _verdict(text, features)
            theirs = [answer["type"], answer["cost"]] if answer["accepted"] else answer["error"]
            accepted += answer["accepted"]
            if ours != theirs and not (isinstance(ours, str) and isinstance(theirs, str)):
                shown.append(
                    f"{text}\n    draht {ours}\n    upstream {theirs}\n    DRAHT_FUZZ_SEED={seed}, batch {batch}"
                )
            assert len(shown) < MOST_SHOWN, "\n" + "\n".join(shown)
    assert not shown, "\n" + "\n".join(shown)
    assert accepted > count * 0.05


def test_expressions_without_regard_for_types_get_upstreams_verdict(oracle: Oracle) -> None:
    """4,000 of them are refused or accepted as upstream does, and have its type and its price."""
    _agree(oracle, SEED, CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_expressions_without_regard_for_types_get_upstreams_verdict(oracle: Oracle) -> None:
    """A long run over fresh expressions finds no difference."""
    _agree(oracle, f"{SEED}-long", FUZZ_CASES)
