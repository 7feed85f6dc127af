"""Which devices of an inventory a request gets: a pure function of what exists and what is taken.

The default keeps a job's GPUs close together and large groups whole: one model, one NUMA node, one PCIe root where the
request fits into them, and among the groups it fits into the smallest. The same inputs give the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from draht import cdi
from draht.driver.waiting import Demand
from draht.hardware.inventory import Device, Inventory
from draht.host.errors import SelectionError

__all__ = ["Ask", "Choice", "Part", "Request", "Selection", "choose", "demands", "label"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked for: named devices, and GPUs of which any will do.

    Attributes:
        gpus: Number of GPUs, or ``all``.
        names: Qualified CDI names (``vendor/class=name``); with a profile also ids of its devices.
        kind: CDI kind that the GPUs must be offered under; empty for a profile's.
    """

    gpus: int | str = 0
    names: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What one of several containers gets of a choice.

    Attributes:
        name: The container.
        devices: Its devices; containers may have devices in common.
        cdi_names: The CDI names that deliver them (none for simulated ones).
        env: Variables that describe how the devices were given.
    """

    name: str
    devices: tuple[Device, ...]
    cdi_names: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Devices for a request, and the CDI names that deliver them (none for simulated ones).

    Attributes:
        units: What will be held; devices that are only looked at add nothing.
        parts: Who of several containers gets what; empty if one container gets everything.
    """

    devices: tuple[Device, ...]
    cdi_names: tuple[str, ...]
    units: frozenset[str]
    parts: tuple[Part, ...] = ()


class Ask(Protocol):
    """What somebody asks for, in whatever words: it knows what would do and chooses among what is free."""

    @property
    def amount(self) -> str:
        """How many devices are wanted, for people: a number or ``all``."""
        ...

    def demands(self) -> tuple[Demand, ...]:
        """What would serve it in terms of units, for the waiting queue.

        Raises:
            SelectionError: Nothing on this machine would, free or not.
        """
        ...

    def choose(self, taken: AbstractSet[str]) -> Choice | None:
        """Devices none of whose units are taken, or None if there aren't enough now.

        Raises:
            SelectionError: There never will be.
        """
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """A `Request` to an inventory, as an `Ask`."""

    inventory: Inventory
    request: Request

    @property
    def amount(self) -> str:
        """See `Ask`."""
        if self.request.gpus == "all":
            return "all"
        return str(sum(demand.wanted for demand in self.demands()))

    def demands(self) -> tuple[Demand, ...]:
        """See `Ask`."""
        return demands(self.inventory, self.request)

    def choose(self, taken: AbstractSet[str]) -> Choice | None:
        """See `Ask`."""
        return choose(self.inventory, self.request, taken)


def label(device: Device) -> str:
    """A name for people: ``GPU 3`` where the vendor counts, the identity elsewhere."""
    if device.kind == "gpu" and device.index is not None:
        return f"GPU {device.index}"
    return device.id


def demands(inventory: Inventory, request: Request) -> tuple[Demand, ...]:
    """The request in terms of units, for the waiting queue.

    Raises:
        SelectionError: It asks for what this machine doesn't have.
    """
    named = [device for name in request.names for device in _named(inventory, name)]
    found = [Demand(1, (device.units,)) for device in _distinct(named)]
    wanted = _count(inventory, request)
    if wanted:
        pool = [device for device in _pool(inventory, request) if not any(device.conflicts(other) for other in named)]
        if wanted > len(pool):
            raise SelectionError(
                f"{wanted} GPUs are wanted, {inventory.machine} has {len(pool)}"
                + (" beside the named devices" if named else ""),
                hint="see `draht devices` for what there is",
            )
        found.append(Demand(wanted, tuple(device.units for device in pool)))
    if not found:
        raise SelectionError("no device is asked for", hint="say --gpus N, --gpus all or --device vendor/class=name")
    return tuple(found)


def choose(inventory: Inventory, request: Request, taken: AbstractSet[str]) -> Choice | None:
    """Free devices for the request, or None if there aren't enough now.

    Raises:
        SelectionError: There never will be.
    """
    demands(inventory, request)
    chosen: list[Device] = []
    names: list[str] = []
    for name in dict.fromkeys(request.names):
        chosen += _named(inventory, name)
        names.append(name)
    chosen = _distinct(chosen)
    if any(not device.units.isdisjoint(taken) for device in chosen):
        return None
    wanted = _count(inventory, request)
    free = [
        device
        for device in _pool(inventory, request)
        if device.units.isdisjoint(taken) and not any(device.conflicts(other) for other in chosen)
    ]
    if wanted > len(free):
        return None
    for device in _in_order(inventory, _nearest(free, wanted, _LEVELS)):
        chosen.append(device)
        names += _offered(device, request.kind)[:1]
    return Choice(
        devices=tuple(chosen),
        cdi_names=() if inventory.simulated else tuple(names),
        units=frozenset(unit for device in chosen for unit in device.units),
    )


_LEVELS: tuple[Callable[[Device], object], ...] = (
    lambda device: device.product,
    lambda device: device.numa_node,
    lambda device: device.pcie_root,
)
"""What should be the same for all GPUs of a job, most important first."""


def _nearest(free: Sequence[Device], wanted: int, levels: Sequence[Callable[[Device], object]]) -> list[Device]:
    """Best fit, level by level; where no group is large enough, the largest one and the rest from what remains."""
    if not wanted or not levels or len(free) == wanted:
        return list(free[:wanted])
    groups: dict[object, list[Device]] = {}
    for device in free:
        groups.setdefault(levels[0](device), []).append(device)
    fitting = [group for group in groups.values() if len(group) >= wanted]
    if fitting:
        return _nearest(min(fitting, key=len), wanted, levels[1:])
    largest = max(groups.values(), key=len)
    rest = [device for device in free if device not in largest]
    return largest + _nearest(rest, wanted - len(largest), levels)


def _count(inventory: Inventory, request: Request) -> int:
    if request.gpus == "all":
        pool = _pool(inventory, request)
        if not pool:
            raise SelectionError(f"{inventory.machine} has no GPU", hint="see `draht devices` for what there is")
        return len(pool)
    return int(request.gpus)


def _pool(inventory: Inventory, request: Request) -> list[Device]:
    """GPUs that may be given away whole: delivered by a CDI name if real, and not cut into MIG instances."""
    partitioned = {device.parent for device in inventory.instances()}
    return [
        device
        for device in inventory.gpus()
        if device.id not in partitioned and (inventory.simulated or _offered(device, request.kind))
    ]


def _offered(device: Device, kind: str) -> list[str]:
    return [name for name in device.cdi_names if not kind or name.startswith(f"{kind}=")]


def _names_of(device: Device) -> tuple[str, ...]:
    """The names a device answers to; a simulated one to its id and to those that its vendor's tool would write."""
    if not device.simulated:
        return device.cdi_names
    if device.cdi_names or device.kind != "gpu":
        return (*device.cdi_names, device.id)
    kind = f"{device.vendor}.com/gpu"
    return (f"{kind}={device.index}", f"{kind}={device.id}", device.id)


def _named(inventory: Inventory, name: str) -> list[Device]:
    """The devices that a CDI name (or, in a profile, an id) means."""
    ids = inventory.aliases.get(name, ())
    found = [device for device in inventory.devices if name in _names_of(device) or device.id in ids]
    if found:
        return found
    if not cdi.is_qualified_name(name) and not inventory.simulated:
        raise SelectionError(f"`{name}` is not a CDI name", hint="write vendor/class=name, as `draht cdi devices` does")
    kind = name.partition("=")[0]
    near = [
        offered for device in inventory.devices for offered in _names_of(device) if offered.startswith(f"{kind}=")
    ] or [offered for device in inventory.devices for offered in _names_of(device)]
    hint = f"there are {', '.join(near[:8])}{' …' if len(near) > 8 else ''}" if near else "see `draht devices`"
    raise SelectionError(f"{inventory.machine} has no device `{name}`", hint=hint)


def _distinct(devices: Sequence[Device]) -> list[Device]:
    return list({device.id: device for device in devices}.values())


def _in_order(inventory: Inventory, chosen: Sequence[Device]) -> list[Device]:
    ids = {device.id for device in chosen}
    return [device for device in inventory.devices if device.id in ids]
