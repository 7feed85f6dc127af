"""A spec rewritten for an engine that reads only a lower version of CDI.

Owns the rewrites that change the spelling but nothing in the container. Whatever would be lost is refused, with the
feature, the place and the first version that has it; annotations, which reach no container, go if the caller says so.

=========================  =========================================================================================
feature                    rewrite
=========================  =========================================================================================
RDT schemata               an empty list is left out: it sets nothing
a node's host path         left out where it equals the path; or where type, number and file mode are all given,
                           so that nothing is looked up on the host
a mount's type             left out where the options say ``bind`` or ``rbind``: the type means nothing then (OCI
                           runtime spec, "mounts"); ``bind`` without such an option becomes the option
annotations                left out, if asked for
all others                 none
=========================  =========================================================================================
"""

from __future__ import annotations

import msgspec

from draht.cdi.errors import CDIError, LoweringError
from draht.cdi.spec import ContainerEdits, Device, DeviceNode, IntelRdt, Mount, Spec
from draht.cdi.validate import NO_PERMISSIONS, validate
from draht.cdi.version import VERSIONS, normalize, uses

__all__ = ["lower"]

_HINTS = {
    "additional group ids": "pass the groups to the engine itself, as podman run --group-add does",
    "annotations": "leave them out: they don't reach the container",
    "a device name that starts with a digit": "give the device another name",
    "a dot in the class": "give the devices another class",
}
_NONE_SINCE = "1.1.0"
"""Libraries before this version take the permissions ``none`` for a mistake; it isn't a feature of a spec's version."""


def lower(spec: Spec, to: str, *, drop_annotations: bool = False) -> Spec:
    """The spec in a form that readers of version `to` understand, with the same effect on containers.

    Args:
        spec: A valid spec.
        to: A version of `VERSIONS`.
        drop_annotations: Whether annotations may be left out where `to` has none.

    Returns:
        The spec with ``cdi_version`` `to`; the spec itself if it is written for that version or a lower one.

    Raises:
        ValidationError: The spec isn't valid.
        LoweringError: It uses a feature that `to` doesn't have and that can't be rewritten.
        CDIError: There is no version `to`.
    """
    to = normalize(to)
    if to not in VERSIONS:
        raise CDIError(f"there is no CDI version {to!r}", hint=f"use one of {', '.join(VERSIONS)}")
    validate(spec)
    if _at_least(to, normalize(spec.cdi_version)):
        return spec
    _refuse_no_permissions(spec, to)
    lowered = msgspec.structs.replace(
        spec,
        cdi_version=to,
        annotations={} if drop_annotations and not _at_least(to, "0.6.0") else spec.annotations,
        devices=tuple(_device(device, to, drop_annotations) for device in spec.devices),
        container_edits=_edits(spec.container_edits, to),
    )
    left = next(uses(lowered, above=to), None)
    if left is not None:
        owner = f"device {left.device!r}" if left.device is not None else "the spec"
        raise LoweringError(
            f"{owner} uses {left.feature.name}, which CDI has since {left.feature.version} and not in {to}",
            feature=left.feature.name,
            path=left.path,
            device=left.device,
            version=left.feature.version,
            hint=_HINTS.get(left.feature.name, f"use an engine that reads CDI {left.feature.version}"),
        )
    return lowered


def _at_least(version: str, other: str) -> bool:
    return VERSIONS.index(version) >= VERSIONS.index(other)


def _device(device: Device, to: str, drop_annotations: bool) -> Device:
    return msgspec.structs.replace(
        device,
        annotations={} if drop_annotations and not _at_least(to, "0.6.0") else device.annotations,
        container_edits=_edits(device.container_edits, to),
    )


def _edits(edits: ContainerEdits, to: str) -> ContainerEdits:
    changes: dict[str, object] = {}
    if not _at_least(to, "1.1.0") and edits.intel_rdt is not None:
        changes["intel_rdt"] = _rdt(edits.intel_rdt)
    if not _at_least(to, "0.5.0"):
        changes["device_nodes"] = tuple(_node(node) for node in edits.device_nodes)
    if not _at_least(to, "0.4.0"):
        changes["mounts"] = tuple(_mount(mount) for mount in edits.mounts)
    return msgspec.structs.replace(edits, **changes) if changes else edits


def _rdt(rdt: IntelRdt) -> IntelRdt:
    return msgspec.structs.replace(rdt, schemata=None) if rdt.schemata == () else rdt


def _node(node: DeviceNode) -> DeviceNode:
    complete = node.type != "" and (node.major != 0 or node.type == "p") and node.file_mode is not None
    return msgspec.structs.replace(node, host_path="") if complete or node.host_path == node.path else node


def _mount(mount: Mount) -> Mount:
    if not {"bind", "rbind"}.isdisjoint(mount.options):
        return msgspec.structs.replace(mount, type="")
    if mount.type == "bind":
        return msgspec.structs.replace(mount, type="", options=(*mount.options, "bind"))
    return mount


def _refuse_no_permissions(spec: Spec, to: str) -> None:
    owners: list[tuple[str | None, str, ContainerEdits]] = [(None, "containerEdits", spec.container_edits)]
    owners += [(d.name, f"devices[{i}].containerEdits", d.container_edits) for i, d in enumerate(spec.devices)]
    for device, path, edits in owners:
        for index, node in enumerate(edits.device_nodes):
            if node.permissions == NO_PERMISSIONS and not _at_least(to, _NONE_SINCE):
                raise LoweringError(
                    f"{f'device {device!r}' if device is not None else 'the spec'} uses the permissions 'none', "
                    f"which readers of CDI {to} don't know",
                    feature="the permissions 'none'",
                    path=f"{path}.deviceNodes[{index}].permissions",
                    device=device,
                    version=_NONE_SINCE,
                    hint="give it some of r, w and m, or use an engine that reads CDI 1.1.0",
                )
