"""The devices that CDI specs offer, as an inventory: many names, few pieces of silicon.

Owns deciding which names mean one device. ``nvidia.com/gpu=0``, ``=GPU-…`` and a device plugin's name deliver the same
GPU and must be one device, while two GPUs under WSL or on a Jetson have one device node and must be two. The rules:

1. Names of one kind with equal edits are one device, unless one naming style occurs twice among them: then each index
   is a device of its own, and the names that can't be told apart stand for all of them.
2. Names with different edits or of different kinds are one device if they open the same GPU and MIG nodes.
3. ``all``, and what opens exactly the nodes of several devices, is an alias for these, not a device.
4. A MIG instance belongs to the GPU whose node it opens. Siblings don't conflict; the GPU conflicts with each of them.
5. Devices that open the same GPU's own node and aren't joined by the other rules conflict. Where one node is for all
   GPUs (WSL, Jetson) it says nothing.

In doubt two names conflict: a GPU that can't be given out is a nuisance, a GPU given out twice is a defect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from msgspec.structs import replace

from draht import cdi
from draht.hardware.inventory import Device, Inventory, Kind, Problem
from draht.hardware.offers import Offer, offers

__all__ = ["OWN_VENDOR", "CDIProvider", "group"]

OWN_VENDOR = "draht.dev"
"""Vendor of the transient specs of draht: they deliver what is held already and offer nothing."""
_OWN_ANNOTATION = "draht.dev/"
_OWN_VARIABLE = "DRAHT_DEVICE_"

_KINDS: tuple[Kind, ...] = ("gpu", "mig", "accelerator", "nic", "other")


class CDIProvider:
    """What the specs in a cache offer; see `draht.hardware.inventory.Provider`.

    Args:
        cache: The CDI cache of the machine; it is refreshed for each inventory.
        kind: Only devices of this kind (``nvidia.com/gpu``), and only their names of this kind.
        machine: Name of the machine.
    """

    def __init__(self, cache: cdi.Cache, kind: str | None = None, *, machine: str = "localhost") -> None:
        self._cache = cache
        self._kind = kind
        self._machine = machine

    def inventory(self) -> Inventory:
        """Read the specs and group what they offer."""
        self._cache.refresh()
        loaded = {name: self._cache.device(name) for name in self._cache.devices()}
        offered = {name: found.device for name, found in loaded.items() if found is not None and not _delivers(found)}
        devices, aliases = group(offered)
        if self._kind is not None:
            devices, aliases = _only(self._kind, devices, aliases)
        return Inventory(
            machine=self._machine,
            source="cdi",
            devices=tuple(devices),
            aliases=aliases,
            problems=tuple(_problems(self._cache)),
        )


def _delivers(loaded: cdi.LoadedDevice) -> bool:
    """Whether draht wrote it for somebody who has the device already: a claim, or a container of the device plugin.

    Specs of claims have the kind of the vendor's driver. Their annotation tells, or where the runtime reads no
    annotations yet, the variable that each of their devices brings.
    """
    return (
        loaded.spec.vendor.endswith(f".{OWN_VENDOR}")
        or any(key.startswith(_OWN_ANNOTATION) for key in loaded.spec.spec.annotations)
        or any(entry.startswith(_OWN_VARIABLE) for entry in loaded.device.container_edits.env)
    )


@dataclass(slots=True)
class _Group:
    """Offers of one device."""

    offers: list[Offer]
    shared: bool = False
    device: Device | None = None
    covers: list[_Group] = field(default_factory=list)

    @property
    def first(self) -> Offer:
        return self.offers[0]

    @property
    def styles(self) -> set[str]:
        return {offer.style for offer in self.offers} - {"other"}

    @property
    def is_mig(self) -> bool:
        return any(offer.is_mig for offer in self.offers)


def group(devices: Mapping[str, cdi.Device]) -> tuple[list[Device], dict[str, tuple[str, ...]]]:
    """The devices behind qualified names, and the names that mean several of them.

    Pure: the same specs give the same devices with the same ids in the same order.
    """
    wanted = [offer for offer in offers(devices) if offer.vendor != OWN_VENDOR]
    groups: list[_Group] = []
    pending: list[tuple[str, list[_Group]]] = []
    by_kind: dict[str, list[Offer]] = {}
    for offer in wanted:
        by_kind.setdefault(offer.kind, []).append(offer)
    for _, of_kind in sorted(by_kind.items()):
        own, several = _of_one_kind(of_kind)
        pending.extend(several)
        groups.extend(own)
    groups = _across_kinds(groups)
    groups, more = _unions(groups)
    pending.extend(more)
    _identify(groups)
    _overlaps(groups)
    aliases: dict[str, list[str]] = {}
    for name, members in pending:
        # A member may have been joined with another group, or turned out to be an alias itself.
        for member in members:
            aliases.setdefault(name, []).extend(_final(member))
    return _sorted(groups), {name: tuple(sorted(set(ids))) for name, ids in sorted(aliases.items())}


def _of_one_kind(of_kind: Sequence[Offer]) -> tuple[list[_Group], list[tuple[str, list[_Group]]]]:
    """Rule 1, and ``all`` of rule 3."""
    everything = [offer for offer in of_kind if offer.style == "all"]
    single = [offer for offer in of_kind if offer.style != "all"]
    if not single:
        return [_Group([offer]) for offer in everything], []
    by_edits: dict[object, list[Offer]] = {}
    for offer in single:
        by_edits.setdefault(offer.edits, []).append(offer)
    groups: list[_Group] = []
    several: list[tuple[str, list[_Group]]] = []
    for same in by_edits.values():
        styles = [offer.style for offer in same if offer.style != "other"]
        if len(styles) == len(set(styles)):
            groups.append(_Group(same))
            continue
        numbered = [offer for offer in same if offer.numbers]
        if not numbered:
            groups.extend(_Group([offer], shared=offer.shares_nodes) for offer in same)
            continue
        by_number: dict[tuple[int, ...], list[Offer]] = {}
        for offer in numbered:
            by_number.setdefault(offer.numbers, []).append(offer)
        parts = [_Group(part, shared=part[0].shares_nodes) for part in by_number.values()]
        groups.extend(parts)
        several.extend((offer.name, parts) for offer in same if not offer.numbers)
    several.extend((offer.name, list(groups)) for offer in everything)
    return groups, several


def _across_kinds(groups: list[_Group]) -> list[_Group]:
    """Rule 2, within a kind too. Groups are joined in place, so that aliases that refer to one still find it."""
    joined: list[_Group] = []
    by_silicon: dict[tuple[frozenset[str], bool], _Group] = {}
    for part in groups:
        key = (part.first.silicon, part.is_mig)
        other = None if part.shared or not part.first.silicon else by_silicon.get(key)
        if other is not None and other.first.kind == part.first.kind and other.styles & part.styles:
            # Two numbers, or two UUIDs, of one kind never mean one device.
            other, part.shared = None, part.first.shares_nodes
        if other is None:
            joined.append(part)
            if not part.shared:
                by_silicon.setdefault(key, part)
        else:
            other.offers.extend(part.offers)
            part.covers = [other]
    return joined


def _unions(groups: list[_Group]) -> tuple[list[_Group], list[tuple[str, list[_Group]]]]:
    """The rest of rule 3: what opens exactly the GPUs of several devices, for example a claim or a management spec."""
    kept: list[_Group] = []
    several: list[tuple[str, list[_Group]]] = []
    owners = _by_rarest_node(groups)
    for part in groups:
        nodes = _nodes(part)
        candidates = sorted(found for node in nodes for found in owners.get(node, ()))
        members = [groups[place] for place in candidates if groups[place] is not part and _within(groups[place], nodes)]
        covered = {node for other in members for node in _nodes(other)}
        if len(nodes) > 1 and not part.is_mig and members and covered == nodes:
            several.extend((offer.name, members) for offer in part.offers)
            part.covers = members
        else:
            part.covers = [] if part.is_mig else members
            kept.append(part)
    return kept, several


def _nodes(part: _Group) -> frozenset[str]:
    return part.first.gpu_nodes or part.first.silicon


def _by_rarest_node(groups: Sequence[_Group]) -> dict[str, list[int]]:
    """The places of groups that have nodes of their own, each under one of its nodes.

    Whatever has all nodes of a group has that one too, so nobody needs to compare every two of thousands of groups.
    """
    own = {place: _nodes(part) for place, part in enumerate(groups) if not part.shared}
    uses = Counter(node for nodes in own.values() for node in nodes)
    found: dict[str, list[int]] = {}
    for place, nodes in own.items():
        if nodes:
            found.setdefault(min(nodes, key=lambda node: (uses[node], node)), []).append(place)
    return found


def _within(other: _Group, nodes: frozenset[str]) -> bool:
    own = _nodes(other)
    # Equal sets of nodes are rule 2's business, except for instances, which open their GPU's node.
    return bool(own) and (own < nodes or (other.is_mig and own <= nodes and other.first.silicon != nodes))


def _identify(groups: list[_Group]) -> None:
    """Give each group its device: ids first, then units, which name other groups' ids."""
    taken: set[str] = set()
    identity: dict[int, str] = {}
    for part in groups:
        uuid = next((offer.uuid for offer in part.offers if offer.uuid), None)
        address = None if part.is_mig else next((o.pci_address for o in part.offers if o.pci_address), None)
        names = _names(part.offers)
        choice = next(name for name in (uuid, address, *names) if name is not None and name not in taken)
        taken.add(choice)
        identity[id(part)] = choice
    parents = _parents(groups)
    instances: dict[int, list[_Group]] = {}
    for part in groups:
        if (parent := parents.get(id(part))) is not None:
            instances.setdefault(id(parent), []).append(part)
    units: dict[int, frozenset[str]] = {}
    for part in groups:
        parent = parents.get(id(part))
        own = identity[id(part)]
        units[id(part)] = frozenset({f"{identity[id(parent)]}#{own}" if parent is not None else own})
    for part in groups:
        below = instances.get(id(part), []) + [other for other in part.covers if id(other) in units]
        parent = parents.get(id(part))
        part.device = _device(
            part,
            identity[id(part)],
            None if parent is None else identity[id(parent)],
            units[id(part)].union(*(units[id(other)] for other in below)),
        )


def _overlaps(groups: list[_Group]) -> None:
    """Rule 5."""
    users: dict[str, list[_Group]] = {}
    for part in groups:
        for node in sorted({node for offer in part.offers for node in offer.whole_nodes}):
            users.setdefault(node, []).append(part)
    for part, other in (pair for same in users.values() for pair in combinations(same, 2)):
        if part.shared and other.shared:
            continue
        one, two = part.device, other.device
        if one is not None and two is not None and not (part.is_mig and other.is_mig) and not one.conflicts(two):
            # An instance's units stay its own: what opens the whole GPU takes the instance's.
            taker, units = (part, two.units) if other.is_mig or not part.is_mig else (other, one.units)
            assert taker.device is not None
            taker.device = replace(taker.device, units=taker.device.units | units)


def _parents(groups: Sequence[_Group]) -> dict[int, _Group | None]:
    """Rule 4: for the identity of each instance, the GPU that it belongs to."""
    whole: dict[frozenset[str], _Group] = {}
    for part in groups:
        if part.first.silicon and not part.is_mig and not part.shared:
            whole.setdefault(part.first.silicon, part)
    return {id(part): whole.get(part.first.gpu_nodes) for part in groups if part.is_mig}


def _device(part: _Group, id_: str, parent: str | None, units: frozenset[str]) -> Device:
    offer = part.first
    index = next((offer.numbers[0] for offer in part.offers if offer.numbers), None)
    slot = next((offer.numbers[1] for offer in part.offers if len(offer.numbers) > 1), None)
    attributes: dict[str, str | int | bool] = {}
    if slot is not None:
        attributes["slot"] = slot
    if offer.interface:
        attributes["interface"] = offer.interface
    return Device(
        id=id_,
        kind=_kind(part),
        index=index,
        vendor=_vendor(offer.vendor),
        uuid=next((offer.uuid for offer in part.offers if offer.uuid), None),
        pci_address=next((offer.pci_address for offer in part.offers if offer.pci_address), None),
        parent=parent,
        units=units,
        cdi_names=tuple(_names(part.offers)),
        device_nodes=tuple(dict.fromkeys(node for offer in part.offers for node in offer.nodes)),
        attributes=attributes,
    )


def _kind(part: _Group) -> Kind:
    nodes = [node for offer in part.offers for node in offer.footprint]
    if part.is_mig:
        return "mig"
    # A class called gpu isn't enough: DRA drivers keep what all their claims share in a "device" beside the real ones.
    named = any(
        (offer.class_ == "gpu" or offer.class_.startswith("gpu.")) and (offer.footprint or offer.style != "other")
        for offer in part.offers
    )
    if named or any(offer.gpu_nodes for offer in part.offers):
        return "gpu"
    if any(node.startswith("/dev/accel/") for node in nodes):
        return "accelerator"
    if any(node.startswith("/dev/dri/") for node in nodes):
        return "gpu"
    return "nic" if part.first.interface else "other"


def _vendor(domain: str) -> str:
    """``nvidia`` of ``k8s.gpu.nvidia.com``: the label before the top one, or the whole where there is no dot."""
    labels = domain.split(".")
    return labels[-2] if len(labels) > 1 else domain


def _names(same: Iterable[Offer]) -> list[str]:
    """Names of one device, the best first: a vendor's plain kind before longer ones, UUIDs before numbers that move."""
    ordered = sorted(same, key=lambda o: (o.class_ != "gpu", o.vendor.count("."), o.kind, o.uuid is None, o.name))
    return [offer.name for offer in ordered]


def _final(part: _Group) -> Iterable[str]:
    """The ids of the devices that a group stands for in the end: only groups that were kept have a device."""
    if part.device is not None:
        return [part.device.id]
    return [id_ for other in part.covers for id_ in _final(other)]


def _sorted(groups: list[_Group]) -> list[Device]:
    devices = [part.device for part in groups if part.device is not None]
    whole = {device.id: device for device in devices}

    def order(device: Device) -> tuple[object, ...]:
        above = whole.get(device.parent or "", device)
        far = 1 << 30
        number = far if above.index is None else above.index
        slot = device.attributes.get("slot", far)
        rank = _KINDS.index("gpu" if device.kind == "mig" else above.kind)
        return rank, above.vendor, number, above.id if device.parent else "", device.kind == "mig", slot, device.id

    return sorted(devices, key=order)


def _only(
    kind: str, devices: list[Device], aliases: Mapping[str, tuple[str, ...]]
) -> tuple[list[Device], dict[str, tuple[str, ...]]]:
    """The devices that a kind offers, under its names only."""
    trimmed = []
    for device in devices:
        names = tuple(name for name in device.cdi_names if name.startswith(f"{kind}="))
        if names:
            trimmed.append(replace(device, cdi_names=names))
    return trimmed, {name: ids for name, ids in aliases.items() if name.startswith(f"{kind}=")}


def _problems(cache: cdi.Cache) -> Iterable[Problem]:
    for state in cache.directories():
        if state.error is not None:
            yield Problem(where=state.path, message=state.error.message, hint=state.error.hint or "")
    for path, errors in sorted(cache.errors().items()):
        for error in errors:
            yield Problem(where=path, message=error.message, hint=error.hint or "")
