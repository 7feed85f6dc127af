"""The pages about allocation and explanations show what happens, and leave nothing out."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from doc_examples import run
from draht.allocator import policies
from draht.allocator.explain import Dominant
from draht.allocator.features import RELEASES, Features
from draht.cli import manifest_files
from draht.host.claims import STEPS
from tracked_files import ROOT

DOCS = ROOT / "docs"


@pytest.mark.parametrize(("page", "count"), [("allocation.md", 3), ("explain.md", 12)])
def test_the_page_shows_what_happens(page: str, count: int, tmp_path: Path) -> None:
    """Every command and Python block prints what the page says."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run(DOCS / page, tmp_path, {"PATH": path, "LC_ALL": "C.UTF-8"}) == count


def test_the_page_has_every_cause_in_the_table() -> None:
    """By its stable name; that it fits is none."""
    rows = re.findall(r"^\| `([a-z-]+)` \|", (DOCS / "explain.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(cause.value for cause in Dominant if cause is not Dominant.FITS)


def test_the_page_has_every_policy_in_the_table() -> None:
    """Under the name that the command takes."""
    text = (DOCS / "allocation.md").read_text(encoding="utf-8").partition("## Policies")[2].partition("##")[0]
    assert tuple(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)) == policies.NAMES


def test_the_page_knows_since_when_a_feature_is_on() -> None:
    """The table of releases is that of the code, and has every feature."""
    text = (DOCS / "allocation.md").read_text(encoding="utf-8").partition("## Releases")[2].partition("## Policies")[0]
    told = {
        name: since
        for names, since in re.findall(r"^\| (`.+`) \| (.+) \|$", text, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
    assert set(told) == set(Features.__dataclass_fields__)
    for name, since in told.items():
        on = [release for release, features in RELEASES.items() if getattr(features, name)]
        assert since == (on[0] if on else "off in 1.37")


def test_the_page_knows_the_bounds_of_a_decision() -> None:
    """Of the two commands, and of `draht run -f`."""
    text = (DOCS / "allocation.md").read_text(encoding="utf-8")
    assert f"{manifest_files.STEPS:,} search steps" in text
    assert manifest_files.STEPS == STEPS
    assert "A decision of `draht run -f` has as many." in " ".join(text.split())
