"""A machine profile as an inventory: the machine that isn't there, but looks like one to everything above.

Owns what a profile leaves to a rule: UUIDs (the same every day for a profile, an index and, if named, a node), numbers
of GPUs (by PCI address, as the vendors' tools count) and names of device nodes. Everything else it only rearranges.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from draht.hardware import mig, profiles
from draht.hardware.inventory import Bridge, Device, Inventory, Link, NUMANode, RootComplex
from draht.hardware.pci import drm_nodes, root_name, sort_key
from draht.hardware.profiles.format import Model, Place, Profile, numbered, places

__all__ = ["SimulatedProvider", "from_profile"]

_MIB = 1 << 20
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "draht.dev")
_PORTS: dict[str, Literal["root", "upstream", "downstream", "bridge"]] = {
    "rootPort": "root",
    "switch": "upstream",
    "downstreamPort": "downstream",
    "bridge": "bridge",
}


class SimulatedProvider:
    """The inventory of a profile; see `draht.hardware.inventory.Provider`.

    Args:
        profile: The machine.
        host: The node that plays it: several nodes with one profile have GPUs with different UUIDs.
    """

    def __init__(self, profile: Profile, *, host: str = "") -> None:
        self._profile = profile
        self._seed = f"{host}/{profile.name}" if host else profile.name

    def inventory(self) -> Inventory:
        """The machine of the profile; the same value each time."""
        profile = self._profile
        models = {**profiles.catalogue(), **profile.models}
        found = list(places(profile))
        gpus = _gpus(found, models, self._seed)
        other = _others(found, models)
        return Inventory(
            machine=profile.name,
            source=f"profile {profile.name}",
            simulated=True,
            description=profile.description,
            devices=(*gpus, *other),
            cpu=profile.cpu,
            memory_bytes=profile.memory_mib * _MIB,
            numa_nodes=tuple(
                NUMANode(
                    id=node.id,
                    cpus=node.cpus,
                    memory_bytes=None if node.memory_mib is None else node.memory_mib * _MIB,
                    distances=node.distances,
                )
                for node in sorted(profile.numa, key=lambda node: node.id)
            ),
            roots=tuple(
                RootComplex(name=root.root, numa_node=root.numa_node)
                for root in sorted(profile.pcie, key=lambda root: sort_key(root.root))
            ),
            bridges=tuple(_bridges(found)),
            links=tuple(_links(profile, gpus)),
            driver_version=profile.driver.version if profile.driver else None,
            cuda_version=(profile.driver.cuda or None) if profile.driver else None,
        )


def from_profile(name_or_path: str | Path) -> Inventory:
    """The inventory of a shipped profile, or of a profile file.

    Raises:
        UnknownProfileError: There is no such profile.
        ProfileError: It isn't valid.
    """
    return SimulatedProvider(profiles.load(name_or_path)).inventory()


def _bridges(found: list[Place]) -> Iterator[Bridge]:
    for place in sorted((place for place in found if place.key != "device"), key=lambda place: sort_key(place.address)):
        yield Bridge(
            address=place.address,
            parent=place.above[-1][1] if place.above else place.root.root,
            root=place.root.root,
            port=_PORTS[place.key],
        )


def _gpus(found: list[Place], models: Mapping[str, Model], seed: str) -> list[Device]:
    """GPUs and accelerators with their instances, vendor by vendor in the order of their numbers."""
    at: dict[tuple[str, str], list[Place]] = {}
    for place in found:
        model = models.get(place.slot.model)
        if place.key == "device" and model is not None and model.kind in {"gpu", "accelerator"}:
            at.setdefault((model.kind, model.vendor), []).append(place)
    devices: list[Device] = []
    position = 0
    for (kind, _), group in sorted(at.items(), key=lambda item: (item[0][0] != "gpu", item[0][1])):
        for index, place in numbered(group):
            gpu = _gpu(place, models[place.slot.model], index, position, seed)
            devices.append(gpu)
            devices.extend(_instances(place, models[place.slot.model], gpu, seed))
            position += kind == "gpu"
    return devices


def _gpu(place: Place, model: Model, index: int, position: int, seed: str) -> Device:
    minor = index if place.slot.minor is None else place.slot.minor
    # A vendor's GPUs and its other accelerators are counted apart.
    counted = model.vendor if model.kind == "gpu" else f"{model.vendor}/{model.kind}"
    identity = _uuid(model.uuid, f"{seed}/{counted}/{index}")
    has_minor = model.kind == "gpu" and model.vendor == "nvidia"
    nodes = (f"/dev/nvidia{minor}",) if has_minor else ()
    id_ = identity or place.address
    return Device(
        id=id_,
        kind="gpu" if model.kind == "gpu" else "accelerator",
        index=index,
        vendor=model.vendor,
        product=model.product,
        architecture=model.architecture,
        compute_capability=model.compute_capability,
        uuid=identity,
        pci_address=place.address,
        pcie_root=root_name(place.root.root),
        pcie_parent=place.above[-1][1] if place.above else place.root.root,
        numa_node=place.root.numa_node,
        memory_bytes=None if model.memory_mib is None else model.memory_mib * _MIB,
        mig_capable=bool(model.mig),
        units=frozenset({id_}) | (mig.units(id_) if model.mig else frozenset()),
        device_nodes=(*nodes, *(drm_nodes(position) if model.kind == "gpu" else ())),
        simulated=True,
        attributes={**_ids(model), **({"minor": minor} if has_minor else {})},
    )


def _instances(place: Place, model: Model, gpu: Device, seed: str) -> Iterator[Device]:
    for number, instance in enumerate(place.slot.mig):
        entry = mig.profile(model.mig, instance.profile)
        assert entry is not None, "the profile was checked"
        identity = f"MIG-{uuid.uuid5(_NAMESPACE, f'{seed}/{gpu.index}/{instance.profile}/{instance.start}')}"
        yield Device(
            id=identity,
            kind="mig",
            index=gpu.index,
            vendor=gpu.vendor,
            product=f"{gpu.product} MIG {entry.name}",
            architecture=gpu.architecture,
            compute_capability=gpu.compute_capability,
            uuid=identity,
            pci_address=gpu.pci_address,
            pcie_root=gpu.pcie_root,
            pcie_parent=gpu.pcie_parent,
            numa_node=gpu.numa_node,
            memory_bytes=None if entry.memory_mib is None else entry.memory_mib * _MIB,
            parent=gpu.id,
            units=mig.units(gpu.id, instance.start, entry.memory_slices),
            device_nodes=gpu.device_nodes[:1],
            simulated=True,
            attributes={"profile": entry.name, "placement": instance.start, "slot": number},
        )


def _others(found: list[Place], models: Mapping[str, Model]) -> list[Device]:
    """NVSwitches, then network functions each followed by its virtual functions, by PCI address."""
    devices: list[Device] = []
    for kind in ("nvswitch", "nic"):
        group = [place for place in found if place.key == "device" and models[place.slot.model].kind == kind]
        for index, place in enumerate(sorted(group, key=lambda place: sort_key(place.address))):
            devices.append(_function(place, models[place.slot.model], place.address, index))
            if place.slot.sriov:
                virtual = models[place.slot.sriov.model]
                for number, address in enumerate(place.slot.sriov.functions):
                    devices.append(_function(place, virtual, address, number))
    return devices


def _function(place: Place, model: Model, address: str, index: int) -> Device:
    slot = place.slot
    attributes: dict[str, str | int | bool] = dict(_ids(model))
    if model.kind in {"nic", "vf"}:
        if model.link_layer:
            attributes["linkLayer"] = model.link_layer
        attributes["rdma"] = model.rdma
    if model.kind == "nic":
        attributes |= {"interface": slot.interface} if slot.interface else {}
        attributes |= {"rdmaDevice": slot.rdma} if slot.rdma else {}
        attributes |= {"speedGbps": model.gbps} if model.gbps else {}
        attributes |= {"sriovTotal": slot.sriov.total} if slot.sriov else {}
    return Device(
        id=address,
        kind=model.kind,
        index=index,
        vendor=model.vendor,
        product=model.product,
        pci_address=address,
        pcie_root=root_name(place.root.root),
        pcie_parent=place.above[-1][1] if place.above else place.root.root,
        numa_node=place.root.numa_node,
        parent=place.address if model.kind == "vf" else None,
        units=frozenset({address}),
        simulated=True,
        attributes=attributes,
    )


def _ids(model: Model) -> dict[str, str | int | bool]:
    ids = model.pci
    known: dict[str, str | int | bool] = {"vendorID": ids.vendor, "deviceID": ids.device}
    if ids.subsystem_vendor and ids.subsystem_device:
        known["subsystemID"] = f"{ids.subsystem_vendor}:{ids.subsystem_device}"
    return known


def _uuid(scheme: str, seed: str) -> str | None:
    made = uuid.uuid5(_NAMESPACE, seed)
    if scheme == "nvidia":
        return f"GPU-{made}"
    return f"GPU-{made.hex[:16]}" if scheme == "amd" else None


def _links(profile: Profile, devices: list[Device]) -> Iterator[Link]:
    for links in profile.links:
        vendor = "amd" if links.kind == "xgmi" else "nvidia"
        gpus = {device.index: device.id for device in devices if device.kind == "gpu" and device.vendor == vendor}
        numbers = sorted(number for number in gpus if number is not None)
        pairs = links.between or tuple((a, b) for a in numbers for b in numbers if a < b)
        for a, b in sorted(tuple(sorted(pair)) for pair in pairs):
            yield Link(kind=links.kind, a=gpus[a], b=gpus[b], count=links.count, via=links.via, version=links.version)
