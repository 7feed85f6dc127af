"""Why a device can't be resolved, as a value: what was read, what is broken, what is offered, and what to do next.

"Unresolvable CDI device" is the question users of CDI ask most, because engines answer with the name alone. The cache
knows more: which directories it read, which files it couldn't use and why, who is in conflict with whom. This module
puts that together per requested name, most likely cause first, and each cause carries a step that removes it.

It decides nothing: a name is resolvable if and only if the cache and the host say so. Reading of files that the cache
leaves aside is in ``unread``, names that may have been meant are in ``suggestions``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote

from draht.cdi.cache import Cache
from draht.cdi.decode import decode
from draht.cdi.diagnosis import MAX_OFFERED, Diagnosis, DirectoryReport, Finding, NameDiagnosis
from draht.cdi.edits import fill
from draht.cdi.errors import CDIError, ConflictError, DeviceNameError, HostDeviceError
from draht.cdi.files import SPEC_SUFFIXES
from draht.cdi.host import HostNodes
from draht.cdi.names import QualifiedName, parse_qualified_name
from draht.cdi.spec import ContainerEdits
from draht.cdi.suggestions import near_names, near_unqualified
from draht.cdi.unread import WELL_KNOWN_DIRECTORIES, ignored_files, peek, peek_kind, unreadable_reason
from draht.cdi.validate import is_empty

__all__ = ["explain_unresolvable"]

_MAX_FILES = 200
_MAX_NODES = 5

_GENERATORS = {
    "nvidia.com": "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",
    "management.nvidia.com": "nvidia-ctk cdi generate --mode=management --vendor=management.nvidia.com"
    " --output=/var/run/cdi/management.nvidia.com-gpu.yaml",
    "amd.com": "amd-ctk cdi generate --output=/var/run/cdi/amd.json",
}
"""Vendor → the command that writes its specs."""

_MIG = re.compile(r"MIG-.+|\d+:\d+")
_UUID = re.compile(r"(GPU|MIG)-[0-9a-fA-F-]+")


def explain_unresolvable(
    cache: Cache,
    names: Iterable[str],
    host: HostNodes | None = None,
    *,
    others: Sequence[str] = WELL_KNOWN_DIRECTORIES,
) -> Diagnosis:
    """Say for each name whether it can be injected, and if not, why and what to do.

    Args:
        cache: The cache that couldn't resolve them; it isn't refreshed.
        names: As requested, qualified or not.
        host: Where device nodes are looked up; the cache's host by default.
        others: Directories in which tools write specs, too; they are looked into if the cache doesn't read them.
    """
    host = host if host is not None else cache.host
    return Diagnosis(
        directories=tuple(_directory_reports(cache)),
        names=tuple(_diagnose(cache, name, host, others) for name in dict.fromkeys(names)),
    )


def _diagnose(cache: Cache, name: str, host: HostNodes, others: Sequence[str]) -> NameDiagnosis:
    try:
        wanted = parse_qualified_name(name)
    except DeviceNameError as error:
        near = near_unqualified(cache, name)
        return NameDiagnosis(name=name, resolvable=False, near=near, findings=(_not_qualified(name, error, near),))
    offered = [device.partition("=")[2] for device in cache.devices() if device.startswith(f"{wanted.kind}=")]
    near = near_names(cache, wanted, offered)
    loaded = cache.device(name)
    if loaded is not None:
        edits = (loaded.spec.spec.container_edits, loaded.device.container_edits)
        findings = list(_missing_nodes(edits, host, loaded.spec.path, wanted))
        near = ()
    else:
        findings = list(_reasons(cache, wanted, offered, near, others))
    return NameDiagnosis(
        name=name,
        resolvable=not findings,
        kind=wanted.kind,
        offered=tuple(offered[:MAX_OFFERED]),
        offered_total=len(offered),
        near=near,
        findings=tuple(findings),
    )


def _reasons(
    cache: Cache, wanted: QualifiedName, offered: Sequence[str], near: Sequence[str], others: Sequence[str]
) -> list[Finding]:
    """Why nobody offers a name, most likely reason first."""
    conflicts = list(_conflicts(cache, str(wanted)))
    if conflicts:
        return conflicts
    problems = list(_files_with_problems(cache, wanted))
    certain = [finding for finding, kind in problems if kind == wanted.kind]
    ignored = list(_ignored_files(cache, wanted))
    # Beside a file of its kind it is a backup as a rule: no likely reason, and read as well it would be in conflict.
    backups = [finding for finding in ignored if len(finding.paths) > 1]
    possible = [finding for finding, kind in problems if kind is None]
    seen = [
        *certain,
        *(finding for finding in ignored if finding not in backups),
        *_unreadable_directories(cache),
        *_elsewhere(cache, str(wanted), others),
    ]
    unreadable = [finding for finding in possible if finding.cause == "unreadable-file"]
    if offered:
        return [*seen, *_not_offered(cache, wanted, offered, near), *backups, *possible]
    # That nobody offers the kind is no news where a file of that kind is known to be unusable.
    names_alone = [] if seen else list(_not_offered(cache, wanted, offered, near))
    rest = [finding for finding in possible if finding not in unreadable]
    return [*seen, *unreadable, *names_alone, *backups, *rest]


def _not_qualified(name: str, error: CDIError, near: Sequence[str]) -> Finding:
    if name.startswith("/"):
        return Finding(
            cause="not-qualified",
            message=f"{name!r} is the path of a device node, not a CDI device",
            next_step="give a path to the engine itself (--device), or ask for a CDI device: vendor/class=name",
        )
    step = f"ask for {near[0]}" if near else error.hint or "write it as vendor/class=name"
    return Finding(cause="not-qualified", message=error.message, next_step=step)


def _missing_nodes(
    edits: Iterable[ContainerEdits], host: HostNodes, path: str, wanted: QualifiedName
) -> Iterator[Finding]:
    errors: dict[str, HostDeviceError] = {}
    for node in (node for each in edits for node in each.device_nodes):
        try:
            fill(node, host)
        except HostDeviceError as error:
            errors[error.path] = error
    if not errors:
        return
    listed = [f"{error.path} ({error.message.rpartition(': ')[2]})" for error in list(errors.values())[:_MAX_NODES]]
    more = f" and {len(errors) - len(listed)} more" if len(errors) > len(listed) else ""
    yield Finding(
        cause="missing-node",
        message=f"{path} names device nodes that this host doesn't have: {', '.join(listed)}{more}",
        next_step="load the driver that makes them; if they have other numbers since the file was written, "
        + _regenerate(wanted.vendor),
        paths=(path, *errors),
    )


def _conflicts(cache: Cache, name: str) -> Iterator[Finding]:
    for error in cache.conflicts():
        if error.device == name:
            first, second = error.paths
            yield Finding(
                cause="conflict",
                message=f"{first} and {second} both define it, so neither counts",
                next_step=f"keep one of the two files and remove the other, as with: rm {quote(first)}",
                paths=(first, second),
            )


def _files_with_problems(cache: Cache, wanted: QualifiedName) -> Iterator[tuple[Finding, str | None]]:
    """Files that can't be used, with the wanted kind, or None where it is less sure that they matter."""
    for path, errors in list(cache.errors().items())[:_MAX_FILES]:
        error = next((error for error in errors if not isinstance(error, ConflictError)), None)
        if error is None:
            continue
        data = peek(path)
        if data is None:
            reason, step = unreadable_reason(path) or (error.message, error.hint or "mend or remove it")
            message = f"{path} may be of this kind and can't be read: {reason}"
            yield Finding(cause="unreadable-file", message=message, next_step=step, paths=(path,)), None
            continue
        kind = peek_kind(data)
        if kind is not None and kind != wanted.kind:
            continue
        whose = "is of this kind" if kind else "may be of this kind"
        empty = _devices_without_edits(data)
        finding = Finding(
            cause="no-edits" if empty else "broken-file",
            message=f"{path} {whose} and can't be used: {_inside(error, path)}",
            next_step=f"{error.hint or 'mend the file'}; or {_regenerate(wanted.vendor)}",
            paths=(path,),
        )
        # A file that doesn't even mention the device is no likely reason, whatever else is wrong with it.
        yield finding, kind if wanted.name.encode() in data else None


def _devices_without_edits(data: bytes) -> tuple[str, ...]:
    """Names of the devices that change nothing, for which a whole file is refused."""
    try:
        spec = decode(data)
    except CDIError:
        return ()
    return tuple(device.name for device in spec.devices if is_empty(device.container_edits))


def _inside(error: CDIError, path: str) -> str:
    """An error of a file without the file's name at its front: line and column, or the field, and the problem."""
    place = (error.where or "").removeprefix(path).lstrip(": ")
    return f"{place}: {error.message}" if place else error.message


def _ignored_files(cache: Cache, wanted: QualifiedName) -> Iterator[Finding]:
    for directory in cache.directories():
        for file in ignored_files(directory.path):
            if file.kind in (None, wanted.kind):
                target = str(Path(file.path).with_suffix(SPEC_SUFFIXES[1]))
                beside = _spec_of_kind(cache, wanted.kind, directory.path)
                yield Finding(
                    cause="ignored-file",
                    message=f"{file.path} {'is' if file.kind else 'may be'} of this kind, but only names that end in "
                    f"{' or '.join(SPEC_SUFFIXES)} are read",
                    next_step=f"compare it with {beside}, which is read; or {_regenerate(wanted.vendor)}"
                    if beside
                    else f"give it such a name, as with: mv {quote(file.path)} {quote(target)}",
                    paths=(file.path, beside) if beside else (file.path,),
                )


def _spec_of_kind(cache: Cache, kind: str, directory: str) -> str | None:
    specs = (spec.path for spec in cache.specs() if spec.spec.kind == kind and _lies_in(spec.path, directory))
    return next(specs, None)


def _unreadable_directories(cache: Cache) -> Iterator[Finding]:
    for directory in cache.directories():
        if directory.error is not None:
            yield Finding(
                cause="unreadable-directory",
                message=f"{directory.path}: {_inside(directory.error, directory.path)}",
                next_step=f"give users the right to list it, as with: chmod a+rx {quote(directory.path)}",
                paths=(directory.path,),
            )


def _elsewhere(cache: Cache, name: str, others: Sequence[str]) -> Iterator[Finding]:
    """Usual directories that the cache doesn't read and that offer the device."""
    read = {os.path.realpath(directory.path) for directory in cache.directories() if directory.error is None}
    for directory in others:
        if os.path.realpath(directory) not in read and Cache([directory]).device(name) is not None:
            every = ":".join([*(known.path for known in cache.directories()), directory])
            yield Finding(
                cause="elsewhere",
                message=f"{directory} offers it, and is not among the directories that are read",
                next_step=f"have it read too: DRAHT_CDI_DIRS={quote(every)} draht cdi devices, "
                f"podman --cdi-spec-dir={quote(directory)}, cdi-spec-dirs of dockerd, cdi_spec_dirs of containerd",
                paths=(directory,),
            )


def _not_offered(cache: Cache, wanted: QualifiedName, offered: Sequence[str], near: Sequence[str]) -> Iterator[Finding]:
    """What can be said from the names alone."""
    if wanted.vendor == "runtime.nvidia.com":
        yield Finding(
            cause="never-on-disk",
            message=f"{wanted.kind} is never in a file: the NVIDIA runtime makes it in memory (mode jit-cdi)",
            next_step=f"ask for nvidia.com/{wanted.class_}={wanted.name}, or use the engine's runtime nvidia",
        )
    elif offered:
        yield Finding(
            cause="unknown-device",
            message=f"{wanted.kind} is offered, but has no device {wanted.name!r}{_which(wanted, offered)}",
            next_step=_step_for_device(wanted, offered, near),
            paths=tuple(spec.path for spec in cache.specs() if spec.spec.kind == wanted.kind)[:MAX_OFFERED],
        )
    elif cache.specs():
        kinds = list(dict.fromkeys(spec.spec.kind for spec in cache.specs()))
        listed = ", ".join(kinds[:MAX_OFFERED]) + (" and more" if len(kinds) > MAX_OFFERED else "")
        yield Finding(
            cause="unknown-kind",
            message=f"no spec is of kind {wanted.kind}; there are {listed}",
            next_step=f"ask for {near[0]}; or {_regenerate(wanted.vendor)}" if near else _regenerate(wanted.vendor),
        )
    else:
        yield Finding(cause="no-specs", message=_no_specs(cache), next_step=_regenerate(wanted.vendor))


def _which(wanted: QualifiedName, offered: Sequence[str]) -> str:
    """What distinguishes the names that are offered from the one that is wanted."""
    if wanted.name == "all":
        return "; nobody wrote one that stands for all"
    if wanted.name.isdigit() and f"{wanted.name}:0" in offered:
        return f"; GPU {wanted.name} is partitioned (MIG)"
    if _MIG.fullmatch(wanted.name) and not any(_MIG.fullmatch(name) for name in offered):
        return "; no GPU was partitioned (MIG) when the file was written"
    if set(offered) == {"all"}:
        return "; it has only all"
    if _UUID.fullmatch(wanted.name) and not any(_UUID.match(name) for name in offered):
        return "; the file has no UUIDs"
    if wanted.name.isdigit() and not any(name.isdigit() for name in offered):
        return "; the file has no index numbers"
    return ""


def _step_for_device(wanted: QualifiedName, offered: Sequence[str], near: Sequence[str]) -> str:
    generate = _regenerate(wanted.vendor)
    if wanted.name == "all":
        return f"ask for each by name, as {wanted.kind}={offered[0]}; or {generate}"
    if wanted.name.isdigit() and f"{wanted.name}:0" in offered:
        return f"ask for one of its parts, as {wanted.kind}={wanted.name}:0"
    if _MIG.fullmatch(wanted.name):
        return f"the partitions have changed since the file was written, or were never there: {generate}"
    if near:
        return f"ask for {near[0]}; or, if the hardware has changed, {generate}"
    return f"ask for one that is offered, as {wanted.kind}={offered[0]}; or {generate}"


def _no_specs(cache: Cache) -> str:
    directories = cache.directories()
    if not directories:
        return "no directory was read"
    names = " and ".join(directory.path for directory in directories)
    if any(directory.exists for directory in directories):
        return f"there is no usable spec in {names}"
    return f"there is no spec: {names} {'do' if len(directories) > 1 else 'does'} not exist"


def _regenerate(vendor: str) -> str:
    """The step that writes a vendor's specs anew."""
    if vendor in _GENERATORS:
        return f"generate it: {_GENERATORS[vendor]}"
    if vendor == "draht.dev":
        return "start it again: draht run writes its spec, and removes it when the container has ended"
    if vendor.startswith("k8s."):
        return "look at the claim and the log of its DRA driver or device plugin, which writes the file"
    return "have it written by the vendor's tool or driver"


def _directory_reports(cache: Cache) -> Iterator[DirectoryReport]:
    for directory in cache.directories():
        if directory.error is not None:
            problem = _inside(directory.error, directory.path)
            yield DirectoryReport(path=directory.path, state="unreadable", problem=problem)
            continue
        yield DirectoryReport(
            path=directory.path,
            state="read" if directory.exists else "missing",
            specs=sum(_lies_in(spec.path, directory.path) for spec in cache.specs()),
            broken=sum(_lies_in(path, directory.path) for path in cache.errors()),
        )


def _lies_in(path: str, directory: str) -> bool:
    return os.path.split(path)[0] == directory
