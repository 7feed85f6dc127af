"""Reading spec files and listing spec directories without ever being held up by what lies there.

Owns the encounter with the file system: a FIFO or a device called ``x.json`` is not opened (opening it may wait for
ever, or do something), a huge file is not read, and whatever fails becomes an error with the path. Also says when a
file must be read again (`Stamp`).
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

from draht.api.yaml import MAX_BYTES
from draht.cdi.errors import DirectoryError, SpecError

__all__ = ["SPEC_SUFFIXES", "Stamp", "list_specs", "read_spec", "reason"]

SPEC_SUFFIXES = (".json", ".yaml")
"""How the names of spec files end; ``.yml`` doesn't count."""

_CLOCK_STEP = 20_000_000
"""Nanoseconds within which a second change may leave a file's times as they are: the kernel stamps files by a clock
that moves in steps of up to 10 ms."""


class Stamp(NamedTuple):
    """What tells whether a file is still the one that was read.

    Attributes:
        device: Of the file, after symbolic links.
        inode: Likewise.
        size: In bytes.
        modified: Nanoseconds of the last change of content.
        changed: Nanoseconds of the last change of content, owner or mode; also moves when `modified` is set back.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        """The stamp of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def is_settled(self) -> bool:
        """Whether a change from now on must show in the stamp."""
        return self.changed + _CLOCK_STEP < time.time_ns()


class Entry(NamedTuple):
    """A file that may be a spec.

    Attributes:
        path: Directory and name.
        stamp: None where even that can't be told, as for a broken symbolic link.
    """

    path: str
    stamp: Stamp | None


def list_specs(directory: str) -> list[Entry]:
    """The spec files directly in a directory, sorted by name; none if there is no such directory.

    Raises:
        DirectoryError: It is there but can't be read.
    """
    entries: list[tuple[bytes, Entry]] = []
    try:
        with os.scandir(directory) as found:
            for item in found:
                if not item.name.endswith(SPEC_SUFFIXES) or item.is_dir(follow_symlinks=False):
                    continue
                try:
                    stamp = Stamp.of(item.stat())
                except OSError:
                    stamp = None
                entries.append((os.fsencode(item.name), Entry(item.path, stamp)))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise DirectoryError(
            f"the directory can't be read: {reason(error)}",
            where=directory,
            hint="check its permissions and those of the directories above it",
        ) from None
    return [entry for _, entry in sorted(entries, key=lambda pair: pair[0])]


def read_spec(path: str) -> bytes:
    """The bytes of a spec file.

    Raises:
        SpecError: It can't be read, is no regular file, or is larger than `draht.api.yaml.MAX_BYTES`.
    """
    try:
        _refuse_special(Path(path).stat(), path)
        # Between the look and the opening it may have been replaced: don't wait, and look again.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            found = os.fstat(descriptor)
            _refuse_special(found, path)
            data = os.read(descriptor, found.st_size + 1)
            while more := os.read(descriptor, 1 << 16) if data else b"":
                data += more
                if len(data) > MAX_BYTES:
                    raise _too_large(path)
            return data
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise SpecError(f"the file can't be read: {reason(error)}", where=path, hint=_advice(error)) from None


def _refuse_special(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SpecError(
            "this is not a regular file", where=path, hint="remove it from the spec directory; a pipe is read as -"
        )
    if found.st_size > MAX_BYTES:
        raise _too_large(path)


def _too_large(path: str) -> SpecError:
    return SpecError(
        f"the file is larger than the {MAX_BYTES} bytes that are read", where=path, hint="split it by device class"
    )


def reason(error: OSError | ValueError) -> str:
    """What the system said, as part of a sentence."""
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)


def _advice(error: OSError | ValueError) -> str | None:
    if isinstance(error, PermissionError):
        return "make it readable for the users of containers: chmod 0644"
    if isinstance(error, FileNotFoundError):
        return "check its name; one that is listed all the same is a symbolic link to nowhere"
    return None
