"""``make demo`` shows what it promises."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import require

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.engine
def test_the_demo_runs_the_twelve_use_cases(tmp_path: Path) -> None:
    """Every case is shown with what its containers see, and the table at the end says that all went well."""
    require(os.geteuid() == 0, "containers with device nodes need root")
    require(shutil.which("podman") and shutil.which("runc"), "no podman or runc (Debian packages podman and runc)")
    require(shutil.which("busybox"), "no busybox (Debian package busybox-static)")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "demo.py"],
        env={**os.environ, "DRAHT_STATE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown, _, table = done.stdout.partition("USE CASE")
    assert shown.count("\n── ") == 12
    assert "simulated by draht: machine profile dgx-h100, no such hardware is here" in shown
    assert "serving/prefill gets gpu-0-mig-3g40gb-9-0, and sees:" in shown
    assert sum(line.rstrip().endswith("   ok") for line in table.splitlines()) == 12
    assert "06 time-slicing, MPS" in table
