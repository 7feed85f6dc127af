"""What must be true of a machine profile beyond the types of its fields.

Owns the rules: addresses are written canonically and once, the PCIe tree is one that a kernel could have enumerated,
NUMA nodes and models exist, links hold in both directions. All faults of a profile are found in one go, each with its
place; turning a place into a line is the loader's work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from draht.hardware import mig
from draht.hardware.near import near
from draht.hardware.profiles.format import Model, Place, Profile, numbered, places

__all__ = ["Fault", "check", "check_model"]

_ADDRESS = re.compile(r"[0-9a-f]{4,5}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,5}:[0-9a-f]{2}")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_ID = re.compile(r"0x[0-9a-f]{4}")
_CLASS = re.compile(r"0x[0-9a-f]{6}")
_FABRIC = {"nvlink": "nvidia", "xgmi": "amd"}
_PARENTS = {
    "rootPort": {"root"},
    "switch": {"rootPort", "downstreamPort", "bridge"},
    "downstreamPort": {"switch"},
    "bridge": {"root", "rootPort", "downstreamPort", "bridge"},
    "device": {"root", "rootPort", "downstreamPort", "bridge"},
}
"""What may stand directly above what (PCI Express Base Specification, §1.3: fabric topology)."""

_SELF = 10
"""Distance of a NUMA node to itself in a SLIT table, the least there is; 255 is the most (ACPI 6.5, §5.2.17)."""

_MOST_MEMORY = 2**43 - 1
"""In MiB; more bytes than a signed 64-bit number can say make no machine."""


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong.

    Attributes:
        path: Where in the document.
        message: A sentence.
        mark: Line and column, counted from 1, where the path alone doesn't say which of two places it is.
    """

    path: tuple[str | int, ...]
    message: str
    mark: tuple[int, int] | None = None


def check(profile: Profile, catalogue: Mapping[str, Model]) -> list[Fault]:
    """Everything wrong with a profile whose types are right; its own models win over those of the catalogue."""
    models = {**catalogue, **profile.models}
    return [
        *_head(profile),
        *(fault for name, model in profile.models.items() for fault in check_model(model, ("models", name))),
        *_numa(profile),
        *_roots(profile),
        *_tree(profile),
        *_addresses(profile),
        *_devices(profile, models),
        *_links(profile, models),
    ]


def check_model(model: Model, path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Everything wrong with an entry of a catalogue."""
    ids = model.pci
    for key, value in (("vendor", ids.vendor), ("device", ids.device)):
        if not _ID.fullmatch(value):
            yield Fault((*path, "pci", key), f'"{value}" isn\'t a PCI id like "0x10de"')
    for key, value in (("subsystemVendor", ids.subsystem_vendor), ("subsystemDevice", ids.subsystem_device)):
        if value and not _ID.fullmatch(value):
            yield Fault((*path, "pci", key), f'"{value}" isn\'t a PCI id like "0x10de"')
    if not _CLASS.fullmatch(ids.class_):
        yield Fault((*path, "pci", "class"), f'"{ids.class_}" isn\'t a PCI class like "0x030200"')
    if model.mig and model.mig not in mig.TABLES:
        yield Fault((*path, "mig"), f'there is no MIG table "{model.mig}"; there are {", ".join(mig.TABLES)}')
    yield from _bounded(model.memory_mib, (*path, "memoryMiB"), 1, _MOST_MEMORY)
    yield from _bounded(model.gbps, (*path, "gbps"), 1)


def _head(profile: Profile) -> Iterator[Fault]:
    if not _NAME.fullmatch(profile.name):
        yield Fault(("name",), "a name has lower-case letters, digits, dots and dashes")
    if not profile.synthetic:
        yield Fault(("synthetic",), "must be true: a profile is written by hand and has to say so")
    if not profile.sources:
        yield Fault(("sources",), "must say where the facts come from")
    yield from _bounded(profile.memory_mib, ("memoryMiB",), 1, _MOST_MEMORY)
    for key in ("sockets", "cores", "threads"):
        yield from _bounded(getattr(profile.cpu, key), ("cpu", key), 1)


def _bounded(number: int | None, path: tuple[str | int, ...], least: int, most: int = 2**31 - 1) -> Iterator[Fault]:
    if number is not None and not least <= number <= most:
        yield Fault(path, f"{number} isn't between {least} and {most}")


def _numa(profile: Profile) -> Iterator[Fault]:
    ids = [node.id for node in profile.numa]
    for number, node in enumerate(profile.numa):
        if node.id in ids[:number]:
            yield Fault(("numa", number, "id"), f"NUMA node {node.id} is described twice")
        yield from _bounded(node.id, ("numa", number, "id"), 0)
        yield from _bounded(node.memory_mib, ("numa", number, "memoryMiB"), 1, _MOST_MEMORY)
        yield from (
            fault
            for place, far in enumerate(node.distances)
            for fault in _bounded(far, ("numa", number, "distances", place), _SELF, 255)
        )
        if node.distances and len(node.distances) != len(ids):
            yield Fault(
                ("numa", number, "distances"), f"has {len(node.distances)} distances, but there are {len(ids)} nodes"
            )
        elif node.distances and node.distances[number] != _SELF:
            yield Fault(("numa", number, "distances"), f"the distance of a node to itself is {_SELF}")
    rows = [node.distances for node in profile.numa]
    if all(len(row) == len(rows) for row in rows):
        for a in range(len(rows)):
            for b in range(a):
                if rows[a][b] != rows[b][a]:
                    yield Fault(
                        ("numa", a, "distances"), f"{ids[a]} to {ids[b]} is {rows[a][b]}, but back it is {rows[b][a]}"
                    )


def _roots(profile: Profile) -> Iterator[Fault]:
    nodes = {node.id for node in profile.numa}
    seen: set[str] = set()
    for number, root in enumerate(profile.pcie):
        if not _ROOT.fullmatch(root.root):
            yield Fault(("pcie", number, "root"), f'"{root.root}" isn\'t a root like "pci0000:15"')
        if root.root in seen:
            yield Fault(("pcie", number, "root"), f"root {root.root} is described twice")
        seen.add(root.root)
        if root.numa_node is not None and root.numa_node not in nodes:
            yield Fault(("pcie", number, "numaNode"), f"there is no NUMA node {root.numa_node}")


def _tree(profile: Profile) -> Iterator[Fault]:
    """A kernel's view: kinds of ports nest as they do in hardware, and each bridge has one bus of its own below it."""
    owner: dict[str, str] = {}
    for place in places(profile):
        if len(place.keys) != 1:
            found = " and ".join(place.keys) or "none"
            yield Fault(
                place.path, f"needs exactly one of rootPort, switch, downstreamPort, bridge and device, has {found}"
            )
            continue
        parent, parent_address = place.above[-1] if place.above else ("root", place.root.root)
        if parent not in _PARENTS[place.key]:
            yield Fault((*place.path, place.key), f"a {place.key} can't be below a {parent}")
        if not _ADDRESS.fullmatch(place.address):
            continue
        bus, above = _bus(place.address), _bus(parent_address)
        if parent == "root":
            if bus != above:
                yield Fault((*place.path, place.key), f"{place.address} isn't on the bus of its root {place.root.root}")
        elif bus.partition(":")[0] != above.partition(":")[0] or bus <= above:
            yield Fault(
                (*place.path, place.key), f"the bus of {place.address} must come after that of {parent_address}"
            )
        elif owner.setdefault(bus, parent_address) != parent_address:
            yield Fault(
                (*place.path, place.key), f"bus {bus} is already below {owner[bus]}; a bus has one bridge above it"
            )


def _bus(address: str) -> str:
    """``0000:15`` of a PCI address or of the name of a root."""
    return ":".join(address.removeprefix("pci").split(":")[:2])


def _addresses(profile: Profile) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for place in places(profile):
        functions = place.slot.sriov.functions if place.slot.sriov else ()
        own = [((*place.path, place.key), place.address)] if place.key else []
        virtual = [((*place.path, "sriov", "functions", number), address) for number, address in enumerate(functions)]
        for path, address in [*own, *virtual]:
            if not _ADDRESS.fullmatch(address):
                lower = " in lower case" if _ADDRESS.fullmatch(address.lower()) else ""
                yield Fault(path, f'"{address}" isn\'t a PCI address like "0000:1b:00.0"{lower}')
            elif address in seen:
                yield Fault(path, f"{address} is already at {seen[address]}")
            else:
                seen[address] = ".".join(str(step) for step in path)


def _devices(profile: Profile, models: Mapping[str, Model]) -> Iterator[Fault]:
    numbers: dict[tuple[str, str, int], str] = {}
    counted: dict[tuple[str, str], list[Place]] = {}
    for place in places(profile):
        slot = place.slot
        extra = [
            key
            for key, value in (("model", slot.model), ("index", slot.index), ("minor", slot.minor), ("rdma", slot.rdma),
                               ("interface", slot.interface), ("mig", slot.mig), ("sriov", slot.sriov))
            if value not in ("", None, ())
        ]  # fmt: skip
        if place.key != "device":
            for key in extra:
                yield Fault((*place.path, key), f"only a device has {key}")
            continue
        model = models.get(slot.model)
        if model is None:
            yield Fault((*place.path, "model"), f'there is no model "{slot.model}"{near(slot.model, models)}')
            continue
        if model.kind == "vf":
            yield Fault((*place.path, "model"), "a virtual function stands in the sriov field of its physical function")
        allowed = {
            "gpu": {"index", "minor", "mig"},
            "accelerator": {"index", "minor"},
            "nic": {"rdma", "interface", "sriov"},
        }
        for key in extra:
            if key != "model" and key not in allowed.get(model.kind, set()):
                yield Fault((*place.path, key), f"a device of kind {model.kind} has no {key}")
        counted.setdefault((model.kind, model.vendor), []).append(place)
        for key, number in (("index", slot.index), ("minor", slot.minor)):
            yield from _bounded(number, (*place.path, key), 0)
        if slot.index is not None:
            first = numbers.setdefault((model.kind, model.vendor, slot.index), place.address)
            if first != place.address:
                yield Fault((*place.path, "index"), f"{first} already has index {slot.index}")
        yield from _partition(place, model)
        yield from _virtual(place, models)
    for found in counted.values():
        yield from _minors(found)


def _minors(found: list[Place]) -> Iterator[Fault]:
    """Two device nodes of one number, where a number that is left out is the index."""
    seen: dict[int, Place] = {}
    for index, place in numbered(found):
        number = index if place.slot.minor is None else place.slot.minor
        first = seen.setdefault(number, place)
        given, other = (place, first) if place.slot.minor is not None else (first, place)
        if first is not place and given.slot.minor is not None:
            yield Fault((*given.path, "minor"), f"{other.address} already has minor {number}")


def _partition(place: Place, model: Model) -> Iterator[Fault]:
    taken: set[str] = set()
    used: dict[str, int] = {}
    for number, instance in enumerate(place.slot.mig):
        path = (*place.path, "mig", number)
        entry = mig.profile(model.mig, instance.profile)
        if entry is None:
            names = [entry.name for entry in mig.TABLES.get(model.mig, ())]
            yield Fault(
                (*path, "profile"),
                f'{place.slot.model} has no MIG profile "{instance.profile}"{near(instance.profile, names)}',
            )
            continue
        if instance.start not in entry.starts:
            starts = ", ".join(map(str, entry.starts))
            yield Fault((*path, "start"), f"a {entry.name} can't start at {instance.start}, only at {starts}")
        slices = mig.units("", instance.start, entry.memory_slices)
        if not taken.isdisjoint(slices):
            yield Fault(path, "overlaps an instance before it")
        taken |= slices
        used[entry.name] = used.get(entry.name, 0) + 1
        if used[entry.name] == entry.most + 1:
            yield Fault(path, f"at most {entry.most} instances of {entry.name} fit on one GPU")


def _virtual(place: Place, models: Mapping[str, Model]) -> Iterator[Fault]:
    sriov = place.slot.sriov
    if sriov is None:
        return
    model = models.get(sriov.model)
    if model is None or model.kind != "vf":
        known = [name for name, model in models.items() if model.kind == "vf"]
        yield Fault(
            (*place.path, "sriov", "model"), f'there is no virtual function "{sriov.model}"{near(sriov.model, known)}'
        )
    yield from _bounded(sriov.total, (*place.path, "sriov", "total"), 0)
    if len(sriov.functions) > sriov.total:
        yield Fault(
            (*place.path, "sriov", "functions"), f"has {len(sriov.functions)} functions, but total is {sriov.total}"
        )


def _links(profile: Profile, models: Mapping[str, Model]) -> Iterator[Fault]:
    gpus: dict[str, int] = {}
    for place in places(profile):
        model = models.get(place.slot.model)
        if place.key == "device" and model is None:
            return  # How many GPUs there are isn't known before that model is.
        if place.key == "device" and model is not None and model.kind == "gpu":
            gpus[model.vendor] = gpus.get(model.vendor, 0) + 1
    pairs: dict[tuple[int, ...], str] = {}
    for number, links in enumerate(profile.links):
        path = ("links", number)
        vendor = _FABRIC[links.kind]
        if links.count < 1:
            yield Fault((*path, "count"), "at least one link is needed")
        if vendor not in gpus:
            yield Fault((*path, "kind"), f"there are no {vendor} GPUs to link by {links.kind}")
            continue
        for position, pair in enumerate(links.between):
            place_of_pair = (*path, "between", position)
            if len(pair) != 2 or pair[0] == pair[1]:
                yield Fault(place_of_pair, "links are between two different GPUs, [0, 1]")
            elif max(pair) >= gpus[vendor] or min(pair) < 0:
                yield Fault(place_of_pair, f"there are {gpus[vendor]} {vendor} GPUs, numbered from 0")
            elif tuple(sorted(pair)) in pairs:
                yield Fault(place_of_pair, "these GPUs are linked already; a link holds in both directions")
            pairs[tuple(sorted(pair))] = links.kind
