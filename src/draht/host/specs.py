"""How devices reach the engine: the transient CDI spec of a hold, or the vendor's own names.

A transient spec has draht's kind, never a vendor's (a name that two files define is dropped for everybody), is lowered
to what the engine reads, and is found again after a crash by its file name: a tag of the state directory, so that
databases beside each other don't clean up each other's files, and the hold's id.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from draht import cdi
from draht.driver.vendors import simulated
from draht.hardware.inventory import Device
from draht.host.engine import EngineInfo
from draht.host.errors import HostError
from draht.host.selection import Part

__all__ = [
    "KIND",
    "Delivery",
    "deliver",
    "remove",
    "sweep",
    "tag",
    "writable_directory",
    "write",
    "write_stubs",
    "written",
]

VENDOR, CLASS = "draht.dev", "gpu"
KIND = f"{VENDOR}/{CLASS}"
"""The kind of all transient specs."""

STUBS = "simulated"
"""Directory below the state directory with the files that simulated GPUs mount."""

STALE_SECONDS = 60.0
"""Age at which a temporary file is nobody's: writing one takes milliseconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """What to write and what to tell the engine.

    Attributes:
        cdi_names: Names to pass.
        path: The spec file to write, or None if the vendor's names are passed as they are.
        spec: Its content, already lowered.
        additional_gids: Groups that the engine can't read from a spec.
        env: Variables for the container where no spec carries them.
        stubs: Files that the spec's mounts need: name → content and mode.
        parts: Container → the names to pass to it, where several containers share the hold.
    """

    cdi_names: tuple[str, ...]
    path: Path | None = None
    spec: cdi.Spec | None = None
    additional_gids: tuple[int, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    stubs: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict)


def tag(state_directory: Path) -> str:
    """Eight characters that stand for a state directory in the names of its spec files."""
    return hashlib.sha256(os.fsencode(state_directory.resolve())).hexdigest()[:8]


def writable_directory(preferred: Path, info: EngineInfo) -> Path | None:
    """The directory to write transient specs to: one that this user may write and the engine reads, or None."""
    read = [Path(directory) for directory in info.spec_directories]
    # realpath, not resolve(): a link that leads round in a circle must not raise.
    real = {os.path.realpath(directory) for directory in read}
    # An engine that hides its directories is believed to read the preferred one.
    first = os.path.realpath(preferred)
    candidates = [preferred] if not read or first in real else []
    candidates += [directory for directory in reversed(read) if os.path.realpath(directory) != first]
    return next((directory for directory in candidates if _may_write(directory)), None)


def deliver(
    hold: str,
    devices: Sequence[Device],
    names: Sequence[str],
    *,
    info: EngineInfo,
    cache: cdi.Cache | None,
    directory: Path | None,
    state_directory: Path,
    machine: str,
    parts: Sequence[Part] = (),
) -> Delivery:
    """Plan the delivery of chosen devices; nothing is written yet.

    Args:
        hold: Id of the hold.
        devices: What was chosen.
        names: CDI names that offer the devices; not needed for simulated ones.
        info: The engine.
        cache: Where names are looked up; not needed for simulated devices.
        directory: Where a spec may be written (`writable_directory`), or None.
        state_directory: Where stub files go; its tag goes into the file name.
        machine: Name of the profile or host.
        parts: What each of several containers gets; without them, one container gets everything.

    Raises:
        HostError: Simulated devices need a spec, and none can be written.
        cdi.LoweringError: The engine can't read what the devices need.
        cdi.UnresolvableDeviceError: A name vanished from the spec files.
    """
    whole = Part(name="", devices=tuple(devices), cdi_names=tuple(names))
    makers = []
    if devices and all(device.simulated for device in devices):
        if directory is None:
            raise HostError(
                f"simulated GPUs need a CDI spec in a directory that {info.name} reads "
                f"({', '.join(info.spec_directories) or 'none is known'}), and none of them can be written",
                hint="run as root, or set DRAHT_CDI_DIR to a directory that the engine reads and you may write",
            )
        stubs = str(state_directory.resolve() / STUBS)
        for part in parts or (whole,):
            common = simulated.common_edits(part.devices, stubs=stubs, machine=machine, rootless=info.rootless)
            edits = [simulated.device_edits(device, rootless=info.rootless) for device in part.devices]
            makers.append((part, common, edits))
    elif directory is None or cache is None:
        return Delivery(
            cdi_names=tuple(names),
            env={} if parts else _environment(hold, whole),
            parts={part.name: part.cdi_names for part in parts},
        )
    else:
        makers = [(part, *_edits_of(cache, part.cdi_names)) for part in parts or (whole,)]
    if parts:
        # One device per container: what they have in common would otherwise say of each what is true of all.
        spec = cdi.Spec(
            kind=KIND,
            devices=tuple(
                cdi.Device(name=f"{hold}-{number}", container_edits=cdi.collect([_with(common, hold, part), *edits]))
                for number, (part, common, edits) in enumerate(makers)
            ),
        )
    else:
        ((part, common, edits),) = makers
        spec = cdi.Spec(
            kind=KIND,
            devices=tuple(
                cdi.Device(name=f"{hold}-{number}", container_edits=edit) for number, edit in enumerate(edits)
            ),
            container_edits=_with(common, hold, part),
        )
    spec, gids = _lowered(spec, info)
    cdi_names = tuple(cdi.qualified_name(VENDOR, CLASS, device.name) for device in spec.devices)
    return Delivery(
        cdi_names=cdi_names,
        path=_path(directory, state_directory, hold),
        spec=spec,
        additional_gids=gids,
        stubs=simulated.stub_files([device for device in devices if device.simulated]),
        parts={part.name: (name,) for part, name in zip(parts, cdi_names, strict=False)},
    )


def _environment(hold: str, part: Part) -> dict[str, str]:
    return {"DRAHT_HOLD": hold, "DRAHT_DEVICES": ",".join(device.id for device in part.devices), **part.env}


def _with(common: cdi.ContainerEdits, hold: str, part: Part) -> cdi.ContainerEdits:
    env = tuple(f"{name}={value}" for name, value in _environment(hold, part).items())
    return msgspec.structs.replace(common, env=(*common.env, *env))


def write(delivery: Delivery, *, state_directory: Path) -> None:
    """Write the stub files and then the spec, each atomically.

    Raises:
        cdi.WriteError: The spec can't be written.
        HostError: A stub file can't be written.
    """
    write_stubs(state_directory / STUBS, delivery.stubs)
    if delivery.spec is not None and delivery.path is not None:
        cdi.write_spec(delivery.spec, delivery.path.parent, delivery.path.name)


def write_stubs(directory: Path, files: dict[str, tuple[bytes, int]]) -> None:
    """Make the files that are missing or different; the others are in use and stay untouched."""
    try:
        for name, (content, mode) in files.items():
            path = directory / name
            if path.is_file() and path.read_bytes() == content and path.stat().st_mode & 0o777 == mode:
                continue
            directory.mkdir(parents=True, exist_ok=True)
            fresh = directory / f".{name}.{os.getpid()}.tmp"
            fresh.unlink(missing_ok=True)
            fresh.write_bytes(content)
            fresh.chmod(mode)
            fresh.replace(path)
    except OSError as error:
        raise HostError(
            f"a file for simulated GPUs can't be written: {error.strerror}",
            where=str(error.filename or directory),
            hint="make room or the directory writable, or set DRAHT_STATE_DIR",
        ) from None


def remove(path: str | Path) -> None:
    """Remove a spec file; nothing happens if it is gone.

    Raises:
        cdi.WriteError: It is there and can't be removed.
    """
    path = Path(path)
    cdi.remove_spec(path.parent, path.name)


def written(directories: Iterable[Path], state_directory: Path) -> dict[Path, str]:
    """The transient spec files of this state directory → the hold that each was written for."""
    prefix = cdi.transient_spec_file_name(VENDOR, CLASS, f"{tag(state_directory)}_")
    found: dict[Path, str] = {}
    for directory in directories:
        try:
            paths = sorted(directory.iterdir())
        except OSError:
            continue
        found |= {
            path: path.stem[len(prefix) :] for path in paths if path.name.startswith(prefix) and path.suffix == ".json"
        }
    return found


def sweep(directories: Iterable[Path], state_directory: Path, now: float) -> None:
    """Remove temporary files that a writer killed in the middle has left: `STALE_SECONDS` old and named as ours are."""
    places = [(directory, ".spec.*.tmp") for directory in directories] + [(state_directory / STUBS, ".*.tmp")]
    for directory, pattern in places:
        with contextlib.suppress(OSError):
            for path in directory.glob(pattern):
                if now - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()


def _path(directory: Path, state_directory: Path, hold: str) -> Path:
    return directory / f"{cdi.transient_spec_file_name(VENDOR, CLASS, f'{tag(state_directory)}_{hold}')}.json"


def _edits_of(cache: cdi.Cache, names: Sequence[str]) -> tuple[cdi.ContainerEdits, list[cdi.ContainerEdits]]:
    """The edits of named devices, as injection would make them: those of each spec once, then each device's."""
    missing = [name for name in names if cache.device(name) is None]
    if missing:
        raise cdi.UnresolvableDeviceError(
            f"no CDI spec defines {', '.join(missing)} any more", names=missing, hint="see `draht cdi devices`"
        )
    common: list[cdi.ContainerEdits] = []
    edits: list[cdi.ContainerEdits] = []
    seen: set[str] = set()
    for name in names:
        loaded = cache.device(name)
        assert loaded is not None
        if str(loaded.spec.path) not in seen:
            seen.add(str(loaded.spec.path))
            common.append(loaded.spec.spec.container_edits)
        edits.append(loaded.device.container_edits)
    return cdi.collect(common), edits


_GIDS_SINCE = "0.7.0"


def _lowered(spec: cdi.Spec, info: EngineInfo) -> tuple[cdi.Spec, tuple[int, ...]]:
    """The spec as the engine can read it, and the groups that had to be taken out of it."""
    highest = info.cdi_version or cdi.VERSIONS[-1]
    gids: tuple[int, ...] = ()
    if cdi.VERSIONS.index(highest) < cdi.VERSIONS.index(_GIDS_SINCE):
        parts = [spec.container_edits, *(device.container_edits for device in spec.devices)]
        gids = tuple(dict.fromkeys(gid for part in parts for gid in part.additional_gids if gid))
        spec = msgspec.structs.replace(
            spec,
            container_edits=msgspec.structs.replace(spec.container_edits, additional_gids=()),
            devices=tuple(
                msgspec.structs.replace(
                    device, container_edits=msgspec.structs.replace(device.container_edits, additional_gids=())
                )
                for device in spec.devices
            ),
        )
    spec = msgspec.structs.replace(spec, cdi_version=cdi.minimum_version(spec))
    try:
        return cdi.lower(spec, highest), gids
    except cdi.LoweringError as error:
        error.hint = (
            f"{info.name} {info.version or ''} reads CDI up to {highest}: use a newer one, or --engine runc "
            "(draht applies the edits itself)"
        )
        raise


def _may_write(directory: Path) -> bool:
    """Whether files can be made in it; a missing directory counts if it can be made."""
    while not directory.exists():
        if directory == directory.parent:
            return False
        directory = directory.parent
    return directory.is_dir() and os.access(directory, os.W_OK | os.X_OK)
