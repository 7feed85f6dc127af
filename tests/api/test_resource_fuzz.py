"""The comparisons with upstream at length; `make fuzz` runs them."""

from __future__ import annotations

import pytest

from api import test_conversion as conversion
from api import test_resource_completeness as completeness
from api import test_yaml_scalars as scalars
from api.objects import cases
from draht.api.kinds import KINDS
from oracle_client import Oracle

pytestmark = pytest.mark.fuzz

TOTAL = cases(100_000)


@pytest.fixture
def share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind gets a hundredth of the cases: an object is some thousand times larger than a number."""
    monkeypatch.setenv("DRAHT_FUZZ_CASES", str(max(TOTAL // 100, 100)))


@pytest.mark.usefixtures("share")
@pytest.mark.parametrize("kind", sorted(KINDS), ids="-".join)
def test_mutated_objects_at_length(oracle: Oracle, kind: tuple[str, str]) -> None:
    """A thousand mutated objects of each kind have Go's verdict."""
    completeness.test_mutated_objects_have_the_verdict_of_go(oracle, kind)


@pytest.mark.usefixtures("share")
@pytest.mark.parametrize("kind", sorted(KINDS), ids="-".join)
def test_partial_objects_at_length(oracle: Oracle, kind: tuple[str, str]) -> None:
    """A thousand objects of each kind mean the same to Go after the lenient reader."""
    completeness.test_objects_with_some_fields_mean_the_same_to_go(oracle, kind)


@pytest.mark.usefixtures("share")
@pytest.mark.parametrize("kind", conversion.CONVERTED_BY_UPSTREAM, ids="-".join)
def test_conversions_at_length(oracle: Oracle, kind: tuple[str, str]) -> None:
    """A thousand objects of each kind and direction convert as upstream converts them."""
    conversion.test_old_to_v1_is_what_upstream_makes_of_it(oracle, kind)
    conversion.test_v1_to_old_is_what_upstream_makes_of_it(oracle, kind)


def test_scalars_and_times_at_length(oracle: Oracle) -> None:
    """A hundred thousand plain scalars and times have kubectl's meaning."""
    scalars.test_random_scalars_mean_the_same_to_kubectl(oracle)
    completeness.test_times_have_the_verdict_of_go(oracle)
