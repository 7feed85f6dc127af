"""What one device of a CDI spec says about the silicon behind it.

Owns reading a name and its edits: the style of the name, UUID, PCI address, and the *footprint*: the device nodes that
are this device's own. Nodes that every container of a vendor gets are left out of it. Grouping offers into devices is
`draht.hardware.cdi`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from draht import cdi

__all__ = ["NodeNames", "Offer", "offers"]

_CONTROL = frozenset(
    {
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
        "/dev/nvidia-modeset",
        "/dev/nvidia-caps/nvidia-cap1",
        "/dev/nvidia-caps/nvidia-cap2",
        "/dev/kfd",
        "/dev/vfio/vfio",
        "/dev/infiniband/rdma_cm",
    }
)
"""Nodes that belong to a driver, not to a device: control, unified memory, MIG configuration and monitoring."""

_GPU_NODE = re.compile(r"/dev/nvidia[0-9]+")
_WHOLE_NODE = re.compile(r"/dev/(nvidia|dri/renderD|accel/accel|vfio/)[0-9]+")
_FOR_ALL = frozenset({"/dev/dxg", "/dev/nvmap"})
_CAP_NODE = re.compile(r"/dev/nvidia-caps/nvidia-cap[0-9]+")
_STYLES = (
    ("uuid", re.compile(r"GPU-[0-9a-fA-F-]{8,36}")),
    ("mig-uuid", re.compile(r"MIG-(GPU-)?[0-9a-fA-F-]{8,36}(:[0-9]+:[0-9]+)?")),
    ("index", re.compile(r"([0-9]{1,4})")),
    ("type-index", re.compile(r"gpu([0-9]{1,4})")),
    ("mig-index", re.compile(r"([0-9]{1,4}):([0-9]{1,4})")),
    ("mig-type-index", re.compile(r"mig([0-9]{1,4}):([0-9]{1,4})")),
    ("all", re.compile(r"all")),
)
"""How NVIDIA's generator names devices (``--device-name-strategy``); AMD's uses the first, the third and the last."""

_NAMED_BY_ADDRESS = re.compile(r"(?:.*-)?([0-9a-f]{4})[-:]([0-9a-f]{2})[-:]([0-9a-f]{2})[-.]([0-7])(?:-0x[0-9a-f]{4})?")
_BY_PATH = re.compile(r"pci-([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])-(?:card|render)")


@dataclass(frozen=True, slots=True)
class Offer:
    """A qualified name and what its edits tell.

    Attributes:
        style: Which of the vendors' naming styles the name follows, ``other`` if none.
        numbers: The numbers in the name: GPU, and slot of a MIG instance.
        uuid: The UUID, if the name is one.
        pci_address: From the name (Intel's drivers) or the by-path links of the edits.
        footprint: The device's own nodes, by a name that is the same in all specs of the machine.
        nodes: Their host paths.
        edits: The whole device-specific edits in a form that is equal for equal edits.
        interface: Host network interface that it hands over.
    """

    name: str
    kind: str
    vendor: str
    class_: str
    style: str
    numbers: tuple[int, ...]
    uuid: str | None
    pci_address: str | None
    footprint: frozenset[str]
    nodes: tuple[str, ...]
    edits: object
    interface: str | None

    @property
    def gpu_nodes(self) -> frozenset[str]:
        """NVIDIA's nodes of whole GPUs among its own."""
        return frozenset(node for node in self.footprint if _GPU_NODE.fullmatch(node))

    @property
    def whole_nodes(self) -> frozenset[str]:
        """Those of its nodes that give access to a whole device, so that nobody else may have them."""
        return frozenset(node for node in self.footprint if _WHOLE_NODE.fullmatch(node))

    @property
    def shares_nodes(self) -> bool:
        """Whether its nodes tell nothing: under WSL and on a Jetson each GPU is reached through the nodes of all."""
        return bool(self.footprint & _FOR_ALL) or not self.whole_nodes

    @property
    def silicon(self) -> frozenset[str]:
        """The nodes that decide which silicon it is.

        For NVIDIA the GPU and MIG nodes: a device plugin's spec has the same GPU without the DRM nodes that a generated
        one adds.
        """
        decisive = frozenset(node for node in self.footprint if _GPU_NODE.fullmatch(node) or _CAP_NODE.fullmatch(node))
        return decisive or self.footprint

    @property
    def is_mig(self) -> bool:
        """Whether it is a MIG instance: it says so, or it opens one GPU together with an instance's capability."""
        return self.style.startswith("mig") or (
            len(self.gpu_nodes) == 1 and any(map(_CAP_NODE.fullmatch, self.footprint))
        )


class NodeNames:
    """One name for each device node of a machine, whatever paths specs give it.

    A driver container's spec has ``/run/nvidia/driver/dev/nvidia0`` where another has ``/dev/nvidia0``: the path in the
    container tells that they are the same, and so do equal device numbers.
    """

    def __init__(self, devices: Iterable[cdi.Device]) -> None:
        self._by_path: dict[str, str] = {}
        by_number: dict[tuple[int, int], str] = {}
        for device in devices:
            for node in device.container_edits.device_nodes:
                path = self._path(node)
                if node.major and path not in self._by_path:
                    self._by_path[path] = by_number.setdefault((node.major, node.minor), path)

    def __call__(self, node: cdi.DeviceNode) -> str:
        """The name of a node."""
        path = self._path(node)
        return self._by_path.get(path, path)

    @staticmethod
    def _path(node: cdi.DeviceNode) -> str:
        return node.path if not node.host_path or node.host_path.endswith(node.path) else node.host_path


def offers(devices: Mapping[str, cdi.Device]) -> list[Offer]:
    """The offers of all devices of a machine, given by qualified name, sorted by name."""
    name_of = NodeNames(devices.values())
    return [_offer(name, devices[name], name_of) for name in sorted(devices)]


def _offer(qualified: str, device: cdi.Device, name_of: NodeNames) -> Offer:
    parsed = cdi.parse_qualified_name(qualified)
    edits = device.container_edits
    own = [node for node in edits.device_nodes if name_of(node) not in _CONTROL]
    style, numbers = _style(parsed.name)
    texts = [mount.host_path for mount in edits.mounts] + [word for hook in edits.hooks for word in hook.args]
    addresses = {found for text in texts for found in _BY_PATH.findall(text)}
    named = _NAMED_BY_ADDRESS.fullmatch(parsed.name)
    if named:
        addresses = {f"{named[1]}:{named[2]}:{named[3]}.{named[4]}"}
    return Offer(
        name=qualified,
        kind=f"{parsed.vendor}/{parsed.class_}",
        vendor=parsed.vendor,
        class_=parsed.class_,
        style=style,
        numbers=numbers,
        uuid=parsed.name if style in {"uuid", "mig-uuid"} else None,
        pci_address=addresses.pop() if len(addresses) == 1 else None,
        footprint=frozenset(name_of(node) for node in own),
        nodes=tuple(dict.fromkeys(node.host_path or node.path for node in own)),
        edits=(
            frozenset(name_of(node) for node in edits.device_nodes),
            frozenset(edits.env),
            frozenset((mount.host_path, mount.container_path) for mount in edits.mounts),
            tuple((hook.hook_name, hook.path, hook.args) for hook in edits.hooks),
            edits.net_devices,
            edits.intel_rdt,
        ),
        interface=edits.net_devices[0].host_interface_name if len(edits.net_devices) == 1 else None,
    )


def _style(name: str) -> tuple[str, tuple[int, ...]]:
    for style, pattern in _STYLES:
        if found := pattern.fullmatch(name):
            return style, tuple(int(group) for group in found.groups() if group and group.isdecimal())
    return "other", ()
