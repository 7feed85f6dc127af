"""Where draht deliberately says something else about a selector than upstream; nothing else may differ.

Each is shown with both answers, so that a change of either side is noticed.
"""

from __future__ import annotations

from typing import Any

import pytest

from cel_difference import SETTINGS, ask, differences
from oracle_client import Oracle

DEVICES: list[dict[str, Any]] = [{"driver": "gpu.example.com", "attributes": {"model": {"string": "a"}}}]

DEVIATIONS = {
    # Upstream reads the machine's data base of time zones; this package reads no files.
    "time zones by name": 'timestamp("2020-06-01T00:00:00Z").getHours("Europe/Berlin") == 2',
    # Such a time has no text and no date.
    "times after the year 9999": "google.protobuf.Timestamp{seconds: 253402300800} == timestamp(0)",
}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviation_is_an_error_where_upstream_answers(oracle: Oracle, name: str) -> None:
    """Upstream evaluates the expression; draht says what it can't do."""
    expression = DEVIATIONS[name]
    verdict = ask(oracle, SETTINGS[0], [expression], DEVICES, derived=False)[0]
    assert verdict["accepted"]
    assert "value" in verdict["outcomes"][0][0]
    (found,) = differences(oracle, SETTINGS[0], expression, DEVICES, verdict, derived=False)
    assert isinstance(found.ours, dict)
    assert found.ours["message"]


def test_what_makes_upstreams_compiler_panic_is_refused(oracle: Oracle) -> None:
    """An element behind a question mark that is no optional is an error, not the end of the program."""
    verdict = ask(oracle, SETTINGS[0], ["[?dyn(1)] == [1]"], DEVICES, derived=False)[0]
    assert verdict["panic"]
    assert not differences(oracle, SETTINGS[0], "[?dyn(1)] == [1]", DEVICES, verdict, derived=False)
