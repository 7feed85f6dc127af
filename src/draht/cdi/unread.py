"""What lies in spec directories without being offered: files with another ending, files nobody may read, other places.

Owns the look at such files for `draht.cdi.explain`. Of a file that can't be decoded it finds out which kind it was
meant to be, so that a diagnosis names the file that matters and not each broken one. It reads regular files only, a
bounded number of them and a bounded part of each, and it never raises: a file that vanishes meanwhile isn't there.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import msgspec

from draht.api import yaml
from draht.cdi.files import SPEC_SUFFIXES

__all__ = ["WELL_KNOWN_DIRECTORIES", "UnreadFile", "ignored_files", "peek", "peek_kind", "unreadable_reason"]

WELL_KNOWN_DIRECTORIES = ("/etc/cdi", "/var/run/cdi", "/run/cdi", "/usr/local/etc/cdi")
"""Where tools write specs: CDI's defaults, ``/run/cdi`` where ``/var/run`` is a directory of its own, and the place of
distributions whose ``/etc`` is read-only."""

_MAX_PEEK = 1024 * 1024
_MAX_FILES = 200
_KIND = re.compile(rb"""^\s*[{,]?\s*["']?kind["']?\s*:\s*["']?(?P<kind>[^\s"',}]+)""", re.MULTILINE)
_IS_SPEC = re.compile(rb"cdiVersion", re.IGNORECASE)


class UnreadFile(msgspec.Struct, frozen=True):
    """A file that looks like a spec and isn't read because of its name.

    Attributes:
        path: The file.
        kind: The kind it is meant for, if that can be told.
    """

    path: str
    kind: str | None


def ignored_files(directory: str) -> Iterator[UnreadFile]:
    """Files of a directory that hold a spec but don't end in ``.json`` or ``.yaml``, by name.

    Temporary files of writers (``*.tmp``) are left out: they are about to become a spec or to vanish.
    """
    try:
        names = sorted(path.name for path in Path(directory).iterdir())
    except (OSError, ValueError):
        return
    candidates = [name for name in names if not name.endswith((*SPEC_SUFFIXES, ".tmp"))]
    for name in candidates[:_MAX_FILES]:
        path = str(Path(directory, name))
        data = peek(path)
        if data is not None and _IS_SPEC.search(data):
            yield UnreadFile(path, peek_kind(data))


def peek(path: str) -> bytes | None:
    """The first MiB of a regular file; None if it isn't one or can't be read."""
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        return os.read(descriptor, _MAX_PEEK) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def peek_kind(data: bytes) -> str | None:
    """The ``kind`` of a text that may be broken anywhere, even before it; None if there is none to be seen."""
    try:
        root = next(yaml.documents(data), None)
    except yaml.YamlError:
        root = None
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if key.value == "kind" and isinstance(value, yaml.ScalarNode):
                return str(value.value)
    found = _KIND.search(data)
    return found["kind"].decode("utf-8", "replace") if found else None


def unreadable_reason(path: str) -> tuple[str, str] | None:
    """Why a file can't be read, and what to do; None if it can be, or the file system gives no clue."""
    try:
        found = Path(path).stat()
    except PermissionError:
        directory = os.path.split(path)[0]
        return (
            f"user {os.geteuid()} may not enter the directory",
            f"let everybody enter it: chmod a+x {quote(directory)}",
        )
    except OSError as error:
        links = {errno.ELOOP: "a symbolic link that leads back to itself", errno.ENOENT: "a symbolic link to nowhere"}
        reason = links.get(error.errno or 0)
        return (reason, f"remove it: rm {quote(path)}") if reason is not None and os.path.lexists(path) else None
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file", f"remove it: rm {quote(path)}"
    if os.access(path, os.R_OK):
        return None
    owner = "root" if found.st_uid == 0 else f"user {found.st_uid}"
    reason = f"it belongs to {owner} and has mode {stat.S_IMODE(found.st_mode):04o}, and you are user {os.geteuid()}"
    return reason, f"let everybody read it: chmod a+r {quote(path)}"
