"""The page about the client does what it shows."""

from __future__ import annotations

import os
from pathlib import Path

from doc_examples import run

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    """The example of docs/kube.md loads its own kubeconfig."""
    assert run(ROOT / "docs" / "kube.md", tmp_path, {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}) == 1
