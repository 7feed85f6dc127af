"""Processors, memory and NUMA nodes of a Linux machine, from ``/proc`` and ``/sys/devices/system``."""

from __future__ import annotations

import re

from draht.hardware.files import Files
from draht.hardware.topology import CPU, NUMANode

__all__ = ["cpu", "hostname", "memory_bytes", "numa_nodes"]

_MOST_THREADS = 4096
"""Hardware threads whose place is looked up; the largest machine that Linux is built for has 8192."""


def cpu(files: Files, architecture: str = "") -> CPU | None:
    """The processors, or None if there is nothing to read."""
    threads = [name for name in files.names("sys/devices/system/cpu") if re.fullmatch(r"cpu[0-9]{1,5}", name)][
        :_MOST_THREADS
    ]
    if not threads:
        return None
    places = [
        (
            files.text(f"sys/devices/system/cpu/{name}/topology/physical_package_id"),
            files.text(f"sys/devices/system/cpu/{name}/topology/core_id"),
        )
        for name in threads
    ]
    known = [place for place in places if None not in place]
    found = re.search(r"^model name\s*:\s*(.+)$", files.text("proc/cpuinfo") or "", re.MULTILINE)
    return CPU(
        model=found[1].strip() if found else "",
        architecture=architecture,
        sockets=len({socket for socket, _ in known}) or None,
        cores=len(set(known)) or None,
        threads=len(threads),
    )


def memory_bytes(files: Files) -> int | None:
    """Main memory that the kernel has."""
    return _kibibytes(files.text("proc/meminfo") or "")


def numa_nodes(files: Files) -> tuple[NUMANode, ...]:
    """The NUMA nodes by number; distances stay empty where the firmware has no SLIT."""
    base = "sys/devices/system/node"
    numbers = sorted(int(name[4:]) for name in files.names(base) if re.fullmatch(r"node[0-9]{1,5}", name))
    return tuple(
        NUMANode(
            id=number,
            cpus=files.text(f"{base}/node{number}/cpulist") or "",
            memory_bytes=_kibibytes(files.text(f"{base}/node{number}/meminfo") or ""),
            distances=tuple(
                int(word) for word in (files.text(f"{base}/node{number}/distance") or "").split() if word.isdecimal()
            ),
        )
        for number in numbers
    )


def hostname(files: Files) -> str:
    """The name the kernel goes by."""
    return files.text("proc/sys/kernel/hostname") or "localhost"


def _kibibytes(text: str) -> int | None:
    found = re.search(r"MemTotal:\s*([0-9]{1,15}) kB", text)
    return int(found[1]) * 1024 if found else None
