"""Allocation scenarios: what each feature does, one small cluster at a time."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allocator_answers import Answer, ask, differ, features_of, ours, snapshot_of
from allocator_scenarios import case_of, expected_of, scenarios
from oracle_client import Oracle

ALL = dict(scenarios())


def _summary(answer: Answer) -> Any:
    if answer.kind != "fits":
        return answer.kind
    return [
        [f"{result.request} {result.pool}/{result.device}" for result in claim.devices.results]
        for claim in answer.results
    ]


def _matches(expected: Any, actual: Any) -> bool:
    """Whether what is written is part of what came out."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(_matches(value, actual.get(key)) for key, value in expected.items())
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(_matches(*pair) for pair in zip(expected, actual, strict=True))
        )
    return bool(expected == actual)


@pytest.mark.parametrize("name", ALL)
def test_a_scenario_ends_as_written(name: str) -> None:
    """The devices, the details that are written, or the kind of error."""
    scenario = ALL[name]
    case = case_of(scenario)
    before = msgspec.json.encode(case)
    answer = ours(case, case["on"][0])
    assert _summary(answer) == expected_of(scenario), answer.detail
    if "details" in scenario:
        actual = msgspec.json.decode(msgspec.json.encode(answer.results))
        assert _matches(scenario["details"], actual), actual
    assert msgspec.json.encode(case) == before


@pytest.mark.parametrize("name", ALL)
def test_upstream_ends_a_scenario_in_the_same_way(name: str, oracle: Oracle) -> None:
    """Upstream's allocator says the same, so the scenarios are facts and not opinions."""
    case = case_of(ALL[name])
    ((their,),) = ask(oracle, [case], deadline_ms=5000)
    if their.kind == "panic":
        assert ALL[name].get("upstream") == "panic"
        return
    assert their.decided
    assert differ(ours(case, case["on"][0]), their) is None


def test_the_features_of_a_scenario_are_those_of_its_release() -> None:
    """A scenario for a release runs with that release's gates."""
    assert features_of(case_of({"kubernetes": "1.34"})).prioritized_list
    assert not features_of(case_of({"kubernetes": "1.34"})).device_taints
    assert snapshot_of(case_of({"kubernetes": "1.34"})).features.admin_access
