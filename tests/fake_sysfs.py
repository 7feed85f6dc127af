"""Writes a machine profile as the files that a Linux kernel would show on such a machine: ``/sys`` and ``/proc``.

The tree comes from the profile's own slots, so that the sysfs provider and the simulated one can disagree. What a
profile leaves to a rule (UUIDs, minors) is taken from the simulated inventory.
"""

from __future__ import annotations

from pathlib import Path

from draht.hardware import profiles
from draht.hardware.inventory import Inventory
from draht.hardware.profiles.format import Model, Place, Profile, places
from draht.hardware.simulated import SimulatedProvider

__all__ = ["add_function", "build", "write"]


def write(root: Path, path: str, text: str) -> None:
    """One file below the root, with a line end as the kernel writes it."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"{text}\n")


def add_function(root: Path, chain: str, files: dict[str, str]) -> Path:
    """One PCI function: its directory below ``sys/devices`` and the link on the bus; gives the directory."""
    directory = root / "sys/devices" / chain
    for name, text in files.items():
        write(directory, name, text)
    bus = root / "sys/bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    (bus / directory.name).symlink_to(f"../../../devices/{chain}")
    return directory


def build(profile: Profile, root: Path) -> Inventory:
    """Write the machine below a root; gives the simulated inventory of the same profile."""
    inventory = SimulatedProvider(profile).inventory()
    models = {**profiles.catalogue(), **profile.models}
    for place in places(profile):
        node = -1 if place.root.numa_node is None else place.root.numa_node
        chain = "/".join([place.root.root, *(address for _, address in place.above), place.address])
        if place.key != "device":
            add_function(root, chain, {**_bridge(), "numa_node": str(node)})
            continue
        model = models[place.slot.model]
        directory = add_function(root, chain, {**_ids(model), "numa_node": str(node)})
        if model.kind == "gpu":
            _gpu(root, directory, place, inventory)
        elif model.kind == "nic":
            _network(root, chain, place, models, node)
    _system(root, profile)
    _fabric(root, inventory)
    return inventory


def _bridge() -> dict[str, str]:
    return {"vendor": "0x8086", "device": "0x352a", "class": "0x060400"}


def _ids(model: Model) -> dict[str, str]:
    ids = model.pci
    files = {"vendor": ids.vendor, "device": ids.device, "class": ids.class_}
    if ids.subsystem_vendor:
        files |= {"subsystem_vendor": ids.subsystem_vendor, "subsystem_device": ids.subsystem_device}
    return files


def _gpu(root: Path, directory: Path, place: Place, inventory: Inventory) -> None:
    gpu = next(device for device in inventory.gpus() if device.pci_address == place.address)
    for path in gpu.device_nodes:
        if path.startswith("/dev/dri/"):
            (directory / "drm" / Path(path).name).mkdir(parents=True)
    if gpu.vendor == "amd":
        write(directory, "unique_id", (gpu.uuid or "").removeprefix("GPU-"))
        write(directory, "mem_info_vram_total", str(gpu.memory_bytes))
        write(root, "sys/module/amdgpu/version", inventory.driver_version or "")
        return
    text = (
        f"Model: \t\t {gpu.product}\nIRQ:   \t\t 274\nGPU UUID: \t {gpu.uuid}\nVideo BIOS: \t 96.00.61.00.01\n"
        f"Bus Type: \t PCIe\nBus Location: \t {gpu.pci_address}\nDevice Minor: \t {gpu.attributes['minor']}\n"
        "GPU Excluded:\t No"
    )
    write(root, f"proc/driver/nvidia/gpus/{place.address}/information", text)
    write(root, "sys/module/nvidia/version", inventory.driver_version or "")


def _fabric(root: Path, inventory: Inventory) -> None:
    """KFD's topology: processors first, then the AMD GPUs, each with links to a processor and to the other GPUs."""
    gpus = [gpu for gpu in inventory.gpus() if gpu.vendor == "amd"]
    if not gpus:
        return
    nodes = "sys/class/kfd/kfd/topology/nodes"
    write(root, f"{nodes}/0/properties", "cpu_cores_count 96\nsimd_count 0\nlocation_id 0\ndomain 0")
    numbers = {gpu.id: number for number, gpu in enumerate(gpus, 1)}
    for gpu in gpus:
        domain, bus, _ = (gpu.pci_address or "").split(":")
        base = f"{nodes}/{numbers[gpu.id]}"
        write(root, f"{base}/properties", f"simd_count 1216\nlocation_id {int(bus, 16) << 8}\ndomain {int(domain, 16)}")
        write(root, f"{base}/io_links/0/properties", f"type 2\nnode_from {numbers[gpu.id]}\nnode_to 0\nweight 20")
        others = [{link.a, link.b} - {gpu.id} for link in inventory.links if gpu.id in (link.a, link.b)]
        for number, other in enumerate(sorted(numbers[id_] for ids in others for id_ in ids), 1):
            text = f"type 11\nnode_from {numbers[gpu.id]}\nnode_to {other}\nweight 15"
            write(root, f"{base}/io_links/{number}/properties", text)


def _network(root: Path, chain: str, place: Place, models: dict[str, Model], node: int) -> None:
    slot, model = place.slot, models[place.slot.model]
    directory = root / "sys/devices" / chain
    if slot.interface:
        write(directory, f"net/{slot.interface}/speed", str((model.gbps or 0) * 1000))
    if slot.rdma:
        layer = {"infiniband": "InfiniBand", "ethernet": "Ethernet"}[model.link_layer]
        write(directory, f"infiniband/{slot.rdma}/ports/1/link_layer", layer)
    if slot.sriov is None:
        return
    write(directory, "sriov_totalvfs", str(slot.sriov.total))
    virtual = models[slot.sriov.model]
    for number, address in enumerate(slot.sriov.functions):
        (directory / f"virtfn{number}").symlink_to(f"../{address}")
        below = chain.removesuffix(place.address) + address
        function = add_function(root, below, {**_ids(virtual), "numa_node": str(node)})
        (function / "physfn").symlink_to(f"../{place.address}")
        if virtual.rdma:
            (function / "infiniband" / f"{slot.rdma}_v{number}").mkdir(parents=True)


def _system(root: Path, profile: Profile) -> None:
    write(root, "proc/sys/kernel/hostname", profile.name)
    write(root, "proc/meminfo", f"MemTotal:       {profile.memory_mib * 1024} kB\nMemFree:        1 kB")
    write(root, "proc/cpuinfo", f"processor\t: 0\nmodel name\t: {profile.cpu.model}\n")
    cpu = profile.cpu
    threads, cores, sockets = cpu.threads or 1, cpu.cores or 1, cpu.sockets or 1
    for number in range(threads):
        core = number % cores
        topology = f"sys/devices/system/cpu/cpu{number}/topology"
        write(root, f"{topology}/physical_package_id", str(core * sockets // cores))
        write(root, f"{topology}/core_id", str(core))
    for numa in profile.numa:
        base = f"sys/devices/system/node/node{numa.id}"
        write(root, f"{base}/cpulist", numa.cpus)
        write(root, f"{base}/distance", " ".join(map(str, numa.distances)))
        write(root, f"{base}/meminfo", f"Node {numa.id} MemTotal:       {(numa.memory_mib or 0) * 1024} kB")
