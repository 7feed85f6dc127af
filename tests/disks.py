"""A small file system of its own, to see what a full or read-only disk does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from requirements import require

__all__ = ["fill", "read_only", "small_disk"]


@contextmanager
def small_disk(directory: Path, size: str = "512k") -> Iterator[Path]:
    """A tmpfs of that size, unmounted at the end."""
    require(os.geteuid() == 0, "mounting a small file system needs root")
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], check=False)
    require(mounted.returncode == 0, "file systems can't be mounted here")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


def fill(directory: Path, *, leave: int = 0) -> Path:
    """Use the room of a file system up to some bytes; the file that does it."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 512)
    if leave:
        os.truncate(filler, max(0, filler.stat().st_size - leave))
    return filler


def read_only(directory: Path) -> None:
    """Make it read-only."""
    subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
