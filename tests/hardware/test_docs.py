"""The pages about machines and profiles do what they say."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from doc_examples import run
from draht.hardware import profiles

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["hardware.md", "profiles.md"])
def test_the_examples_of_a_page_work(page: str, tmp_path: Path) -> None:
    """Every command prints what the page shows."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run(DOCS / page, tmp_path, {"PATH": path, "LC_ALL": "C.UTF-8"}) > 0


@pytest.mark.parametrize("name", profiles.names())
def test_every_shipped_profile_is_in_the_table(name: str) -> None:
    """A new profile is introduced to its readers."""
    assert f"| `{name}` |" in (DOCS / "profiles.md").read_text(encoding="utf-8")
