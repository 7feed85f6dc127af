"""``draht devices`` of a live cluster: what every node publishes, who has it, and what keeps claims away.

Owns the table. A device that a device plugin gives away is only a number there; it stands beside the devices of
claims, so that both views of a node are seen together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from draht.cli.output import table

if TYPE_CHECKING:
    from draht.api.core import Node
    from draht.api.resource import Device, DeviceTaint, ResourceSlice
    from draht.manifests import Manifests

__all__ = ["lines", "plain"]

_PRODUCT = ("productName", "ifName")
_KINDS = ("type",)


def plain(manifests: Manifests) -> dict[str, Any]:
    """Devices and counted resources for programs."""
    return {
        "devices": [
            {
                "node": slice_.spec.node_name or None,
                "driver": slice_.spec.driver,
                "pool": slice_.spec.pool.name,
                "device": device.name,
                "product": _attribute(device, _PRODUCT),
                "type": _attribute(device, _KINDS),
                "memory": str(device.capacity["memory"].value) if "memory" in device.capacity else None,
                "simulated": _simulated(device),
                "claims": _holders(manifests).get(_key(slice_, device), []),
                "taints": [_taint(taint) for taint in device.taints],
                "taintRules": _rules(manifests, slice_, device),
            }
            for slice_, device in _devices(manifests)
        ],
        "counted": [
            {"node": node.metadata.name, "resource": name, "allocatable": amount, "capacity": capacity}
            for node in manifests.nodes.values()
            for name, amount, capacity in _counted(node)
        ],
    }


def lines(manifests: Manifests) -> Iterator[str]:
    """Devices and counted resources for a person."""
    holders = _holders(manifests)
    rows = [
        (
            slice_.spec.node_name or ("every node" if slice_.spec.all_nodes else "selected nodes"),
            slice_.spec.driver,
            slice_.spec.pool.name,
            device.name,
            _attribute(device, _PRODUCT),
            device.capacity["memory"].value if "memory" in device.capacity else None,
            ", ".join(holders.get(_key(slice_, device), [])),
            ", ".join([*map(_taint, device.taints), *(f"{rule} (rule)" for rule in _rules(manifests, slice_, device))]),
            "simulated" if _simulated(device) else "",
        )
        for slice_, device in _devices(manifests)
    ]
    if rows:
        yield table(("NODE", "DRIVER", "POOL", "DEVICE", "PRODUCT", "MEMORY", "CLAIMS", "TAINTS", "NOTE"), rows)
    counted = [(node.metadata.name, *each) for node in manifests.nodes.values() for each in _counted(node)]
    if counted:
        yield ""
        yield table(("NODE", "BY NUMBER (DEVICE PLUGIN)", "ALLOCATABLE", "CAPACITY"), counted)


def _devices(manifests: Manifests) -> Iterator[tuple[ResourceSlice, Device]]:
    """Every device of the newest generation of each pool, by node, driver and position."""
    newest: dict[tuple[str, str], int] = {}
    for slice_ in manifests.slices.values():
        key = (slice_.spec.driver, slice_.spec.pool.name)
        newest[key] = max(newest.get(key, 0), slice_.spec.pool.generation)
    ordered = sorted(
        manifests.slices.values(),
        key=lambda each: (each.spec.node_name or "~", each.spec.driver, each.spec.pool.name, each.metadata.name),
    )
    for slice_ in ordered:
        if slice_.spec.pool.generation == newest[slice_.spec.driver, slice_.spec.pool.name]:
            for device in slice_.spec.devices:
                yield slice_, device


def _holders(manifests: Manifests) -> Mapping[tuple[str, str, str], list[str]]:
    """Device → the claims that have it."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for (namespace, name), claim in manifests.claims.items():
        if claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            who = f"{namespace}/{name}{' (admin)' if result.admin_access else ''}"
            found.setdefault((result.driver, result.pool, result.device), []).append(who)
    return found


def _rules(manifests: Manifests, slice_: ResourceSlice, device: Device) -> list[str]:
    from draht.node.taints import rules_for

    rules = rules_for(
        manifests.taint_rules.values(), driver=slice_.spec.driver, pool=slice_.spec.pool.name, device=device.name
    )
    return [f"{rule.metadata.name}: {_taint(rule.spec.taint)}" for rule in rules]


def _counted(node: Node) -> Iterator[tuple[str, str, str]]:
    for name in sorted(node.status.capacity):
        if "/" in name and not name.startswith(("kubernetes.io/", "hugepages")):
            yield name, str(node.status.allocatable.get(name, 0)), str(node.status.capacity[name])


def _key(slice_: ResourceSlice, device: Device) -> tuple[str, str, str]:
    return slice_.spec.driver, slice_.spec.pool.name, device.name


def _attribute(device: Device, names: tuple[str, ...]) -> str | None:
    for name, attribute in device.attributes.items():
        if name.rpartition("/")[2] in names and attribute.string is not None:
            return attribute.string
    return None


def _simulated(device: Device) -> bool:
    attribute = device.attributes.get("draht.dev/simulated")
    return attribute is not None and attribute.bool_ is True


def _taint(taint: DeviceTaint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
