"""All specs of some directories and the devices they offer, kept up to date by looking at file times.

Owns precedence and conflicts: the later directory of the list wins over the earlier ones; a name that two files of one
directory define is offered by nobody, not even where a later directory defines it alone (the Go library takes conflicts
away last, and engines rely on the same answer everywhere). A file that is broken is recorded beside the others; it
never hides them, and neither does a directory that can't be read.

A cache reads its directories when it is made and when `refresh` is called. It holds no lock and starts no thread; a
`LoadedSpec` is immutable and may be kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from draht.cdi import edits as edits_
from draht.cdi.decode import decode
from draht.cdi.errors import CDIError, ConflictError, DirectoryError, SpecError, UnresolvableDeviceError
from draht.cdi.files import Entry, Stamp, list_specs, read_spec
from draht.cdi.host import HostDevices, HostNodes
from draht.cdi.names import split_kind
from draht.cdi.spec import ContainerEdits, Device, Spec
from draht.cdi.validate import validate

__all__ = ["DEFAULT_DIRECTORIES", "Cache", "DirectoryState", "LoadedDevice", "LoadedSpec"]

DEFAULT_DIRECTORIES: tuple[str, ...] = ("/etc/cdi", "/var/run/cdi")
"""Where engines look: specs an administrator keeps, and, with precedence, those that are generated."""


class LoadedSpec:
    """A spec with where it comes from. Compared by identity.

    Attributes:
        path: The file.
        priority: The place of its directory in the list; the higher one wins.
        vendor: From the kind.
        class_: From the kind.
        spec: The spec itself.
    """

    __slots__ = ("class_", "path", "priority", "spec", "vendor")

    def __init__(self, path: str, priority: int, spec: Spec) -> None:
        self.path = path
        self.priority = priority
        self.vendor, self.class_ = split_kind(spec.kind)
        self.spec = spec

    def __repr__(self) -> str:
        return f"LoadedSpec({self.path!r}, priority={self.priority}, kind={self.spec.kind!r})"


class LoadedDevice(NamedTuple):
    """A device that can be asked for, with the spec that defines it."""

    spec: LoadedSpec
    device: Device

    @property
    def qualified_name(self) -> str:
        """``vendor/class=name``."""
        return f"{self.spec.spec.kind}={self.device.name}"


class DirectoryState(NamedTuple):
    """What became of one directory.

    Attributes:
        path: As given, cleaned.
        exists: Whether it was there.
        error: Why it can't be read, if it can't.
    """

    path: str
    exists: bool
    error: DirectoryError | None


class _File(NamedTuple):
    """What is known of a file since it was read.

    Attributes:
        stamp: As it was before reading.
        settled: Whether a change since then must show in the stamp.
        spec: The spec, if it is one.
        error: What is wrong with it, if anything is.
        data: What was read, to be compared, while it isn't settled.
    """

    stamp: Stamp | None
    settled: bool
    spec: LoadedSpec | None
    error: CDIError | None
    data: bytes


class Cache:
    """The devices that the specs of some directories offer.

    Files and directories with problems are recorded (`errors`, `directories`), never raised.

    Args:
        directories: In order of precedence, the strongest last; they needn't exist.
        host: Where device nodes are looked up when devices are injected; by default on this machine.
    """

    def __init__(
        self, directories: Sequence[str | Path] = DEFAULT_DIRECTORIES, *, host: HostNodes | None = None
    ) -> None:
        if isinstance(directories, str | Path):
            raise TypeError("directories is a list of paths, not one path")
        self.host: HostNodes = host if host is not None else HostDevices()
        self._directories = tuple(os.path.normpath(directory) for directory in directories)
        self._states: tuple[DirectoryState, ...] = ()
        self._files: dict[tuple[int, str], _File] = {}
        self._devices: dict[str, LoadedDevice] = {}
        self._specs: tuple[LoadedSpec, ...] = ()
        self._errors: dict[str, list[CDIError]] = {}
        self._conflicts: tuple[ConflictError, ...] = ()
        self._names: tuple[str, ...] | None = None
        self.refresh()

    def refresh(self) -> bool:
        """Read what has changed in the directories since the last time.

        Returns:
            Whether anything has: a file, a listing, or a directory's state.
        """
        states: list[DirectoryState] = []
        listed: dict[tuple[int, str], Stamp | None] = {}
        for priority, directory in enumerate(self._directories):
            entries: list[Entry] = []
            error = None
            try:
                entries = list_specs(directory)
            except DirectoryError as found:
                error = found
            states.append(DirectoryState(directory, bool(entries) or os.path.lexists(directory), error))
            for path, stamp in entries:
                listed[priority, path] = stamp
        files = {key: self._current(key, stamp) for key, stamp in listed.items()}
        changed = _outcomes(files) != _outcomes(self._files) or list(map(str, states)) != list(map(str, self._states))
        self._files = files
        if changed:
            self._states = tuple(states)
            self._index()
        return changed

    def devices(self) -> tuple[str, ...]:
        """The qualified names of all devices on offer, sorted."""
        if self._names is None:
            self._names = tuple(sorted(self._devices))
        return self._names

    def device(self, name: str) -> LoadedDevice | None:
        """The device of a qualified name; None if none is on offer."""
        return self._devices.get(name)

    def specs(self) -> tuple[LoadedSpec, ...]:
        """All specs that could be loaded, in the order of directories and file names."""
        return self._specs

    def vendors(self) -> tuple[str, ...]:
        """The vendors of all loaded specs, sorted."""
        return tuple(sorted({spec.vendor for spec in self._specs}))

    def classes(self) -> tuple[str, ...]:
        """The device classes of all loaded specs, sorted."""
        return tuple(sorted({spec.class_ for spec in self._specs}))

    def errors(self) -> Mapping[str, Sequence[CDIError]]:
        """What is wrong with files, by path; a file with a conflict is here too, its other devices are on offer."""
        return {path: tuple(errors) for path, errors in self._errors.items()}

    def conflicts(self) -> tuple[ConflictError, ...]:
        """The pairs of files of one directory that define the same device, which nobody gets then."""
        return self._conflicts

    def directories(self) -> tuple[DirectoryState, ...]:
        """The directories in order of precedence, the strongest last."""
        return self._states

    def edits_for(self, names: Iterable[str]) -> ContainerEdits:
        """The edits for a request: in the order of the names, each spec's common edits before its first device's.

        A name that is asked for twice counts twice.

        Raises:
            UnresolvableDeviceError: Some of the names aren't on offer; it lists all of them.
        """
        if isinstance(names, str):
            raise TypeError("names is a list of qualified names, not one name")
        parts: list[ContainerEdits] = []
        begun: set[LoadedSpec] = set()
        unknown: list[str] = []
        for name in names:
            loaded = self._devices.get(name)
            if loaded is None:
                unknown.append(name)
                continue
            if loaded.spec not in begun:
                begun.add(loaded.spec)
                parts.append(loaded.spec.spec.container_edits)
            parts.append(loaded.device.container_edits)
        if unknown:
            raise UnresolvableDeviceError(
                f"unresolvable CDI device{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}",
                names=unknown,
                hint="see which names are on offer: draht cdi devices",
            )
        return edits_.collect(parts)

    def inject(self, oci: dict[str, Any], names: Iterable[str]) -> None:
        """Inject devices into the dict of an OCI runtime spec (``config.json``), in place.

        Raises:
            UnresolvableDeviceError: Some of the names aren't on offer.
            InjectionError: The edits don't go together, or the runtime spec has a field of a wrong type.
            HostDeviceError: The host lacks a device node. The runtime spec is unchanged after any of these.
        """
        edits_.apply(self.edits_for(names), oci, self.host)

    def _current(self, key: tuple[int, str], stamp: Stamp | None) -> _File:
        """What is known of a file, read again if it may have changed."""
        known = self._files.get(key)
        if known is not None and stamp is not None and known.stamp == stamp and known.settled:
            return known
        priority, path = key
        settled = stamp is not None and stamp.is_settled()
        try:
            data = read_spec(path)
        except SpecError as error:
            if known is not None and known.spec is None and str(known.error) == str(error):
                return known
            return _File(stamp, settled, None, error, b"")
        if known is not None and known.data == data and data:
            return known._replace(stamp=stamp, settled=settled)
        kept = b"" if settled else data
        try:
            spec = decode(data, source=path)
            validate(spec)
        except CDIError as error:
            if not isinstance(error, SpecError):
                error.where = f"{path}: {error.where}" if error.where else path
            return _File(stamp, settled, None, error, kept)
        return _File(stamp, settled, LoadedSpec(path, priority, spec), None, kept)

    def _index(self) -> None:
        """Work out which file offers which device."""
        devices: dict[str, LoadedDevice] = {}
        conflicts: list[ConflictError] = []
        errors: dict[str, list[CDIError]] = {}
        specs: list[LoadedSpec] = []
        for (_, path), file in self._files.items():
            if file.error is not None:
                errors.setdefault(path, []).append(file.error)
            if file.spec is None:
                continue
            specs.append(file.spec)
            for device in file.spec.spec.devices:
                name = f"{file.spec.spec.kind}={device.name}"
                other = devices.get(name)
                if other is None or other.spec.priority < file.spec.priority:
                    devices[name] = LoadedDevice(file.spec, device)
                    continue
                conflict = ConflictError(
                    f"{name} is defined by {path} and by {other.spec.path}, so neither counts",
                    device=name,
                    paths=(path, other.spec.path),
                    hint="remove one of the files, or the device from one of them",
                )
                errors.setdefault(path, []).append(conflict)
                errors.setdefault(other.spec.path, []).append(conflict)
                conflicts.append(conflict)
        # Only now, so that a name in conflict is gone even where a stronger directory defines it alone.
        for name in {conflict.device for conflict in conflicts}:
            del devices[name]
        self._devices, self._errors, self._specs = devices, errors, tuple(specs)
        self._conflicts = tuple(conflicts)
        self._names = None


def _outcomes(
    files: Mapping[tuple[int, str], _File],
) -> dict[tuple[int, str], tuple[LoadedSpec | None, CDIError | None]]:
    return {key: (file.spec, file.error) for key, file in files.items()}
