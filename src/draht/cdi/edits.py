"""Edits applied to an OCI runtime spec, in the order and with the effects that container engines have.

Owns the merge of edits (`collect`) and their application (`apply`) to the dict of a ``config.json``. The order is that
of the Go library v1.1.2: environment, device nodes with their cgroup rules, network devices, mounts, hooks, RDT,
groups. Unlike there, nothing of the spec has changed when it fails, and loaded specs are never touched: what the host
has to say about a device node goes into a copy.

Source of the target fields: OCI runtime spec 1.3.0, ``config.md`` and ``config-linux.md``.
"""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from draht.cdi.errors import HostDeviceError, InjectionError
from draht.cdi.files import reason
from draht.cdi.host import HostDevices, HostNode, HostNodes
from draht.cdi.spec import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount
from draht.cdi.validate import NO_PERMISSIONS, edit_problems

__all__ = ["apply", "collect", "fill"]

OCISpec = dict[str, Any]
_FIFO = "p"
_GONE = object()


def collect(parts: Iterable[ContainerEdits]) -> ContainerEdits:
    """Several edits as one: lists one after the other, and the last RDT settings win."""
    all_parts = list(parts)
    return ContainerEdits(
        env=tuple(item for part in all_parts for item in part.env),
        device_nodes=tuple(item for part in all_parts for item in part.device_nodes),
        net_devices=tuple(item for part in all_parts for item in part.net_devices),
        hooks=tuple(item for part in all_parts for item in part.hooks),
        mounts=tuple(item for part in all_parts for item in part.mounts),
        intel_rdt=next((part.intel_rdt for part in reversed(all_parts) if part.intel_rdt is not None), None),
        additional_gids=tuple(item for part in all_parts for item in part.additional_gids),
    )


def apply(edits: ContainerEdits, oci: OCISpec, host: HostNodes | None = None) -> None:
    """Apply edits to the dict of an OCI runtime spec, in place.

    Args:
        edits: What to change.
        oci: The runtime spec; fields it lacks are added where they are needed.
        host: Where device nodes are looked up; by default on this machine.

    Raises:
        InjectionError: The edits break a rule (also one that holds only together, as two network devices of one name),
            or the runtime spec has a field of a wrong type.
        HostDeviceError: A device node is incomplete and the host doesn't have it or has something else.
    """
    problem = next(edit_problems(edits), None)
    if problem is not None:
        raise InjectionError(f"{problem.path}: {problem.message}", hint=problem.hint)
    nodes = [fill(node, host if host is not None else HostDevices()) for node in edits.device_nodes]
    editor = _Editor(oci)
    editor.add_env(edits.env)
    editor.add_devices(nodes)
    for device in edits.net_devices:
        editor.linux("netDevices", dict)[device.host_interface_name] = {"name": device.name}
    editor.add_mounts(edits.mounts)
    for hook in edits.hooks:
        editor.hooks(hook.hook_name).append(_oci_hook(hook))
    if edits.intel_rdt is not None:
        editor.set_rdt(edits.intel_rdt)
    editor.add_gids(edits.additional_gids)
    oci.update(editor.changed)


def fill(node: DeviceNode, host: HostNodes) -> DeviceNode:
    """A copy of a device node with what it leaves open taken from the host.

    A node that says its type and its major number (a FIFO: its type) may be missing on the host; then only its file
    mode is taken from there, if it is there.

    Raises:
        HostDeviceError: It says less than that, and the host doesn't have it or has something else.
    """
    complete = node.type != "" and (node.major != 0 or node.type == _FIFO)
    path = node.host_path or node.path
    try:
        found = host.node(path)
    except (OSError, ValueError) as error:
        if complete:
            return node
        raise HostDeviceError(
            f"the host's device node can't be used: {reason(error)}",
            path=path,
            hint="load the driver that makes it, or generate the spec again",
        ) from None
    changes = _missing(node, found, path, complete=complete)
    return msgspec.structs.replace(node, **changes) if changes else node


def _missing(node: DeviceNode, found: HostNode, path: str, *, complete: bool) -> dict[str, object]:
    changes: dict[str, object] = {}
    if node.file_mode is None:
        changes["file_mode"] = found.mode
    if complete:
        return changes
    if node.type not in {"", found.type}:
        raise HostDeviceError(
            f"the spec wants a node of type {node.type}, the host has one of type {found.type}",
            path=path,
            hint="generate the spec again",
        )
    changes["type"] = found.type
    if found.type != _FIFO and node.major == 0:
        changes["major"], changes["minor"] = found.major, found.minor
    return changes


class _Editor:
    """The sections of a runtime spec that change, copied as deep as they do.

    Attributes:
        changed: Top-level sections with their new content.
    """

    def __init__(self, oci: OCISpec) -> None:
        self.changed: dict[str, Any] = {}
        self._oci = oci
        self._copied: dict[tuple[str, ...], Any] = {}

    def section(self, type_: type[Any], *path: str) -> Any:
        """The dict or list at a path, made if it is missing; a copy, in copies of what is around it."""
        if path in self._copied:
            return self._copied[path]
        *outer, name = path
        parent = self.section(dict, *outer) if outer else self.changed
        present = (parent if outer else self._oci).get(name)
        if present is None:
            present = type_()
        elif not isinstance(present, type_):
            raise _wrong(".".join(path), "an object" if type_ is dict else "a list")
        parent[name] = self._copied[path] = present.copy()
        return parent[name]

    def linux(self, name: str, type_: type[Any]) -> Any:
        """A section below ``linux``."""
        return self.section(type_, "linux", name)

    def hooks(self, name: str) -> list[Any]:
        """The hooks for one point."""
        hooks: list[Any] = self.section(list, "hooks", name)
        return hooks

    def add_env(self, variables: tuple[str, ...]) -> None:
        """Set variables: in place where there is one of that name (the last one, if several), else at the end."""
        if not variables:
            return
        env = self.section(list, "process", "env")
        if not all(isinstance(variable, str) for variable in env):
            raise _wrong("process.env", "a list of texts")
        places = {variable.partition("=")[0]: index for index, variable in enumerate(env)}
        for variable in variables:
            place = places.setdefault(variable.partition("=")[0], len(env))
            env[place : place + 1] = [variable]

    def add_devices(self, nodes: Iterable[DeviceNode]) -> None:
        """Add device nodes in place of those with their path, and the cgroup rules that let them be used."""
        present: _Keyed | None = None
        for node in nodes:
            if present is None:
                present = _Keyed(self.section(list, "linux", "devices"), "linux.devices", "path")
            present.drop_first(node.path)
            present.put(node.path, self._oci_device(node))
            if node.type in {"b", "c"}:
                rule = {"allow": True, "type": node.type, "major": node.major, "minor": node.minor}
                if node.permissions != NO_PERMISSIONS:
                    rule["access"] = node.permissions or "rwm"
                self.section(list, "linux", "resources", "devices").append(rule)
        if present is not None:
            present.settle()

    def add_mounts(self, mounts: tuple[Mount, ...]) -> None:
        """Add mounts in place of those with their destination; then sort all by the depth of the destination."""
        if not mounts:
            return
        section = self.section(list, "mounts")
        present = _Keyed(section, "mounts", "destination")
        id_mapped = self._maps_ids()
        for mount in mounts:
            present.drop_first(mount.container_path)
            present.append(mount.container_path, _oci_mount(mount, id_mapped=id_mapped))
        present.settle()
        section.sort(key=_depth)

    def set_rdt(self, rdt: IntelRdt) -> None:
        """Replace the RDT settings as a whole."""
        self.section(dict, "linux")["intelRdt"] = {
            key: value for key, value in msgspec.to_builtins(rdt).items() if value
        }

    def add_gids(self, gids: tuple[int, ...]) -> None:
        """Add groups to the process, unless it has them; 0 is skipped."""
        wanted = [gid for gid in dict.fromkeys(gids) if gid]
        if wanted:
            present = self.section(list, "process", "user", "additionalGids")
            if not all(isinstance(gid, int) for gid in present):
                raise _wrong("process.user.additionalGids", "a list of numbers")
            there = set(present)
            present.extend(gid for gid in wanted if gid not in there)

    def _oci_device(self, node: DeviceNode) -> dict[str, Any]:
        device: dict[str, Any] = {"path": node.path, "type": node.type, "major": node.major, "minor": node.minor}
        if node.file_mode is not None:
            device["fileMode"] = node.file_mode
        user = _field(self.changed.get("process", self._oci.get("process")), "user")
        for key, value in (("uid", node.uid), ("gid", node.gid)):
            if value is not None:
                device[key] = value
            elif (inherited := _field(user, key)) is not None and not isinstance(inherited, int):
                raise _wrong(f"process.user.{key}", "a number")
            elif inherited:
                # The container's user owns the node, unless that is root, which the runtime makes it anyway.
                device[key] = inherited
        return device

    def _maps_ids(self) -> bool:
        """Whether the container has a user namespace with mappings of both kinds, which bind mounts then need too."""
        linux = self.changed.get("linux", self._oci.get("linux"))
        namespaces = _field(linux, "namespaces")
        return (
            bool(_field(linux, "uidMappings"))
            and bool(_field(linux, "gidMappings"))
            and isinstance(namespaces, list)
            and any(_field(namespace, "type") == "user" for namespace in namespaces)
        )


class _Keyed:
    """A list whose items are found by a field, without going through it for each."""

    def __init__(self, items: list[Any], path: str, field: str) -> None:
        self._items = items
        self._places: dict[str, deque[int]] = {}
        for place, item in enumerate(items):
            key = _field(item, field)
            if not isinstance(item, dict | None) or not isinstance(key, str | None):
                raise _wrong(f"{path}[{place}]", f"an object with a text as {field}")
            self._places.setdefault(key or "", deque()).append(place)

    def drop_first(self, key: str) -> None:
        """Take away the first item with that key, if there is one."""
        if places := self._places.get(key):
            self._items[places.popleft()] = _GONE

    def put(self, key: str, item: object) -> None:
        """Replace the first item with that key, or append."""
        if places := self._places.get(key):
            self._items[places[0]] = item
        else:
            self.append(key, item)

    def append(self, key: str, item: object) -> None:
        """Append an item."""
        self._places.setdefault(key, deque()).append(len(self._items))
        self._items.append(item)

    def settle(self) -> None:
        """Close the gaps; nothing may be added after this."""
        self._items[:] = [item for item in self._items if item is not _GONE]


def _wrong(path: str, wanted: str) -> InjectionError:
    return InjectionError(f"the OCI spec's {path} is not {wanted}", hint="pass the runtime's config.json")


def _field(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _depth(mount: Any) -> int:
    """How many path separators the cleaned destination has; the order Docker mounts volumes in."""
    destination = _field(mount, "destination")
    if not isinstance(destination, str) or not destination:
        return 0
    # normpath keeps two leading slashes, for a reason of POSIX that Go doesn't share.
    return posixpath.normpath("/" + destination.lstrip("/") if destination[0] == "/" else destination).count("/")


def _oci_mount(mount: Mount, *, id_mapped: bool) -> dict[str, Any]:
    options = list(mount.options)
    if id_mapped and (extra := _id_map_option(mount)) is not None:
        options.append(extra)
    fields = {"destination": mount.container_path, "type": mount.type, "source": mount.host_path, "options": options}
    return {key: value for key, value in fields.items() if value}


def _id_map_option(mount: Mount) -> str | None:
    """The option that gives a bind mount the container's id mappings; None where there is no need."""
    option = "idmap" if mount.type == "bind" else None
    for given in mount.options:
        if given in {"idmap", "ridmap"}:
            return None
        option = {"bind": "idmap", "rbind": "ridmap"}.get(given, option)
    return option


def _oci_hook(hook: Hook) -> dict[str, Any]:
    fields = {"path": hook.path, "args": list(hook.args), "env": list(hook.env)}
    oci: dict[str, Any] = {key: value for key, value in fields.items() if value}
    if hook.timeout is not None:
        oci["timeout"] = hook.timeout
    return oci
