"""The files git knows, for the tests that check rules over all of them."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Sequence
from pathlib import Path

from requirements import require

__all__ = ["ROOT", "assert_none", "text_of", "tracked"]

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def tracked(*suffixes: str) -> tuple[Path, ...]:
    """Paths of tracked files relative to the repository, all or those with some suffixes."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    require(listed.returncode == 0, f"this is not a git checkout: {listed.stderr.strip()}")
    paths = [Path(name) for name in listed.stdout.split("\0") if name]
    return tuple(path for path in paths if (ROOT / path).is_file() and (not suffixes or path.suffix in suffixes))


@functools.cache
def text_of(path: Path) -> str | None:
    """The text of a tracked file, or None if it isn't text."""
    content = (ROOT / path).read_bytes()
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def assert_none(offenders: Sequence[str]) -> None:
    """Fail with the whole list of offenders, one a line."""
    __tracebackhide__ = True
    if offenders:
        raise AssertionError("\n".join(["", *offenders]))
