"""Which features draht takes to be on is what the running server says, and so is the table in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster.judge.server import GATE_NAMES, Server
from draht.validation import ALL, DEFAULT

pytestmark = pytest.mark.cluster

PAGE = Path(__file__).parents[3] / "docs" / "validation.md"
ROW = re.compile(r"^\| `(\w+)` \| (alpha|beta|stable) \| (on|off) \|", re.MULTILINE)
STAGES = {"": "stable", "ALPHA": "alpha", "BETA": "beta"}


def test_the_default_gates_are_the_servers(default_judge: Server) -> None:
    """A server that is started without a word about features has those of `DEFAULT`."""
    assert default_judge.gates == DEFAULT


def test_the_unfinished_features_are_all_that_is_off_by_default(alpha_judge: Server) -> None:
    """With its unfinished features on, a server has those of `ALL`, but for the one that needs no older version."""
    off = [name for field, name in GATE_NAMES.items() if getattr(alpha_judge.gates, field) != getattr(ALL, field)]
    assert off in ([], ["DRAFractionalCapacityRange"])


def test_gates_that_draht_has_no_switch_for_are_on(default_judge: Server) -> None:
    """They are locked on."""
    locked = ("DRAAdminAccess", "DRAExtendedResource", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus")
    assert [default_judge.features[name] for name in locked] == [("", True)] * len(locked)


def test_the_documented_stages_are_the_servers(default_judge: Server) -> None:
    """Every gate that decides about fields is in the table of the documentation, with its stage and its state."""
    documented = {name: (stage, state == "on") for name, stage, state in ROW.findall(PAGE.read_text(encoding="utf-8"))}
    running = {name: default_judge.features[name] for name in GATE_NAMES.values()}
    assert documented == {name: (STAGES[stage], on) for name, (stage, on) in running.items()}
