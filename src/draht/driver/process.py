"""Which process a record speaks of, and whether that process still lives.

A process id alone is reused within minutes on a busy machine, so a record keeps the start time (clock ticks since
boot, field 22 of ``/proc/PID/stat``, proc(5)) and the boot id beside it. It doesn't know why anybody asks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

__all__ = ["Condition", "ProcessIdentity", "boot_id", "condition", "identify"]

PROC = "/proc"
"""Where procfs is mounted; a parameter of every function so that tests can bring their own."""

Condition = Literal["alive", "stopped", "dead"]


class ProcessIdentity(msgspec.Struct, frozen=True):
    """One life of one process."""

    pid: int
    started: int
    """Start time in clock ticks since boot."""
    boot_id: str


def boot_id(proc: str | Path = PROC) -> str:
    """The kernel's random id of this boot, or ``unknown`` where procfs doesn't tell (the same answer all boot long)."""
    try:
        return (Path(proc) / "sys/kernel/random/boot_id").read_text(encoding="utf-8").strip() or "unknown"
    except (OSError, UnicodeDecodeError):
        return "unknown"


def identify(pid: int, proc: str | Path = PROC) -> ProcessIdentity | None:
    """The identity of a running process, or None if there is no such process (or it can't be seen)."""
    fields = _stat(pid, proc)
    if fields is None:
        return None
    return ProcessIdentity(pid=pid, started=int(fields[19]), boot_id=boot_id(proc))


def condition(process: ProcessIdentity, proc: str | Path = PROC) -> Condition:
    """Whether that very process runs, is stopped (Ctrl-Z), or is gone; a zombie is gone.

    A process that exists but can't be looked at (``hidepid`` of another user) counts as alive: what can't be judged is
    never taken away from its owner.
    """
    if process.pid <= 0 or process.boot_id != boot_id(proc):
        return "dead"
    fields = _stat(process.pid, proc)
    if fields is None:
        try:
            os.kill(process.pid, 0)
        except ProcessLookupError:
            return "dead"
        except PermissionError:
            return "alive"
        fields = _stat(process.pid, proc)
        if fields is None:
            return "dead"
    if int(fields[19]) != process.started or fields[0] in "ZXx":
        return "dead"
    return "stopped" if fields[0] in "Tt" else "alive"


def _stat(pid: int, proc: str | Path) -> list[str] | None:
    """Fields of ``/proc/PID/stat`` from the state (field 3) on; the name before it may hold blanks and brackets."""
    try:
        text = (Path(proc) / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) >= 20 else None
