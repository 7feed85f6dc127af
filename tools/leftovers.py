"""What a killed test run may leave on the machine, and its removal: processes, mounts, control groups, files.

Everything a private engine owns carries the name of its directory: its processes in their command line or environment,
its containers in the root of their file system, its mounts in their place. So nothing has to be remembered but that
name, which is written to the build cache before anything starts. A later run ends what an earlier one left, and only
that: processes are ended by id after the name was found in them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import buildcache

__all__ = ["forget", "record", "sweep", "sweep_dead_runs"]

PREFIX = "draht-test-"
"""Start of the name of every such directory; a record that names anything else is not believed."""


def records() -> Path:
    """The directory with one file for each engine that runs or was left."""
    return buildcache.folder("running")


def record(directory: Path) -> None:
    """Note that this process is about to start something that lives in a directory."""
    assert directory.name.startswith(PREFIX)
    owner = {"directory": str(directory), "pid": os.getpid(), "started": start_of(os.getpid())}
    (records() / f"{directory.name}.json").write_text(json.dumps(owner))


def forget(directory: Path) -> None:
    """Drop the note; everything in the directory has been ended."""
    (records() / f"{directory.name}.json").unlink(missing_ok=True)


def sweep_dead_runs() -> list[Path]:
    """Remove what runs left whose process is gone; their directories."""
    swept = []
    for note in sorted(records().glob(f"{PREFIX}*.json")):
        try:
            owner = json.loads(note.read_text())
            directory = Path(owner["directory"])
            alive = start_of(owner["pid"]) == owner["started"]
        except (ValueError, KeyError, TypeError):
            note.unlink(missing_ok=True)  # cut off while it was written: nothing had been started then
            continue
        if not alive and directory.name.startswith(PREFIX):
            sweep(directory)
            forget(directory)
            swept.append(directory)
    return swept


def start_of(pid: int) -> str | None:
    """When a process started, in the kernel's clock ticks; None if there is no such process. Tells reused ids apart."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def sweep(directory: Path, *, patience: float = 2.0) -> None:
    """End the processes that belong to a directory, unmount what is mounted below it, and remove it.

    Args:
        directory: Its name must start with `PREFIX`.
        patience: Seconds between asking processes to end and killing them.
    """
    assert directory.name.startswith(PREFIX)
    asked = set(processes_of(directory.name))
    for pid in asked:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + patience
    while time.monotonic() < until and any(start_of(pid) and not is_zombie(pid) for pid in asked):
        time.sleep(0.05)
    for _ in range(20):  # a shim that dies may still leave a container behind, seen in the next round
        remaining = [pid for pid in processes_of(directory.name) if not is_zombie(pid)]
        if not remaining:
            break
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    unmount_below(directory)
    for group in Path("/sys/fs/cgroup").glob(f"**/{directory.name}"):
        remove_group(group)
    if not mounts_below(directory):  # what can't be unmounted may be the host's own files
        shutil.rmtree(directory, ignore_errors=True)


def processes_of(name: str) -> Iterator[int]:
    """Ids of processes that have the name in their command line, environment or root mount; never our own."""
    wanted = name.encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if (
                wanted in (entry / "cmdline").read_bytes()
                or wanted in (entry / "environ").read_bytes()
                or wanted in root_mount(entry / "mountinfo")
            ):
                yield int(entry.name)


def root_mount(mountinfo: Path) -> bytes:
    """What a process has mounted at its root: for a container, a directory below the engine's."""
    for line in mountinfo.read_bytes().splitlines():
        fields = line.split(b" ")
        if fields[4] == b"/":
            return fields[3] + b" " + line.partition(b" - ")[2]
    return b""


def is_zombie(pid: int) -> bool:
    """Whether a process has ended and only waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def unmount_below(directory: Path) -> None:
    """Detach every mount at or below a directory, the deepest first."""
    library = ctypes.CDLL(None, use_errno=True)
    detach = 2  # MNT_DETACH: a mount that is still looked at must not keep the directory alive
    for place in sorted(mounts_below(directory), key=len, reverse=True):
        library.umount2(os.fsencode(place), detach)


def mounts_below(directory: Path) -> list[str]:
    """Where something is mounted at or below a directory."""
    places = [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    plain = [place.encode().decode("unicode_escape") for place in places]  # the kernel writes blanks as \040
    return [place for place in plain if place == str(directory) or place.startswith(f"{directory}/")]


def remove_group(group: Path) -> None:
    """Remove an empty control group with those below it."""
    for below in sorted((path for path in group.rglob("*") if path.is_dir()), key=lambda p: len(p.parts), reverse=True):
        with contextlib.suppress(OSError):
            below.rmdir()
    with contextlib.suppress(OSError):
        group.rmdir()
