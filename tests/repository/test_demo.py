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
def test_the_demo_shows_two_containers_and_a_refusal(tmp_path: Path) -> None:
    """Two containers see five and three GPUs at once, a third is refused with who holds them, nothing stays held."""
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
    shown = done.stdout
    assert "simulated" in shown
    first, _, second = shown.partition("At the same time")
    assert "/dev/nvidia4\n" in first
    assert "/dev/nvidia5\n" not in first
    assert "/dev/nvidia5\n" in second
    assert "/dev/nvidia4\n" not in second
    assert "error: the devices are taken" in second
    assert "held by root" in second
