"""One call at a time for a claim, whichever thread or process it comes from: during an upgrade two agents overlap.

A lock file per claim, because the kernel ends its lock with the process; the database can't do that. Claims don't wait
for each other. It knows nothing of what is done with the claim.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from draht.driver.errors import ClaimBusyError, StateError

__all__ = ["claim_lock", "locked_uids"]

POLL_SECONDS = 0.01


@contextlib.contextmanager
def claim_lock(
    directory: Path,
    driver: str,
    uid: str,
    *,
    seconds: float,
) -> Iterator[Callable[[], None]]:
    """Hold the lock of a claim; the value is a function that removes the lock's file, for a claim that has ended.

    Args:
        directory: Where lock files are; made if missing.
        driver: Whose claim it is.
        uid: The claim; can be part of a file name.
        seconds: How long to wait; 0 not at all.

    Raises:
        ClaimBusyError: Somebody else has had it all that time.
        StateError: The file can't be made.
    """
    path = directory / f"{driver}_{uid}.lock"
    deadline = time.monotonic() + seconds
    handle = _open(path)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ClaimBusyError(
                        f"another call works on claim {uid} since more than {seconds:g} s",
                        hint="the kubelet tries again; a call that never ends is a mistake in the driver",
                    ) from None
                time.sleep(POLL_SECONDS)
                continue
            if os.fstat(handle).st_nlink:
                break
            # Its file was removed while we waited: whoever comes next makes another one.
            os.close(handle)
            handle = _open(path)
        yield lambda: path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def locked_uids(directory: Path, driver: str) -> set[str]:
    """UIDs that have a lock file, locked or not."""
    try:
        names = [path.name for path in directory.iterdir()]
    except OSError:
        return set()
    prefix, suffix = f"{driver}_", ".lock"
    return {name[len(prefix) : -len(suffix)] for name in names if name.startswith(prefix) and name.endswith(suffix)}


def _open(path: Path) -> int:
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(path, flags, 0o600)
    except OSError as error:
        raise StateError(
            f"the lock of a claim can't be made: {error.strerror or error}",
            where=str(path),
            hint="make the state directory writable for draht, and make some room there",
        ) from None
