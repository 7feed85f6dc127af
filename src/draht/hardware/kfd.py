"""Links between AMD GPUs, from the topology that the amdgpu driver's compute part (KFD) shows in sysfs.

A node there is a processor or a GPU; its ``io_links`` say what it is connected to and how. Only Infinity Fabric links
between GPUs are of interest: PCIe is known from the tree already.
"""

from __future__ import annotations

from collections.abc import Mapping

from draht.hardware.files import Files
from draht.hardware.topology import Link

__all__ = ["links"]

_NODES = "sys/class/kfd/kfd/topology/nodes"
_XGMI = 11
"""``CRAT_IOLINK_TYPE_XGMI`` in Linux, drivers/gpu/drm/amd/amdkfd/kfd_crat.h."""


def links(files: Files, ids: Mapping[str, str]) -> tuple[Link, ...]:
    """The XGMI links between GPUs, each once.

    Args:
        files: The machine.
        ids: PCI address → id of the GPUs.
    """
    gpus: dict[int, str] = {}
    names = [name for name in files.names(_NODES) if name.isdecimal() and len(name) < 6]
    for name in names:
        properties = _properties(files.text(f"{_NODES}/{name}/properties"))
        address = _address(properties)
        if address in ids:
            gpus[int(name)] = ids[address]
    found: set[tuple[str, str]] = set()
    for name in names:
        if int(name) not in gpus:
            continue
        base = f"{_NODES}/{name}/io_links"
        for link in files.names(base):
            properties = _properties(files.text(f"{base}/{link}/properties"))
            other = gpus.get(properties.get("node_to", -1))
            if properties.get("type") == _XGMI and other is not None and other != gpus[int(name)]:
                a, b = sorted((gpus[int(name)], other))
                found.add((a, b))
    order = list(ids.values())
    pairs = (sorted(pair, key=order.index) for pair in found)
    return tuple(
        Link(kind="xgmi", a=a, b=b, count=1)
        for a, b in sorted(pairs, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))
    )


def _properties(text: str | None) -> dict[str, int]:
    """Lines of a word and a number."""
    words = (line.split() for line in (text or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal() and len(pair[1]) <= 20}


def _address(properties: Mapping[str, int]) -> str:
    """``location_id`` has bus, device and function in 16 bits; the domain has a property of its own."""
    location, domain = properties.get("location_id", 0), properties.get("domain", 0)
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"
