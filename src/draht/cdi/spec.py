"""The CDI spec as values: what a vendor's file says, with CDI's own field names.

Owns the structs and their text form (`encode`). They are frozen: a loaded spec is shared by everybody who asked the
cache, so whoever needs a different one makes a copy with ``msgspec.structs.replace``. Reading is in ``decode`` (it is
stricter and stranger than a JSON decoder), rules are in ``validate``.

Where the Go structs hold a pointer, the field is ``T | None`` and None means "not said", which is different from 0: a
device node without `uid` gets the container user's. The field names and versions are those of CDI 1.1.0's SPEC.md.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from draht.api import yaml

__all__ = [
    "ContainerEdits",
    "Device",
    "DeviceNode",
    "Hook",
    "IntelRdt",
    "Mount",
    "NetDevice",
    "Spec",
    "encode",
]


_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows as they are, and YAML refuses or takes for line breaks."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
UInt32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


class _Object(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    gc=False,  # values only ever point downwards, and a node has tens of thousands of them
):
    """What all structs share: immutable, keywords only, empty fields are not written."""


class DeviceNode(_Object, frozen=True, kw_only=True):
    """A device node to create in the container.

    Attributes:
        path: Where it appears in the container.
        host_path: The node on the host it stands for; `path` if empty. Since CDI 0.5.0.
        type: ``b`` block, ``c`` or ``u`` character, ``p`` FIFO; empty: as on the host.
        major: Device number; 0 means "as on the host" (then `minor` is taken from there too).
        minor: Device number.
        file_mode: Permission bits as a number; None: as on the host.
        permissions: cgroup access, some of ``rwm``; empty means all three, ``none`` means none.
        uid: Owner; None: the user of the container's process.
        gid: Group; None: the group of the container's process.
    """

    path: str = ""
    host_path: str = ""
    type: str = ""
    major: Int64 = 0
    minor: Int64 = 0
    file_mode: UInt32 | None = None
    permissions: str = ""
    uid: UInt32 | None = None
    gid: UInt32 | None = None


class NetDevice(_Object, frozen=True, kw_only=True):
    """A network interface of the host to move into the container. Since CDI 1.1.0.

    Attributes:
        host_interface_name: Its name on the host.
        name: Its name in the container.
    """

    host_interface_name: str = ""
    name: str = ""


class Hook(_Object, frozen=True, kw_only=True):
    """A program that the runtime starts at a point of the container's life.

    Attributes:
        hook_name: ``prestart``, ``createRuntime``, ``createContainer``, ``startContainer``, ``poststart`` or
            ``poststop``.
        path: The program on the host.
        args: Its arguments, the program's name first.
        env: Its environment, ``NAME=value``.
        timeout: Seconds after which it is killed; None: never.
    """

    hook_name: str = ""
    path: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None


class Mount(_Object, frozen=True, kw_only=True):
    """A mount to make in the container.

    Attributes:
        host_path: The source on the host.
        container_path: Where it appears in the container.
        options: Mount options, as ``ro`` or ``bind``.
        type: The file system, or ``bind``. Since CDI 0.4.0.
    """

    host_path: str = ""
    container_path: str = ""
    options: tuple[str, ...] = ()
    type: str = ""


class IntelRdt(_Object, frozen=True, kw_only=True):
    """Cache and memory-bandwidth settings (Intel Resource Director Technology). Since CDI 0.7.0.

    Attributes:
        clos_id: Class of service, a directory name below ``/sys/fs/resctrl``; ``/`` is the root class.
        l3_cache_schema: The ``L3:`` line.
        mem_bw_schema: The ``MB:`` line.
        schemata: Lines of the schemata file; an empty list is different from none. Since CDI 1.1.0.
        enable_monitoring: Create a monitoring group. Since CDI 1.1.0.
    """

    clos_id: str = msgspec.field(default="", name="closID")
    l3_cache_schema: str = ""
    mem_bw_schema: str = ""
    schemata: tuple[str, ...] | None = None
    enable_monitoring: bool = False


class ContainerEdits(_Object, frozen=True, kw_only=True):
    """What is to be changed in a container.

    Attributes:
        env: Environment, ``NAME=value``.
        device_nodes: Device nodes.
        net_devices: Network interfaces. Since CDI 1.1.0.
        hooks: OCI hooks.
        mounts: Mounts.
        intel_rdt: Resource Director Technology. Since CDI 0.7.0.
        additional_gids: Groups for the container's process; 0 is skipped. Since CDI 0.7.0.
    """

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[UInt32, ...] = ()


class Device(_Object, frozen=True, kw_only=True):
    """A device that can be asked for by name.

    Attributes:
        name: Unique in the spec; a request says ``kind=name``.
        annotations: Notes about the device; they don't reach the container. Since CDI 0.6.0.
        container_edits: What its injection changes.
    """

    name: str = ""
    annotations: dict[str, str] = {}
    container_edits: ContainerEdits = ContainerEdits()


class Spec(_Object, frozen=True, kw_only=True):
    """A CDI spec: the devices of one vendor and class.

    Attributes:
        cdi_version: The version of CDI it is written for, as ``0.6.0``.
        kind: ``vendor/class``.
        annotations: Notes about the spec; they don't reach the container. Since CDI 0.6.0.
        devices: At least one.
        container_edits: Changes made once per container that gets any of the devices.
    """

    cdi_version: str = ""
    kind: str = ""
    annotations: dict[str, str] = {}
    devices: tuple[Device, ...] = ()
    container_edits: ContainerEdits = ContainerEdits()


def encode(spec: Spec, *, format: Literal["json", "yaml"] = "json") -> bytes:  # noqa: A002 - the word people use
    """The text of a spec file, fields in the order of the specification, empty ones left out.

    YAML starts with ``---``, as the files of the Go library do. JSON is written so that a YAML reader, which is what
    engines have, finds the same texts in it.
    """
    if format == "json":
        text = msgspec.json.format(msgspec.json.encode(spec), indent=2).decode()
        return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"
    return yaml.dump(msgspec.to_builtins(spec), explicit_start=True).encode()
