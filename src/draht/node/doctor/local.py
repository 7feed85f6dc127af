"""Asking the machine: who answers at the kubelet's sockets, what the database has, which boot this is."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

from draht import cdi
from draht.api.errors import DrahtError
from draht.driver.claims.rows import Claim, all_claims
from draht.driver.database import Database
from draht.driver.process import boot_id
from draht.node.doctor.scene import Local, NodeDirectories, Unseen
from draht.node.kubelet.registered import registered_plugins
from draht.node.kubelet.socket_server import listens

__all__ = ["DatabaseState", "ask_machine"]

DatabaseState = tuple[Literal["absent", "healthy", "unreadable"], str, str]

_MOST_SOCKETS: Final = 500
"""A node has some dozens; a directory that somebody fills without end must not keep this from ending."""
_AT_ONCE: Final = 32


async def ask_machine(
    directories: NodeDirectories, *, cache: cdi.Cache, database: Callable[[], DatabaseState], patience: float
) -> Local:
    """Look at everything that needs no API server.

    Args:
        directories: Where to look.
        cache: The CDI specs that a runtime reads.
        database: Looks at the machine's database without changing it.
        patience: Seconds that each socket has.
    """
    unseen: list[Unseen] = []
    kubelet = directories.kubelet
    paths = [path for pattern in _PATTERNS for path in _sockets(kubelet, pattern, unseen)]
    if len(paths) > _MOST_SOCKETS:
        unseen.append(Unseen("further sockets of the kubelet", f"there are more than {_MOST_SOCKETS}"))
    slots = asyncio.Semaphore(_AT_ONCE)

    async def served(path: Path) -> bool:
        async with slots:
            return await listens(path, patience)

    asked = asyncio.create_task(registered_plugins(kubelet / "plugins_registry", patience=patience))
    answers = await asyncio.gather(*map(served, paths[:_MOST_SOCKETS]))
    plugins = await asked
    if directories.root is None and cache.specs():
        unseen.append(Unseen("what CDI specs name on the host", "a pod sees its own files"))
    state = await asyncio.to_thread(database)
    claims: Sequence[Claim] | None = None
    if state[0] == "healthy":
        try:
            claims = await asyncio.to_thread(_claims, directories.state)
        except DrahtError as error:
            unseen.append(Unseen("prepared claims", str(error)))
    return Local(
        plugins=plugins,
        sockets=dict(zip(paths, answers, strict=False)),
        claims=claims,
        database=state,
        cache=cache,
        boot_id=boot_id(),
        unseen=unseen,
    )


_PATTERNS: Final = ("plugins_registry/*", "plugins/*/*", "device-plugins/*", "pod-resources/*")


def _sockets(kubelet: Path, pattern: str, unseen: list[Unseen]) -> list[Path]:
    """Sockets below the kubelet's directory; one that can't be looked at is told, and hides no other."""
    found = []
    try:
        paths = sorted(kubelet.glob(pattern))
    except OSError as error:
        unseen.append(Unseen(f"{kubelet}/{pattern}", error.strerror or str(error)))
        return []
    for path in paths:
        try:
            if stat.S_ISSOCK(path.lstat().st_mode):
                found.append(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            unseen.append(Unseen(str(path), error.strerror or str(error)))
    return found


def _claims(directory: Path) -> Sequence[Claim]:
    with Database(directory, busy_seconds=5.0).reading() as tx:
        return all_claims(tx)
