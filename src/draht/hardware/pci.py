"""PCI addresses, vendors and classes: the vocabulary that the simulated and the real machine share.

Owns the spelling and the order of addresses, and which function of a bus is worth listing. It reads nothing.
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["VENDORS", "drm_nodes", "kind_of", "root_name", "sort_key"]

VENDORS = {
    "0x1002": "amd",
    "0x10de": "nvidia",
    "0x14e4": "broadcom",
    "0x15b3": "mellanox",
    "0x1af4": "virtio",
    "0x1d0f": "amazon",
    "0x1da3": "habana",
    "0x1dd8": "pensando",
    "0x1e52": "tenstorrent",
    "0x8086": "intel",
}
"""PCI vendor id → short name (PCI ID repository)."""

_DISPLAY = {"nvidia", "amd", "intel"}
"""Vendors whose display controllers compute; a server's management controller (ASPEED, Matrox) shows a console only."""

_ROOT = re.compile(r"pci[0-9a-f]{4}:[0-9a-f]{2}")


def kind_of(vendor: str, class_: str) -> Literal["gpu", "accelerator", "nic", "nvswitch"] | None:
    """What a function is by vendor name and class (``0x030200``), or None if it isn't listed.

    Display controllers (03) and processing accelerators (12) of known vendors, network controllers (02) of anybody, and
    NVSwitches, which say that they are "other" bridges (PCI Code and ID Assignment Specification, §1).
    """
    base = class_[:4]
    if base == "0x03" and vendor in _DISPLAY:
        return "gpu"
    if base == "0x12" and vendor:
        return "gpu" if vendor in _DISPLAY else "accelerator"
    if base == "0x02":
        return "nic"
    if class_.startswith("0x0680") and vendor == "nvidia":
        return "nvswitch"
    return None


def root_name(root: str) -> str | None:
    """The name of a root if it is one that ``resource.kubernetes.io/pcieRoot`` may have, else None.

    The helper of k8s.io/dynamic-resource-allocation (``deviceattribute``) knows four-digit domains only; longer ones
    (VMD, some virtual machines) get no attribute.
    """
    return root if _ROOT.fullmatch(root) else None


def sort_key(address: str) -> tuple[int, ...]:
    """Order of addresses and of names of roots: by number, not by text, since domains differ in length."""
    return tuple(int(part, 16) for part in re.findall(r"[0-9a-f]+", address.removeprefix("pci")))


def drm_nodes(position: int) -> tuple[str, str]:
    """The DRM nodes that the kernel gives to the GPU it finds at that position; ``card0`` is a server's console."""
    return f"/dev/dri/card{position + 1}", f"/dev/dri/renderD{128 + position}"
