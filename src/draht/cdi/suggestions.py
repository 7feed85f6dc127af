"""Which of the names on offer a person may have meant.

Owns the comparison of names for `draht.cdi.explain`. The work is bounded: of a huge offer the first names are compared.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from draht.cdi.cache import Cache
from draht.cdi.names import QualifiedName

__all__ = ["near_names", "near_unqualified"]

_MAX_NEAR = 5
_MAX_COMPARED = 2000


def near_unqualified(cache: Cache, name: str) -> tuple[str, ...]:
    """Offered names that an unqualified one may stand for: its device part, its kind, or a name without ``=``."""
    devices = cache.devices()[:_MAX_COMPARED]
    same = [
        device
        for device in devices
        if name and (name in device.partition("=")[::2] or device.endswith((f"/{name}", f".{name}")))
    ]
    return tuple((same or difflib.get_close_matches(name, devices, _MAX_NEAR))[:_MAX_NEAR])


def near_names(cache: Cache, wanted: QualifiedName, offered: Sequence[str]) -> tuple[str, ...]:
    """Offered names that may have been meant: the same device of another kind, then similar devices of this kind."""
    devices = cache.devices()
    elsewhere = [device for device in devices[:_MAX_COMPARED] if device.partition("=")[2] == wanted.name]
    # Vendors that share the end (nvidia.com, management.nvidia.com) are mixed up more often than others.
    elsewhere.sort(key=lambda device: not _related(device, wanted))
    numbered = [f"{wanted.kind}={name}" for name in offered[:_MAX_COMPARED] if _number(name) == _number(wanted.name)]
    folded = {device.lower(): device for device in offered[:_MAX_COMPARED]}
    similar = difflib.get_close_matches(wanted.name.lower(), folded, _MAX_NEAR)
    names = [*elsewhere, *numbered, *(f"{wanted.kind}={folded[name]}" for name in similar)]
    return tuple(dict.fromkeys(names))[:_MAX_NEAR]


def _number(name: str) -> str:
    """What nvidia-ctk's two ways to number devices have in common: ``0`` of ``gpu0``, ``0:1`` of ``mig0:1``."""
    return re.sub(r"^(gpu|mig)(?=\d)", "", name)


def _related(device: str, wanted: QualifiedName) -> bool:
    vendor = device.partition("/")[0]
    return vendor.endswith(wanted.vendor) or wanted.vendor.endswith(vendor)
