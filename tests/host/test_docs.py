"""The page about running containers does what it says."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from doc_examples import run
from draht.driver.audit import LIMIT
from requirements import require

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.engine
def test_the_examples_work(tmp_path: Path, busybox_rootfs: Path) -> None:
    """Every command prints what the page shows."""
    require(os.geteuid() == 0, "real containers need root here")
    require(shutil.which("runc"), "no runc on this machine")
    (tmp_path / "rootfs").symlink_to(busybox_rootfs)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "DRAHT_STATE_DIR": str(tmp_path / "state"),
        "DRAHT_CDI_DIR": str(tmp_path / "cdi"),
    }
    assert run(DOCS / "run.md", tmp_path, environment) == 10


def test_numbers() -> None:
    """The page knows how long the trail is."""
    assert f"{LIMIT:,} entries" in (DOCS / "run.md").read_text(encoding="utf-8")
