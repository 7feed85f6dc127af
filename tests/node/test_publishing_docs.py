"""The page about publishing shows what happens."""

from __future__ import annotations

from pathlib import Path

from doc_examples import run
from tracked_files import ROOT


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    """Every Python block prints what the page says."""
    assert run(ROOT / "docs" / "publishing.md", tmp_path, {}) == 2
