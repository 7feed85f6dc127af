"""Which version of CDI has which feature, as data, and what follows from it.

Owns the table that the validator, the writer, the lowering and the CLI share. Source: CDI's SPEC.md change log and
``specs-go/version.go`` v1.1.1, which decides by the same features; 0.8.0 and 1.0.0 added none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from draht.cdi.spec import ContainerEdits, Spec

__all__ = [
    "FEATURES",
    "VERSIONS",
    "Feature",
    "Use",
    "enforced_version",
    "exceeds",
    "minimum_version",
    "normalize",
    "uses",
]

VERSIONS: tuple[str, ...] = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
"""Released versions in order. 0.1.0 and 0.2.0 are known by name but no spec can be written for them."""


class Feature(NamedTuple):
    """Something a spec can use.

    Attributes:
        name: In words.
        version: The first version that has it.
        places: The fields of a spec that use it, as paths.
        overlooked: Whether the Go library v1.1.2 sees it only in the last device and in the common edits, by a mistake
            in its loops; then it lets a spec pass that says a lower version.
    """

    name: str
    version: str
    places: Callable[[Spec], Iterator[str]]
    overlooked: bool = False


class Use(NamedTuple):
    """One place where a spec uses a feature.

    Attributes:
        feature: The feature.
        path: The field, as ``devices[0].containerEdits.mounts[1].type``.
        device: The name of the device it belongs to; None for the spec as a whole.
    """

    feature: Feature
    path: str
    device: str | None


def _edits(spec: Spec) -> Iterator[tuple[str, ContainerEdits]]:
    yield "containerEdits", spec.container_edits
    for index, device in enumerate(spec.devices):
        yield f"devices[{index}].containerEdits", device.container_edits


def _net_devices(spec: Spec) -> Iterator[str]:
    return (f"{path}.netDevices" for path, edits in _edits(spec) if edits.net_devices)


def _schemata(spec: Spec) -> Iterator[str]:
    # An empty list counts: upstream asks whether it is there, not whether it says something.
    return (
        f"{path}.intelRdt.schemata"
        for path, edits in _edits(spec)
        if edits.intel_rdt is not None and edits.intel_rdt.schemata is not None
    )


def _monitoring(spec: Spec) -> Iterator[str]:
    return (
        f"{path}.intelRdt.enableMonitoring"
        for path, edits in _edits(spec)
        if edits.intel_rdt is not None and edits.intel_rdt.enable_monitoring
    )


def _intel_rdt(spec: Spec) -> Iterator[str]:
    return (f"{path}.intelRdt" for path, edits in _edits(spec) if edits.intel_rdt is not None)


def _additional_gids(spec: Spec) -> Iterator[str]:
    return (f"{path}.additionalGids" for path, edits in _edits(spec) if edits.additional_gids)


def _annotations(spec: Spec) -> Iterator[str]:
    if spec.annotations:
        yield "annotations"
    for index, device in enumerate(spec.devices):
        if device.annotations:
            yield f"devices[{index}].annotations"


def _dotted_class(spec: Spec) -> Iterator[str]:
    # Cut at the first slash even where the kind is malformed, as upstream does.
    if "." in spec.kind.partition("/")[2]:
        yield "kind"


def _digit_names(spec: Spec) -> Iterator[str]:
    return (f"devices[{index}].name" for index, device in enumerate(spec.devices) if device.name[:1] in _DIGITS)


def _host_paths(spec: Spec) -> Iterator[str]:
    return (
        f"{path}.deviceNodes[{index}].hostPath"
        for path, edits in _edits(spec)
        for index, node in enumerate(edits.device_nodes)
        if node.host_path
    )


def _mount_types(spec: Spec) -> Iterator[str]:
    return (
        f"{path}.mounts[{index}].type"
        for path, edits in _edits(spec)
        for index, mount in enumerate(edits.mounts)
        if mount.type
    )


_DIGITS = frozenset("0123456789")

FEATURES: tuple[Feature, ...] = (
    Feature("network devices", "1.1.0", _net_devices),
    Feature("RDT schemata", "1.1.0", _schemata),
    Feature("RDT monitoring", "1.1.0", _monitoring),
    Feature("Intel RDT", "0.7.0", _intel_rdt),
    Feature("additional group ids", "0.7.0", _additional_gids),
    Feature("annotations", "0.6.0", _annotations),
    Feature("a dot in the class", "0.6.0", _dotted_class),
    Feature("a device name that starts with a digit", "0.5.0", _digit_names),
    Feature("a device node's host path", "0.5.0", _host_paths, overlooked=True),
    Feature("a mount's type", "0.4.0", _mount_types, overlooked=True),
)
"""All features, newest first."""

_ABOVE = {
    version: tuple(feature for feature in FEATURES if VERSIONS.index(feature.version) > VERSIONS.index(version))
    for version in VERSIONS
}


def minimum_version(spec: Spec) -> str:
    """The lowest version that has every feature the spec uses."""
    for feature in FEATURES:
        if next(feature.places(spec), None) is not None:
            return feature.version
    return VERSIONS[0]


def enforced_version(spec: Spec) -> str:
    """The lowest version that engines let pass for the spec, which may be lower than `minimum_version`."""
    return next((feature.version for feature in FEATURES if _is_noticed(feature, spec)), VERSIONS[0])


def exceeds(spec: Spec, version: str) -> bool:
    """Whether engines refuse the spec if it says `version`: whether `enforced_version` is above it."""
    return any(_is_noticed(feature, spec) for feature in _ABOVE[version])


def uses(spec: Spec, *, above: str = "") -> Iterator[Use]:
    """Every place where the spec uses a feature, or only features that came after the version `above`."""
    for feature in _ABOVE[above] if above else FEATURES:
        for path in feature.places(spec):
            yield Use(feature, path, _device_of(spec, path))


def normalize(version: str) -> str:
    """A version as it is in `VERSIONS`: one leading ``v`` is allowed in a spec."""
    return version.removeprefix("v")


def _is_noticed(feature: Feature, spec: Spec) -> bool:
    if feature.overlooked:
        spec = msgspec.structs.replace(spec, devices=spec.devices[-1:])
    return next(feature.places(spec), None) is not None


def _device_of(spec: Spec, path: str) -> str | None:
    if not path.startswith("devices["):
        return None
    return spec.devices[int(path[len("devices[") : path.index("]")])].name
