"""Files that containers of claims need: written whole or not at all, recognised again, removed without a trace.

Why nothing here is synced to disk: after a crash of a process the kernel still has what was written, and after a crash
of the machine every file is made again from the database before it is needed (its boot id differs then). A rename keeps
readers from seeing half a file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from draht.driver.claims.prepared import Places
from draht.driver.claims.spec import file_name, parse_file_name
from draht.driver.errors import PlacesError

__all__ = ["ClaimFiles"]

STALE_SECONDS = 60.0
"""Age at which a temporary file is nobody's: writing one takes milliseconds."""


class ClaimFiles:
    """The files of one driver's claims.

    Args:
        places: Where they are.
        driver: The driver's name.
    """

    def __init__(self, places: Places, driver: str) -> None:
        self.places = places
        self.driver = driver

    def spec(self, uid: str) -> Path:
        """The CDI spec of a claim."""
        return self.places.cdi_directory / file_name(self.driver, uid)

    def metadata(self, uid: str) -> Path:
        """The directory with a claim's metadata files."""
        return self.places.metadata_directory / self.driver / uid

    def write_shared(self, files: Mapping[str, tuple[bytes, int]]) -> None:
        """Make the driver's own files that are missing or different; the others are in use and stay untouched.

        Raises:
            PlacesError: One can't be written.
        """
        for name, (content, mode) in files.items():
            path = self.places.files_directory / name
            if Path(name).name != name:
                raise PlacesError(f"{name!r} can't be the name of a file", hint="this is a mistake in the driver")
            with _failures(path, "written"):
                if not (_same(path, content) and path.stat().st_mode & 0o777 == mode):
                    _write(path, content, mode)

    def write(self, path: Path, content: bytes) -> str:
        """Make a file of a claim unless it is there with this content, and tell its digest.

        A container sees a mounted file by its inode, so one that is right is never replaced.

        Raises:
            PlacesError: It can't be written.
        """
        with _failures(path, "written"):
            if not _same(path, content):
                _write(path, content, 0o644)
        return hashlib.sha256(content).hexdigest()

    def intact(self, files: Mapping[str, str]) -> bool:
        """Whether all of these files are there with the content that they were written with."""
        try:
            return all(hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest for path, digest in files.items())
        except OSError:
            return False

    def remove_spec(self, uid: str, files: Iterable[str] = ()) -> None:
        """Remove a claim's CDI spec, also from where an earlier configuration put it.

        Raises:
            PlacesError: It can't be removed.
        """
        name = file_name(self.driver, uid)
        for path in {self.spec(uid), *(Path(path) for path in files if Path(path).name == name)}:
            with _failures(path, "removed"), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                # A read-only file system refuses to remove even what isn't there.
                path.lstat()
                path.unlink()

    def remove_metadata(self, uid: str, files: Iterable[str] = ()) -> None:
        """Remove a claim's metadata files, likewise.

        Raises:
            PlacesError: They can't be removed.
        """
        name = file_name(self.driver, uid)
        directories = {Path(path).parent for path in files if Path(path).name != name and Path(path).parent.name == uid}
        for directory in {self.metadata(uid), *directories}:
            with _failures(directory, "removed"), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                for path in list(directory.iterdir()):
                    path.unlink(missing_ok=True)
                directory.rmdir()

    def written(self) -> set[str]:
        """UIDs of the claims that have a file of this driver."""
        names = [parse_file_name(name) for name in _listed(self.places.cdi_directory)]
        with_spec = {found[1] for found in names if found is not None and found[0] == self.driver}
        return with_spec | set(_listed(self.places.metadata_directory / self.driver))

    def sweep(self, now: float) -> list[str]:
        """Remove temporary files that a writer killed in the middle has left, and tell which."""
        swept = []
        directories = [self.places.cdi_directory, self.places.files_directory]
        directories += [self.metadata(uid) for uid in _listed(self.places.metadata_directory / self.driver)]
        for directory in directories:
            for name in _listed(directory):
                path = directory / name
                if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
                    continue
                with contextlib.suppress(OSError):
                    if now - path.stat().st_mtime > STALE_SECONDS:
                        path.unlink()
                        swept.append(str(path))
        return swept


_PREFIX, _SUFFIX = ".draht.", ".tmp"


def _listed(directory: Path) -> list[str]:
    try:
        return sorted(path.name for path in directory.iterdir())
    except OSError:
        return []


def _same(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except (FileNotFoundError, NotADirectoryError):
        return False


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _failures(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise PlacesError(
            f"a file that containers need can't be {done}: {error.strerror or error}",
            where=str(path),
            hint="make some room there; the kubelet tries again" if full else "make the directory writable for draht",
        ) from None
