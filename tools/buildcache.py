"""Directories that are built once and kept outside the repository, named after the hash of what they are built from.

Owns where the cache lies, how an entry becomes visible (whole or not at all, also when several test runs build at the
same time) and when old entries go. It exists because test programs made from Go modules take seconds to minutes to
build and must not lie in the repository. It doesn't know how anything is built.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

__all__ = ["digest", "entry", "folder", "locked", "root"]

SIGNATURE = "Signature: 8a477f597d28d172789f06886806bc55"
"""First line of a file ``CACHEDIR.TAG`` (Cache Directory Tagging Specification)."""


def root() -> Path:
    """The cache directory: ``$DRAHT_CACHE``, else ``draht`` below the XDG cache directory."""
    chosen = os.environ.get("DRAHT_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "draht"


def folder(kind: str) -> Path:
    """A folder of the cache; made if missing.

    A cache that didn't exist is marked as one. Somebody's directory isn't, so that `main` never deletes it.
    """
    top = root()
    with contextlib.suppress(FileExistsError):
        top.mkdir(parents=True)
        (top / "CACHEDIR.TAG").write_text(f"{SIGNATURE}\n# Build cache of draht\n")
    wanted = top / kind
    wanted.mkdir(exist_ok=True)
    return wanted


def digest(paths: Iterable[Path], *more: str) -> str:
    """A hash of the names and contents of files, and of any further text that decides about the result.

    Only the last part of each path counts, so that two checkouts of the same commit share their entries.
    """
    whole = hashlib.sha256()
    for name, content in sorted((path.name, path.read_bytes()) for path in paths):
        whole.update(f"{name}\0{len(content)}\0".encode())
        whole.update(content)
    for text in more:
        whole.update(f"\0{len(text)}\0{text}".encode())
    return whole.hexdigest()[:32]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; it ends with the process, however that ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def entry(kind: str, key: str, build: Callable[[Path], None], *, keep: int = 4) -> Path:
    """The directory for a key; made by ``build(directory)`` when it isn't there yet.

    Args:
        kind: What the entries of one sort are called; each sort has its own lock.
        key: A hash of everything that decides about the result, see `digest`.
        build: Fills the empty directory it is given; what it raises leaves no entry behind.
        keep: How many entries of the kind stay; those that were used last win.
    """
    home = folder(kind)
    wanted = home / key
    if not wanted.is_dir():
        with locked(home / ".lock"):
            if not wanted.is_dir():
                for leftover in home.glob(".building-*"):
                    shutil.rmtree(leftover, ignore_errors=True)
                building = Path(tempfile.mkdtemp(prefix=".building-", dir=home))
                building.chmod(0o755)
                try:
                    build(building)
                    building.rename(wanted)
                finally:
                    shutil.rmtree(building, ignore_errors=True)
            _forget_old(home, wanted, keep)
    with contextlib.suppress(OSError):  # a cache that can only be read still serves
        os.utime(wanted)
    return wanted


def _forget_old(home: Path, wanted: Path, keep: int) -> None:
    others = [path for path in home.iterdir() if path.is_dir() and path != wanted and not path.name.startswith(".")]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[keep - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


def main() -> None:
    """Entry point of the script: ``buildcache.py clean`` removes the cache."""
    if sys.argv[1:] != ["clean"]:
        sys.exit(f"usage: {sys.argv[0]} clean")
    tag = root() / "CACHEDIR.TAG"
    if tag.is_file() and tag.read_text(errors="replace").startswith(SIGNATURE):
        print(f"removing {root()}")
        shutil.rmtree(root())
    elif root().exists():
        print(f"not removing {root()}: nothing in it says that it is a cache")


if __name__ == "__main__":
    main()
