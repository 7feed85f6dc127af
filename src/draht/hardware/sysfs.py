"""What the Linux kernel knows about a machine's PCI devices: GPUs, accelerators, NVSwitches and network functions.

Works on any Linux, without a driver library and without privileges, below a root that is a parameter. Where NVIDIA's
kernel module is loaded its ``/proc`` files give the UUID and the number of the device node; where amdgpu is loaded it
gives memory, unique ids and links. Memory of NVIDIA GPUs, NVLinks and MIG instances aren't in the kernel's files; CDI
specs tell of instances (`draht.hardware.cdi`), NVML of the rest (`draht.hardware.nvml`).

A function that can't be read is recorded and left out; it never hides the others.
"""

from __future__ import annotations

import platform
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from draht.hardware import kfd, mig, processors
from draht.hardware.files import Files
from draht.hardware.inventory import Bridge, Device, Inventory, Kind, RootComplex
from draht.hardware.pci import VENDORS, kind_of, sort_key
from draht.hardware.profiles import catalogue
from draht.hardware.profiles.format import Model

__all__ = ["SysfsProvider", "pcie_root"]

_BUS = "sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_UPSTREAM_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_WORD = re.compile(r"0x[0-9a-f]{4}")
_CLASS = re.compile(r"0x[0-9a-f]{6}")
_ORDER = {"gpu": 0, "accelerator": 1, "nvswitch": 2, "nic": 3}


class _Function(msgspec.Struct, frozen=True):
    """A PCI function worth listing, before it has a number."""

    address: str
    kind: Kind
    vendor: str
    ids: Mapping[str, str]
    model: Model | None
    root: str | None
    above: tuple[str, ...]
    numa_node: int | None


class SysfsProvider:
    """The devices the kernel enumerated; see `draht.hardware.inventory.Provider`.

    Args:
        root: Directory that has ``sys`` and ``proc``; ``/`` for this machine.
    """

    def __init__(self, root: str | Path = "/") -> None:
        self._root = root

    def inventory(self) -> Inventory:
        """Look at the machine now."""
        files = Files(self._root)
        functions = [function for name in files.names(_BUS) if (function := _function(files, name))]
        devices = tuple(_devices(files, functions))
        here = platform.machine() if str(self._root) == "/" else ""
        return Inventory(
            machine=processors.hostname(files),
            source="sysfs",
            devices=devices,
            cpu=processors.cpu(files, here),
            memory_bytes=processors.memory_bytes(files),
            numa_nodes=processors.numa_nodes(files),
            roots=tuple(_roots(functions)),
            bridges=tuple(_bridges(functions)),
            links=kfd.links(files, {d.pci_address: d.id for d in devices if d.pci_address and d.vendor == "amd"}),
            driver_version=_driver_version(files, functions),
            problems=tuple(files.problems),
        )


def pcie_root(files: Files, address: str) -> str | None:
    """The value of ``resource.kubernetes.io/pcieRoot`` for a PCI address, or None where upstream has none.

    The rule of k8s.io/dynamic-resource-allocation (package ``deviceattribute``): the address has a four-digit domain in
    lower case, the link in ``bus/pci/devices`` leads to a path that starts with ``devices/pci`` and ends with the
    address, and the value is the first component after ``devices``.
    """
    if not _UPSTREAM_ADDRESS.fullmatch(address):
        return None
    parts = _place(files, address)
    if len(parts) < 3 or parts[0] != "devices" or not parts[1].startswith("pci") or parts[-1] != address:
        return None
    return parts[1]


def _place(files: Files, address: str) -> list[str]:
    """Components of the path below ``sys`` that a device's link leads to; nothing without a link."""
    target = files.link(f"{_BUS}/{address}")
    if target is None:
        return []
    return posixpath.normpath(posixpath.join("bus/pci/devices", target)).split("/")


def _function(files: Files, address: str) -> _Function | None:
    base = f"{_BUS}/{address}"
    if not _ADDRESS.fullmatch(address):
        files.problem(base, "isn't a PCI address")
        return None
    ids = {key: files.text(f"{base}/{key}") or "" for key in ("vendor", "device", "class")}
    if not (_WORD.fullmatch(ids["vendor"]) and _WORD.fullmatch(ids["device"]) and _CLASS.fullmatch(ids["class"])):
        files.problem(base, "has no readable vendor, device and class and is left out")
        return None
    vendor = VENDORS.get(ids["vendor"], "")
    physical = kind_of(vendor, ids["class"])
    if physical is None:
        return None
    kind: Kind = physical if files.link(f"{base}/physfn") is None else "vf"
    for key in ("subsystem_vendor", "subsystem_device"):
        ids[key] = files.text(f"{base}/{key}") or ""
    parts = _place(files, address)
    if not parts:
        files.problem(base, "isn't a link, so its place in the PCIe tree isn't known")
    # Between a root and its devices stand bridges only; anything else (a VMD controller's own domain) hides the tree.
    known = len(parts) > 2 and bool(_ROOT.fullmatch(parts[1])) and all(map(_ADDRESS.fullmatch, parts[2:]))
    numa_node = files.number(f"{base}/numa_node")
    return _Function(
        address=address,
        kind=kind,
        vendor=vendor,
        ids=ids,
        model=_model(ids),
        root=parts[1] if known else None,
        above=tuple(parts[2:-1]) if known else (),
        numa_node=numa_node if numa_node is not None and numa_node >= 0 else None,
    )


def _model(ids: Mapping[str, str]) -> Model | None:
    """The catalogue's entry for these ids; the class tells apart what has one id for InfiniBand and Ethernet."""
    same = [
        model
        for model in catalogue().values()
        if (model.pci.vendor, model.pci.device) == (ids["vendor"], ids["device"])
    ]
    return next((model for model in same if model.pci.class_[:6] == ids["class"][:6]), same[0] if same else None)


def _devices(files: Files, functions: list[_Function]) -> list[Device]:
    """The devices in the order that an inventory promises, numbered as the vendors' tools do: by address."""
    virtual = {function.address: function for function in functions if function.kind == "vf"}
    counts: dict[tuple[str, str], int] = {}
    devices: list[Device] = []
    physical = [function for function in functions if function.kind != "vf"]

    def order(function: _Function) -> tuple[int, str, tuple[int, ...]]:
        by_vendor = function.vendor if function.kind in {"gpu", "accelerator"} else ""
        return _ORDER[function.kind], by_vendor, sort_key(function.address)

    for function in sorted(physical, key=order):
        key = (function.kind, order(function)[1])
        index = counts.get(key, 0)
        counts[key] = index + 1
        device = _device(files, function, index)
        devices.append(device)
        for number, address in _virtual_functions(files, function.address):
            if address in virtual:
                devices.append(_device(files, virtual.pop(address), number, parent=device.id))
    # A virtual function whose physical one stayed outside (it was passed to this virtual machine).
    devices.extend(_device(files, function, None) for function in virtual.values())
    return devices


def _virtual_functions(files: Files, address: str) -> list[tuple[int, str]]:
    if files.text(f"{_BUS}/{address}/sriov_totalvfs") is None:
        return []
    found = []
    for name in files.names(f"{_BUS}/{address}"):
        target = files.link(f"{_BUS}/{address}/{name}") if re.fullmatch(r"virtfn[0-9]{1,5}", name) else None
        if target is not None:
            found.append((int(name[6:]), posixpath.basename(target)))
    return sorted(found)


def _device(files: Files, function: _Function, index: int | None, parent: str | None = None) -> Device:
    model, address = function.model, function.address
    details = _gpu(files, function) if function.kind in {"gpu", "accelerator"} else _network(files, function)
    id_ = details.uuid or address
    table = model.mig if model is not None and function.kind == "gpu" else ""
    return Device(
        id=id_,
        kind=function.kind,
        index=index,
        vendor=function.vendor,
        product=details.product or (model.product if model else ""),
        architecture=model.architecture if model else "",
        compute_capability=model.compute_capability if model else "",
        uuid=details.uuid,
        pci_address=address,
        pcie_root=pcie_root(files, address),
        pcie_parent=function.above[-1] if function.above else function.root,
        numa_node=function.numa_node,
        memory_bytes=details.memory_bytes,
        mig_capable=bool(table),
        parent=parent,
        units=frozenset({id_}) | (mig.units(id_) if table else frozenset()),
        device_nodes=details.nodes,
        attributes={**_identity(files, function), **details.attributes},
    )


def _identity(files: Files, function: _Function) -> dict[str, str | int | bool]:
    ids = function.ids
    known: dict[str, str | int | bool] = {"vendorID": ids["vendor"], "deviceID": ids["device"]}
    if _WORD.fullmatch(ids["subsystem_vendor"]) and _WORD.fullmatch(ids["subsystem_device"]):
        known["subsystemID"] = f"{ids['subsystem_vendor']}:{ids['subsystem_device']}"
    if driver := files.link(f"{_BUS}/{function.address}/driver"):
        known["driver"] = posixpath.basename(driver)
    return known


class _Details(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver of a function adds to its PCI identity."""

    uuid: str | None = None
    product: str = ""
    memory_bytes: int | None = None
    nodes: tuple[str, ...] = ()
    attributes: Mapping[str, str | int | bool] = {}


def _gpu(files: Files, function: _Function) -> _Details:
    base = f"{_BUS}/{function.address}"
    nodes = [
        f"/dev/{directory}/{name}"
        for directory, sysfs in (("dri", "drm"), ("accel", "accel"))
        for name in files.names(f"{base}/{sysfs}")
        if re.fullmatch(r"(card|renderD|accel)[0-9]+", name)
    ]
    if function.vendor == "amd":
        unique = files.text(f"{base}/unique_id") or ""
        return _Details(
            uuid=f"GPU-{unique}" if re.fullmatch(r"[0-9a-f]{1,16}", unique) else None,
            product=files.text(f"{base}/product_name") or "",
            memory_bytes=files.number(f"{base}/mem_info_vram_total"),
            nodes=tuple(nodes),
        )
    if function.vendor == "nvidia":
        text = files.text(f"proc/driver/nvidia/gpus/{function.address}/information") or ""
        told = dict(re.findall(r"^([A-Z][A-Za-z ]*):[ \t]*(\S.*?)\s*$", text, re.MULTILINE))
        minor = told.get("Device Minor", "")
        number = int(minor) if re.fullmatch(r"[0-9]{1,6}", minor) else None
        uuid = told.get("GPU UUID", "")
        return _Details(
            # Before the first use the module prints question marks in place of digits.
            uuid=uuid if re.fullmatch(r"GPU-[0-9a-f-]{36}", uuid) else None,
            product=told.get("Model", ""),
            nodes=(*([f"/dev/nvidia{number}"] if number is not None else []), *nodes),
            attributes={} if number is None else {"minor": number},
        )
    return _Details(nodes=tuple(nodes))


def _network(files: Files, function: _Function) -> _Details:
    base = f"{_BUS}/{function.address}"
    if function.kind == "nvswitch":
        return _Details()
    rdma = files.names(f"{base}/infiniband")
    # A virtio function has a device of its own bus between itself and the interface.
    net = next((path for path in (f"{base}/net", *_virtio(files, base)) if files.names(path)), f"{base}/net")
    interfaces = files.names(net)
    attributes: dict[str, str | int | bool] = {
        "linkLayer": "infiniband" if function.ids["class"].startswith("0x0207") else "ethernet",
        "rdma": bool(rdma),
    }
    if rdma:
        attributes["rdmaDevice"] = rdma[0]
        if layer := files.text(f"{base}/infiniband/{rdma[0]}/ports/1/link_layer"):
            attributes["linkLayer"] = layer.lower()
    if interfaces:
        attributes["interface"] = interfaces[0]
        speed = files.number(f"{net}/{interfaces[0]}/speed")
        if speed is not None and speed >= 1000:
            attributes["speedGbps"] = speed // 1000
    if (total := files.number(f"{base}/sriov_totalvfs")) is not None and function.kind == "nic":
        attributes["sriovTotal"] = total
    return _Details(attributes=attributes)


def _virtio(files: Files, base: str) -> list[str]:
    return [f"{base}/{name}/net" for name in files.names(base) if re.fullmatch(r"virtio[0-9]+", name)]


def _roots(functions: list[_Function]) -> list[RootComplex]:
    nodes: dict[str, int | None] = {}
    for function in functions:
        if function.root is not None and nodes.get(function.root) is None:
            nodes[function.root] = function.numa_node
    return [RootComplex(name=name, numa_node=nodes[name]) for name in sorted(nodes, key=sort_key)]


def _bridges(functions: list[_Function]) -> list[Bridge]:
    """The bridges above the devices.

    Their role is in a register that only root may read, so it follows from the shape: below a root port or the
    downstream port of a switch, a bridge above bridges only is the upstream port of a switch.
    """
    parents: dict[str, tuple[str, str]] = {}
    with_devices = {function.above[-1] for function in functions if function.above}
    for function in functions:
        for number, address in enumerate(function.above):
            assert function.root is not None
            parents[address] = (function.above[number - 1] if number else function.root, function.root)
    ports: dict[str, str] = {}
    bridges = []
    for address in sorted(parents, key=sort_key):
        parent, root = parents[address]
        above = ports.get(parent, "")
        if parent == root:
            port = "root"
        elif above == "upstream":
            port = "downstream"
        else:
            port = "bridge" if address in with_devices or above == "bridge" else "upstream"
        ports[address] = port
        bridges.append(msgspec.convert({"address": address, "parent": parent, "root": root, "port": port}, Bridge))
    return bridges


def _driver_version(files: Files, functions: list[_Function]) -> str | None:
    vendors = {function.vendor for function in functions if function.kind == "gpu"}
    for vendor, module in (("nvidia", "nvidia"), ("amd", "amdgpu")):
        if vendor in vendors and (version := files.text(f"sys/module/{module}/version")):
            return version
    return None
