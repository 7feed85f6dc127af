"""Small pseudo files below a root directory, read with bounds and without exceptions.

Owns what every reader of ``/sys`` and ``/proc`` needs: a root that is a parameter, bounded sizes and counts, and a list
of what couldn't be read. What isn't there is no problem: a machine without GPUs has no GPU files.
"""

from __future__ import annotations

import os
from pathlib import Path

from draht.hardware.inventory import Problem

__all__ = ["Files"]

_LARGEST = 1 << 20
"""Bytes read of a file; the largest of interest is /proc/cpuinfo, of which the start suffices."""

_MOST_ENTRIES = 16384
"""Entries read of a directory; a bus of a large machine has some thousand functions."""

_MOST_PROBLEMS = 100


class Files:
    """The files of a machine below a root.

    Args:
        root: ``/`` for this machine.

    Attributes:
        problems: What couldn't be read so far, in order, at most a hundred.
    """

    def __init__(self, root: str | Path = "/") -> None:
        self._root = Path(root)
        self.problems: list[Problem] = []

    def text(self, path: str) -> str | None:
        """The stripped text of a file, or None if it isn't there, is empty or can't be read."""
        try:
            # A pipe in place of a file must not make us wait for its writer.
            descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.problem(path, f"can't be read: {error.strerror}")
            return None
        try:
            data = os.read(descriptor, _LARGEST)
        except OSError as error:
            # Drivers answer with an error for what a device doesn't have (speed of a port that is down).
            if error.errno not in _NOT_HERE:
                self.problem(path, f"can't be read: {error.strerror}")
            return None
        finally:
            os.close(descriptor)
        return data.decode("utf-8", "replace").strip().strip("\0") or None

    def number(self, path: str) -> int | None:
        """The decimal or ``0x`` hexadecimal number in a file, or None; something else is a problem."""
        text = self.text(path)
        if text is None:
            return None
        try:
            if len(text) > 20:
                raise ValueError
            return int(text, 16 if text.startswith("0x") else 10)
        except ValueError:
            self.problem(path, f'must have a number, not "{text[:40]}"')
            return None

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; nothing if it isn't there."""
        try:
            with os.scandir(self._root / path) as entries:
                names = [entry.name for entry, _ in zip(entries, range(_MOST_ENTRIES + 1), strict=False)]
        except FileNotFoundError:
            return []
        except OSError as error:
            self.problem(path, f"can't be listed: {error.strerror}")
            return []
        if len(names) > _MOST_ENTRIES:
            self.problem(path, f"has more than {_MOST_ENTRIES} entries; the rest is left out")
        return sorted(names[:_MOST_ENTRIES])

    def link(self, path: str) -> str | None:
        """The target of a symbolic link as it is written, or None if there is no link."""
        try:
            return str((self._root / path).readlink())
        except OSError:
            return None

    def problem(self, path: str, message: str) -> None:
        """Record something that can't be read or makes no sense."""
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(where=str(self._root / path), message=message))


_NOT_HERE = {22, 19, 95}
"""EINVAL, ENODEV and EOPNOTSUPP."""
