"""The selectors whose estimated cost and outcome upstream pins in its own table, in every setting it runs them in.

The table is data (``tests/data/cel/pinned.yaml``, which names its source); no oracle is needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cel_difference import SETTINGS, Setting
from draht.api.resource.device import Device as WireDevice
from draht.cel.device import Device
from draht.cel.errors import CompileError, EvaluationError
from draht.cel.selector import MAX_COST, compile_selector

CASES = yaml.safe_load((Path(__file__).parents[1] / "data/cel/pinned.yaml").read_text(encoding="utf-8"))


def _settings(case: dict[str, Any]) -> list[Setting]:
    def suits(setting: Setting) -> bool:
        gates: dict[str, bool] = {
            "listAttributes": setting.list_attributes,
            "consumableCapacity": setting.consumable_capacity,
        }
        environment = case.get("environment", setting.environment)
        return bool(case.get("features", gates) == gates and environment == setting.environment)

    return [setting for setting in SETTINGS if suits(setting)]


def _device(case: dict[str, Any]) -> Device:
    wire: dict[str, Any] = {
        key: case[key] for key in ("attributes", "capacity", "allowMultipleAllocations") if key in case
    }
    if "longList" in case:
        strings = [f"value-{number}" for number in range(case["longList"]["count"])]
        wire["attributes"] = {case["longList"]["name"]: {"strings": strings}}
    return Device.of(case.get("driver", ""), msgspec.convert({"name": "d", **wire}, WireDevice, strict=False))


RUNS: list[tuple[dict[str, Any], Setting]] = [(case, setting) for case in CASES for setting in _settings(case)]


@pytest.mark.parametrize(
    ("case", "setting"), RUNS, ids=lambda value: str(value["name"] if isinstance(value, dict) else value)
)
def test_a_selector_costs_and_matches_what_upstream_pins(case: dict[str, Any], setting: Setting) -> None:
    """Estimated cost and outcome are those of upstream's table."""
    if "compileError" in case:
        with pytest.raises(CompileError):
            compile_selector(case["expression"], setting.features())
        return
    selector = compile_selector(case["expression"], setting.features())
    assert selector.cost.most == case["cost"]
    if case["cost"] > MAX_COST and setting != SETTINGS[0]:
        return  # running into the limit takes its time, and once is enough
    outcome = selector.evaluate(_device(case))
    if "matchError" in case:
        assert isinstance(outcome, EvaluationError)
    else:
        assert outcome is case["match"]


def test_the_table_is_whole() -> None:
    """All of upstream's 71 cases are there, and both settings of list attributes are run."""
    assert len(CASES) == 71
    assert {setting.list_attributes for _, setting in RUNS} == {True, False}
