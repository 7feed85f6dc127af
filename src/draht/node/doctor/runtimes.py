"""Which container runtimes give containers the CDI devices that the kubelet names, as data.

Sources: containerd's ``RELEASES.md`` at v2.4.2 (``enable_cdi`` is deprecated since 2.2 and gone in 2.4: always on);
the older rows (opt-in in 1.7, on since 2.0; cri-o since 1.23) are what their users report, and weren't tried here. The
kubelet hands CDI names over in a field of the CRI since Kubernetes 1.28.

Rules for what isn't listed, on the careful side: a runtime that isn't known is told as such, not as good.
"""

from __future__ import annotations

import re
from typing import Final, Literal

__all__ = ["Support", "cdi_support"]

Support = Literal["on", "opt-in", "none", "unknown"]

_RUNTIMES: Final[dict[str, tuple[tuple[tuple[int, int], Support], ...]]] = {
    "containerd": (((0, 0), "none"), ((1, 7), "opt-in"), ((2, 0), "on")),
    "cri-o": (((0, 0), "none"), ((1, 23), "on")),
}
"""Runtime → first release of each behaviour."""
_VERSION: Final = re.compile(r"(?P<name>[a-z-]+)://v?(?P<major>\d+)\.(?P<minor>\d+)")


def cdi_support(version: str) -> Support:
    """What a runtime does with CDI devices by default.

    Args:
        version: As a node's ``status.nodeInfo.containerRuntimeVersion`` has it: ``containerd://2.1.4``.
    """
    match = _VERSION.match(version)
    if match is None or match["name"] not in _RUNTIMES:
        return "unknown"
    release = (int(match["major"]), int(match["minor"]))
    return [support for first, support in _RUNTIMES[match["name"]] if first <= release][-1]
