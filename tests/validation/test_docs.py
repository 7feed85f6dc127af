"""The page about validation shows what happens."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from doc_examples import run
from tracked_files import ROOT

PAGE = ROOT / "docs" / "validation.md"


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    """Every command and Python block of the page prints what the page says."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run(PAGE, tmp_path, {"PATH": path, "LC_ALL": "C.UTF-8"}) == 6
