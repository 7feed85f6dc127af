"""The rules a decoded spec has to follow, all of them at once and with the field each is about.

Owns the checks; the verdict is that of the Go library v1.1.2. What SPEC.md asks for but the library lets pass (absolute
paths, lengths of names, the form of annotation keys, a positive timeout) is not checked: engines accept it.
"""

from __future__ import annotations

from collections.abc import Iterator

from draht.cdi.errors import DeviceNameError, ValidationError
from draht.cdi.names import check_class, check_device_name, check_vendor, split_kind
from draht.cdi.spec import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount, NetDevice, Spec
from draht.cdi.version import VERSIONS, exceeds, minimum_version, normalize, uses

__all__ = ["DEVICE_TYPES", "HOOK_NAMES", "NO_PERMISSIONS", "edit_problems", "is_empty", "problems", "validate"]

HOOK_NAMES = frozenset(
    ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"),
)
"""The points of a container's life that a hook may name (OCI runtime spec, "POSIX-platform hooks")."""

DEVICE_TYPES = frozenset(("", "b", "c", "u", "p"))
"""Block, character (two spellings) and FIFO; empty means as on the host."""

NO_PERMISSIONS = "none"
"""`permissions` of a device node that gets no cgroup access, where empty would mean all of it."""

_PERMISSIONS = frozenset("rwm")
_NO_EDITS = ContainerEdits()


def validate(spec: Spec) -> None:
    """Check a spec.

    Raises:
        ValidationError: The first rule that it breaks.
    """
    first = next(problems(spec), None)
    if first is not None:
        raise first


def problems(spec: Spec) -> Iterator[ValidationError]:
    """Every rule that the spec breaks, in the order of its fields."""
    yield from _version_problems(spec)
    yield from _kind_problems(spec.kind)
    yield from edit_problems(spec.container_edits, "containerEdits")
    if not spec.devices:
        yield ValidationError("a spec needs at least one device", path="devices")
    names: dict[str, int] = {}
    for index, device in enumerate(spec.devices):
        path = f"devices[{index}]"
        try:
            check_device_name(device.name)
        except DeviceNameError as error:
            yield ValidationError(error.message, path=f"{path}.name", hint=error.hint)
        first = names.setdefault(device.name, index)
        if first != index:
            yield ValidationError(f"devices[{first}] has the name {device.name!r} already", path=f"{path}.name")
        if is_empty(device.container_edits):
            yield ValidationError(
                f"the device {device.name!r} changes nothing",
                path=f"{path}.containerEdits",
                hint="give it at least one of env, deviceNodes, netDevices, hooks, mounts, intelRdt, additionalGids",
            )
        yield from edit_problems(device.container_edits, f"{path}.containerEdits")


def is_empty(edits: ContainerEdits) -> bool:
    """Whether edits change nothing at all, which a device may not."""
    return edits == _NO_EDITS


def edit_problems(edits: ContainerEdits, path: str = "containerEdits") -> Iterator[ValidationError]:
    """Every rule that edits break; the paths begin with `path`."""
    if edits.env:
        yield from _env_problems(edits.env, f"{path}.env")
    for index, node in enumerate(edits.device_nodes):
        if _node_is_wrong(node):
            yield from _node_problems(node, f"{path}.deviceNodes[{index}]")
    for index, hook in enumerate(edits.hooks):
        yield from _hook_problems(hook, path, index)
    for index, mount in enumerate(edits.mounts):
        if not mount.host_path or not mount.container_path:
            yield from _mount_problems(mount, f"{path}.mounts[{index}]")
    if edits.intel_rdt is not None:
        yield from _rdt_problems(edits.intel_rdt, f"{path}.intelRdt")
    if edits.net_devices:
        yield from _net_device_problems(edits.net_devices, f"{path}.netDevices")


def _version_problems(spec: Spec) -> Iterator[ValidationError]:
    version = normalize(spec.cdi_version)
    if version not in VERSIONS:
        yield ValidationError(
            f"there is no CDI version {spec.cdi_version!r}" if version else "the version is missing",
            path="cdiVersion",
            hint=f"write one of {', '.join(VERSIONS)}",
        )
        return
    if exceeds(spec, version):
        needed = minimum_version(spec)
        use = next(uses(spec, above=version))
        yield ValidationError(
            f"{use.feature.name} needs CDI {use.feature.version} or later, the spec says {version}",
            path=use.path,
            hint=f"write cdiVersion: {needed}",
        )


def _kind_problems(kind: str) -> Iterator[ValidationError]:
    vendor, class_ = split_kind(kind)
    if not vendor:
        yield ValidationError(
            f"{kind!r} is not a kind" if kind else "the kind is missing",
            path="kind",
            hint="write vendor/class, like nvidia.com/gpu",
        )
        return
    for check, part in ((check_vendor, vendor), (check_class, class_)):
        try:
            check(part)
        except DeviceNameError as error:
            yield ValidationError(error.message, path="kind", hint=error.hint)


def _env_problems(env: tuple[str, ...], path: str) -> Iterator[ValidationError]:
    for index, variable in enumerate(env):
        if variable.find("=") < 1:
            yield ValidationError(
                f"{variable!r} is not an environment variable", path=f"{path}[{index}]", hint="write NAME=value"
            )


def _node_is_wrong(node: DeviceNode) -> bool:
    """Whether `_node_problems` has something to say: asked thousands of times, and nearly always it hasn't."""
    return (
        not node.path
        or node.type not in DEVICE_TYPES
        or node.major < 0
        or node.minor < 0
        or (node.permissions != "" and not _PERMISSIONS.issuperset(node.permissions))
    )


def _node_problems(node: DeviceNode, path: str) -> Iterator[ValidationError]:
    if not node.path:
        yield ValidationError("the device node has no path", path=f"{path}.path")
    if node.type not in DEVICE_TYPES:
        yield ValidationError(
            f"{node.type!r} is not a type of device node",
            path=f"{path}.type",
            hint="write b (block), c or u (character) or p (FIFO), or leave it out",
        )
    for name, number in (("major", node.major), ("minor", node.minor)):
        if number < 0:
            # The kernel's device rules read -1 as "any number".
            yield ValidationError(f"the device number {number} is negative", path=f"{path}.{name}")
    if node.permissions != NO_PERMISSIONS and not _PERMISSIONS.issuperset(node.permissions):
        yield ValidationError(
            f"{node.permissions!r} are not permissions", path=f"{path}.permissions", hint="use r, w and m, or none"
        )


def _hook_problems(hook: Hook, path: str, index: int) -> Iterator[ValidationError]:
    path = f"{path}.hooks[{index}]"
    if hook.hook_name not in HOOK_NAMES:
        yield ValidationError(
            f"{hook.hook_name!r} is not the name of a hook",
            path=f"{path}.hookName",
            hint=f"write one of {', '.join(sorted(HOOK_NAMES))}",
        )
    if not hook.path:
        yield ValidationError("the hook has no path", path=f"{path}.path")
    yield from _env_problems(hook.env, f"{path}.env")


def _mount_problems(mount: Mount, path: str) -> Iterator[ValidationError]:
    if not mount.host_path:
        yield ValidationError("the mount has no hostPath", path=f"{path}.hostPath")
    if not mount.container_path:
        yield ValidationError("the mount has no containerPath", path=f"{path}.containerPath")


def _rdt_problems(rdt: IntelRdt, path: str) -> Iterator[ValidationError]:
    # The name becomes a directory below /sys/fs/resctrl; "/" alone means the root class.
    name = rdt.clos_id
    if name != "/" and (len(name.encode()) >= 4096 or name in {".", ".."} or "/" in name or "\n" in name):
        yield ValidationError(
            f"{name[:60]!r} is not a class of service", path=f"{path}.closID", hint="write one directory name, or /"
        )


def _net_device_problems(devices: tuple[NetDevice, ...], path: str) -> Iterator[ValidationError]:
    hosts: dict[str, int] = {}
    names: dict[str, int] = {}
    for index, device in enumerate(devices):
        for field, value, seen in (
            ("hostInterfaceName", device.host_interface_name, hosts),
            ("name", device.name, names),
        ):
            place = f"{path}[{index}].{field}"
            if not value:
                yield ValidationError(f"the network device has no {field}", path=place)
            elif seen.setdefault(value, index) != index:
                yield ValidationError(f"netDevices[{seen[value]}] has {field} {value!r} already", path=place)
