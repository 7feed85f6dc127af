"""What type an expression has, what it can cost, and what is refused: a table of upstream's verdicts.

The table is data (``tests/data/cel/verdicts.yaml``, which names its source); each line shows one rule of the checker,
the validators, the folding of constants or the estimator. One test compares with it, another compares it with upstream.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from draht.cel.checker import check
from draht.cel.cost import estimate
from draht.cel.device import Features, device_environment, input_size
from draht.cel.errors import CompileError
from draht.cel.folding import fold
from draht.cel.parser import parse
from draht.cel.source import Source
from draht.cel.validators import validate
from oracle_client import Oracle

TABLE: list[list[Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data/cel/verdicts.yaml").read_text(encoding="utf-8")
)


def _expected(row: list[Any], *, lists: bool) -> list[Any] | None:
    verdict: list[Any] | None = row[1] if lists or len(row) == 2 else row[2]
    return verdict


def _verdict(text: str, features: Features) -> list[Any]:
    environment = device_environment(features)
    source = Source(text)
    checked = check(parse(text, environment.macros), environment, source)
    validate(checked, environment, source)
    fold(checked, source)
    return [str(checked.output), estimate(checked, input_size(features)).most]


@pytest.mark.parametrize("lists", [True, False], ids=["lists", "scalars"])
@pytest.mark.parametrize("row", TABLE, ids=[row[0][:80] for row in TABLE])
def test_an_expression_gets_the_verdict_of_the_table(row: list[Any], *, lists: bool) -> None:
    """Its type and the most that it can cost are the table's, or it is refused as there."""
    features = Features(list_attributes=lists, consumable_capacity=True, stored=False)
    expected = _expected(row, lists=lists)
    if expected is None:
        with pytest.raises(CompileError):
            _verdict(row[0], features)
    else:
        assert _verdict(row[0], features) == expected


@pytest.mark.parametrize("lists", [True, False], ids=["lists", "scalars"])
def test_the_table_is_what_upstream_says(oracle: Oracle, *, lists: bool) -> None:
    """Upstream's compiler gives the same type and cost for every line, or refuses it."""
    answers = oracle.call(
        "cel.compile",
        deadline=300,
        features={"listAttributes": lists, "consumableCapacity": True},
        environment="new",
        derived=True,
        expressions=[row[0] for row in TABLE],
    )
    wrong = []
    for row, answer in zip(TABLE, answers, strict=True):
        theirs = [answer["type"], answer["cost"]] if answer["accepted"] else None
        if theirs != _expected(row, lists=lists):
            wrong.append(f"{row[0]}: {theirs}")
    assert not wrong, "\n".join(wrong)
