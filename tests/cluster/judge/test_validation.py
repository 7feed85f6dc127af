"""New objects, thousands of them: draht takes what kube-apiserver takes, and refuses the rest for the same fields."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

import pytest

from cluster.judge.server import Server
from cluster.judge.verdicts import difference
from validation_mutations import Case, doubles, goods, sample, singles, structural

pytestmark = pytest.mark.cluster

SEED = int(os.environ.get("DRAHT_JUDGE_SEED", "20261130"))
FACTOR = int(os.environ.get("DRAHT_JUDGE_FACTOR", "1"))
"""How many times as many objects are judged."""


def differences(server: Server, cases: Iterable[Case]) -> list[str]:
    """What draht and the server judge differently."""

    def judge(numbered: tuple[int, Case]) -> str | None:
        number, case = numbered
        found = difference(case.obj, server.create(case.obj), server.gates, for_people=number % 4 == 0)
        return None if found is None else f"{case}: {found}"

    return [found for found in server.each(judge, enumerate(cases)) if found is not None]


def test_with_unfinished_features_the_verdicts_are_the_servers(alpha_judge: Server) -> None:
    """Good objects, each with one field changed in every way, and with two fields changed."""
    rng = random.Random(SEED)
    cases: list[Case] = []
    for good in goods():
        cases.append(good.changed())
        cases += sample(rng, good, singles(good), 150 * FACTOR)
        cases += sample(rng, good, structural(good), 80 * FACTOR)
        cases += doubles(good, rng, 80 * FACTOR)
    assert differences(alpha_judge, cases) == []


def test_by_default_the_verdicts_are_the_servers(default_judge: Server) -> None:
    """The same where the server drops the fields of features that are off."""
    rng = random.Random(SEED + 1)
    cases: list[Case] = []
    for good in goods(lists=False):
        cases.append(good.changed())
        cases += sample(rng, good, singles(good), 80 * FACTOR)
        cases += sample(rng, good, structural(good), 40 * FACTOR)
        cases += doubles(good, rng, 60 * FACTOR)
    assert differences(default_judge, cases) == []


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1", "v1alpha3"])
def test_older_versions_are_judged_alike(alpha_judge: Server, version: str) -> None:
    """Objects written in an older version have the errors that the server finds in them."""
    rng = random.Random(f"{SEED} {version}")
    cases: list[Case] = []
    for good in goods(version):
        cases.append(good.changed())
        cases += sample(rng, good, singles(good), 40 * FACTOR)
        cases += sample(rng, good, structural(good), 20 * FACTOR)
        cases += doubles(good, rng, 30 * FACTOR)
    assert differences(alpha_judge, cases) == []
