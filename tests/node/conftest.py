"""Directories whose paths are short enough for sockets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def root() -> Iterator[Path]:
    """A kubelet's root directory; pytest's own directories have names that are too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as directory:
        yield Path(directory)
