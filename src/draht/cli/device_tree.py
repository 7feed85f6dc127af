"""An inventory as text for people: names of devices, sizes, and the tree of NUMA nodes, PCIe roots, switches, devices.

Owns drawing only. Ports that lead to one thing aren't drawn: a person looks for what shares a switch, and a line per
port would hide it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from draht.hardware.inventory import Device, Inventory

__all__ = ["headline", "label", "names", "size", "tree"]

_PORT = {"root": "root port", "upstream": "switch", "downstream": "port", "bridge": "bridge"}


def label(device: Device, inventory: Inventory) -> str:
    """A short name: ``gpu 3``, ``mig 0:1``, ``nic 2``, ``nic 2 vf 0``; the id where nothing is counted."""
    above = inventory.device(device.parent) if device.parent else None
    if device.kind == "mig" and device.index is not None:
        return f"mig {device.index}:{device.attributes.get('slot', '?')}"
    if device.kind == "vf" and above is not None:
        return f"{label(above, inventory)} vf {device.index}"
    several = len({other.vendor for other in inventory.gpus()}) > 1
    vendor = f"{device.vendor} " if device.kind == "gpu" and several else ""
    return f"{vendor}{device.kind} {device.index}" if device.index is not None else device.kind


def names(device: Device) -> str:
    """What the operating system and CDI call it: interface, RDMA device, qualified names."""
    known = [str(device.attributes[key]) for key in ("interface", "rdmaDevice") if key in device.attributes]
    return ", ".join([*known, *device.cdi_names])


def size(count: int | None) -> str:
    """Bytes in the largest binary unit that keeps a number above one: ``79.6 GiB``."""
    if count is None:
        return ""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def headline(inventory: Inventory) -> list[str]:
    """What machine it is and, where known, its processors, memory and driver."""
    simulated = " (simulated)" if inventory.simulated else ""
    about = f": {inventory.description}" if inventory.description else ""
    facts = []
    cpu = inventory.cpu
    if cpu is not None:
        sockets = f"{cpu.sockets} x " if cpu.sockets and cpu.sockets > 1 else ""
        cores = f", {cpu.cores} cores" if cpu.cores else ""
        facts.append(f"{sockets}{cpu.model or cpu.architecture or 'processor'}{cores}")
    if inventory.memory_bytes:
        facts.append(f"{size(inventory.memory_bytes)} memory")
    if inventory.driver_version:
        facts.append(f"driver {inventory.driver_version}")
    if inventory.cuda_version:
        facts.append(f"CUDA {inventory.cuda_version}")
    return [f"{inventory.machine}{simulated}{about}", *([", ".join(facts)] if facts else [])]


@dataclass(slots=True)
class _Node:
    text: str
    below: list[_Node] = field(default_factory=list)
    foldable: bool = False


def tree(inventory: Inventory) -> Iterator[str]:
    """The lines of the tree."""
    top = headline(inventory)
    yield from top
    nodes = _numa(inventory)
    for number, node in enumerate(nodes):
        yield from _draw(node, "", last=number == len(nodes) - 1)
    yield from _links(inventory)


def _draw(node: _Node, indent: str, *, last: bool) -> Iterator[str]:
    yield f"{indent}{'└─' if last else '├─'} {node.text}"
    for number, child in enumerate(node.below):
        yield from _draw(child, indent + ("   " if last else "│  "), last=number == len(node.below) - 1)


def _numa(inventory: Inventory) -> list[_Node]:
    places: dict[int | None, list[_Node]] = {node.id: [] for node in inventory.numa_nodes}
    placed: set[str] = set()
    roots: dict[str, _Node] = {}
    for root in inventory.roots:
        roots[root.name] = _Node(root.name)
    bridges = {bridge.address: _Node(f"{_PORT[bridge.port]} {bridge.address}") for bridge in inventory.bridges}
    for bridge in inventory.bridges:
        bridges[bridge.address].foldable = bridge.port != "upstream"
    above = {**roots, **bridges}
    children: dict[str, list[tuple[str, _Node]]] = {}
    for bridge in inventory.bridges:
        children.setdefault(bridge.parent, []).append((bridge.address, bridges[bridge.address]))
    for device in inventory.devices:
        if device.kind in {"mig", "vf"} and device.parent:
            continue
        node = _device(device, inventory)
        if device.pcie_parent in above:
            children.setdefault(device.pcie_parent, []).append((device.pci_address or "", node))
            placed.add(device.id)
        else:
            places.setdefault(device.numa_node, []).append(node)
    for name, found in children.items():
        if name in above:
            above[name].below = [node for _, node in sorted(found, key=lambda pair: pair[0])]
    for root in inventory.roots:
        if roots[root.name].below:
            places.setdefault(root.numa_node, []).append(_folded(roots[root.name]))
    about = {node.id: node for node in inventory.numa_nodes}
    drawn = []
    for number in sorted(places, key=lambda number: (number is None, number)):
        if number is None:
            drawn.append(_Node("NUMA node not known", places[number]))
            continue
        numa = about.get(number)
        facts = [f"CPUs {numa.cpus}"] if numa and numa.cpus else []
        facts += [size(numa.memory_bytes)] if numa and numa.memory_bytes else []
        text = f"NUMA node {number}" + (f" ({', '.join(facts)})" if facts else "")
        drawn.append(_Node(text, places[number]))
    return drawn


def _folded(node: _Node) -> _Node:
    below = []
    for child in map(_folded, node.below):
        below.extend(child.below if child.foldable and len(child.below) <= 1 else [child])
    return _Node(node.text, below, node.foldable)


def _device(device: Device, inventory: Inventory) -> _Node:
    words = [label(device, inventory)]
    if device.pci_address and device.kind != "mig":
        words.append(device.pci_address)
    words.append(device.product or f"{device.attributes.get('vendorID', '')}:{device.attributes.get('deviceID', '')}")
    if device.memory_bytes:
        words.append(size(device.memory_bytes))
    if known := names(device):
        words.append(f"({known})")
    below = [other for other in inventory.devices if other.parent == device.id]
    return _Node("  ".join(word for word in words if word.strip(":")), [_device(child, inventory) for child in below])


def _links(inventory: Inventory) -> Iterator[str]:
    gpus = len(inventory.gpus())
    sets: dict[tuple[str, str, int, str], list[tuple[str, str]]] = {}
    for link in inventory.links:
        sets.setdefault((link.kind, link.version, link.count, link.via), []).append((link.a, link.b))
    for (kind, version, count, via), pairs in sets.items():
        name = f"{'NVLink' if kind == 'nvlink' else 'XGMI'} {version}".strip()
        through = " through NVSwitch" if via == "nvswitch" else ""
        if len(pairs) == gpus * (gpus - 1) // 2:
            between = "every two GPUs"
        else:
            found = [(inventory.device(a), inventory.device(b)) for a, b in pairs]
            between = ", ".join(f"{label(a, inventory)} and {label(b, inventory)}" for a, b in found if a and b)
        yield f"{name}: {count} link{'s' if count != 1 else ''} between {between}{through}"
