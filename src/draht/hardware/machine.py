"""This machine: what the kernel enumerated joined with what CDI specs offer.

Owns matching the two. A device is the same when it has the same UUID, PCI address, GPU node, render node or network
interface; then the kernel's facts and the specs' names are one device. What only one of them knows stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from draht import cdi
from draht.hardware.cdi import CDIProvider
from draht.hardware.inventory import Device, Inventory
from draht.hardware.sysfs import SysfsProvider

__all__ = ["MachineProvider", "join"]

_NODE = re.compile(r"/dev/(nvidia[0-9]+|dri/renderD[0-9]+|accel/accel[0-9]+)$")


class MachineProvider:
    """The real machine; see `draht.hardware.inventory.Provider`.

    Args:
        cache: CDI specs of the machine.
        root: Directory that has ``sys`` and ``proc``.
    """

    def __init__(self, cache: cdi.Cache, root: str = "/") -> None:
        self._cache = cache
        self._sysfs = SysfsProvider(root)

    def inventory(self) -> Inventory:
        """Look at the machine now."""
        kernel = self._sysfs.inventory()
        return join(kernel, CDIProvider(self._cache, machine=kernel.machine).inventory())


def join(kernel: Inventory, specs: Inventory) -> Inventory:
    """The inventory of a machine from the kernel's and the specs' view of it; pure."""
    found = {key: device.id for device in kernel.devices for key in _keys(device)}
    same: dict[str, str] = {}
    rivals: dict[str, str] = {}
    for device in specs.devices:
        match = None if device.kind == "mig" else next((found[key] for key in _keys(device) if key in found), None)
        if match is not None:
            (rivals if match in same.values() else same)[device.id] = match
    offered = {same[device.id]: device for device in specs.devices if device.id in same}
    final = {device.id: _identity(device, offered.get(device.id)) for device in kernel.devices}
    names = {device.id: final[same[device.id]] if device.id in same else device.id for device in specs.devices}

    devices = [
        replace(
            _joined(device, offered.get(device.id), final[device.id]),
            parent=final.get(device.parent, device.parent) if device.parent else None,
        )
        for device in kernel.devices
    ]
    parents = {number: device for device in devices if device.kind == "gpu" for number in _gpu_nodes(device)}
    extra: dict[str, list[Device]] = {}
    for device in specs.devices:
        if device.id not in same:
            above = _parent(device, parents, names)
            units = _renamed(device, names, above)
            if device.id in rivals:
                # A second offer that the specs' own rules didn't join: it must not be held beside the first.
                units |= {final[rivals[device.id]]}
            child = replace(device, parent=above.id if above else device.parent, units=units)
            if above is not None:
                child = replace(
                    child,
                    product=child.product or above.product,
                    architecture=above.architecture,
                    compute_capability=above.compute_capability,
                    pci_address=above.pci_address,
                    pcie_root=above.pcie_root,
                    pcie_parent=above.pcie_parent,
                    numa_node=above.numa_node,
                )
            extra.setdefault(above.id if above else "", []).append(child)
    ordered: list[Device] = []
    for device in devices:
        below = extra.pop(device.id, [])
        held = device.units.union(*(child.units for child in below))
        if device.id in names.values():
            spec = next(spec for spec in specs.devices if names[spec.id] == device.id)
            held |= _renamed(spec, names, None)
        ordered += [replace(device, units=held), *below]
    ordered += [child for below in extra.values() for child in below]
    return replace(
        kernel,
        links=tuple(replace(link, a=final[link.a], b=final[link.b]) for link in kernel.links),
        source="sysfs+cdi",
        devices=tuple(ordered),
        aliases={name: tuple(sorted({names[id_] for id_ in ids})) for name, ids in specs.aliases.items()},
        problems=(*kernel.problems, *specs.problems),
    )


def _keys(device: Device) -> list[str]:
    keys = [device.uuid or "", device.pci_address or ""]
    keys += [node for path in device.device_nodes if (node := _node(path))]
    if device.kind in {"nic", "vf"} and "interface" in device.attributes:
        keys.append(f"interface {device.attributes['interface']}")
    return [key for key in keys if key]


def _node(path: str) -> str:
    """A decisive node without the prefix of a driver's own root directory."""
    found = _NODE.search(path)
    return found[0] if found else ""


def _gpu_nodes(device: Device) -> list[str]:
    return [node for path in device.device_nodes if (node := _node(path)).startswith("/dev/nvidia")]


def _identity(device: Device, offer: Device | None) -> str:
    return device.uuid or (offer.uuid if offer is not None and offer.uuid else device.id)


def _joined(device: Device, offer: Device | None, id_: str) -> Device:
    if offer is None:
        return device
    units = frozenset(_rename(unit, {device.id: id_}) for unit in device.units)
    return replace(
        device,
        id=id_,
        uuid=device.uuid or offer.uuid,
        index=device.index if offer.index is None else offer.index,
        units=units,
        cdi_names=offer.cdi_names,
        device_nodes=device.device_nodes or offer.device_nodes,
    )


def _parent(device: Device, parents: Mapping[str, Device], names: Mapping[str, str]) -> Device | None:
    if device.kind != "mig":
        return None
    nodes: Sequence[str] = _gpu_nodes(device)
    known = names.get(device.parent or "")
    return next((gpu for node, gpu in parents.items() if node in nodes or gpu.id == known), None)


def _renamed(device: Device, names: Mapping[str, str], above: Device | None) -> frozenset[str]:
    """The units under the final names; of an instance, as units of the GPU it turned out to belong to."""
    if above is not None:
        return frozenset({f"{above.id}#{device.id}"})
    return frozenset(_rename(unit, names) for unit in device.units)


def _rename(unit: str, names: Mapping[str, str]) -> str:
    owner, mark, part = unit.partition("#")
    return f"{names.get(owner, owner)}{mark}{part}"
