"""The CDI spec of a prepared claim: its name, its devices, and the note from which the claim is found again.

One spec per claim and driver, of a kind that is only the driver's (``k8s.<driver>/claim``), with one device for each
device of the claim. The note is an annotation with the claim's record: if the machine's database is lost, claims are
read from the specs. Pure; files are written by `draht.driver.claims.files`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from draht import cdi
from draht.driver.claims.rows import Record
from draht.driver.errors import DriverFailedError

__all__ = [
    "ANNOTATION",
    "Note",
    "claim_spec",
    "device_names",
    "encode",
    "file_name",
    "kind",
    "parse_file_name",
    "read_note",
]

ANNOTATION: Final = "draht.dev/claim"
"""Annotation with the `Note`, as JSON."""

NOTE_BYTES: Final = 200 * 1024
"""Longest note: libraries refuse specs whose annotations have more than 256 KiB together (CDI v1.1.2)."""

_NOTES_SINCE: Final = "0.6.0"
_FILE_NAME: Final = re.compile(r"k8s\.(?P<driver>[A-Za-z0-9.-]+)-claim_(?P<uid>[A-Za-z0-9.-]+)\.json")


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A claim as its spec carries it.

    Attributes:
        state: The state directory whose database has the claim.
        record: The claim.
    """

    state: str
    record: Record


def kind(driver: str) -> str:
    """The CDI kind of a driver's claims."""
    return f"k8s.{driver}/claim"


def file_name(driver: str, uid: str) -> str:
    """Name of the spec file of a claim."""
    return f"{cdi.transient_spec_file_name(f'k8s.{driver}', 'claim', uid)}.json"


def parse_file_name(name: str) -> tuple[str, str] | None:
    """(driver, UID) of a spec file of a claim, None for other files."""
    found = _FILE_NAME.fullmatch(name)
    return (found["driver"], found["uid"]) if found else None


def device_names(record: Record) -> tuple[str, ...]:
    """Names of the CDI devices, in the order of the record: UID and device, with a number where that isn't unique."""
    names: list[str] = []
    for index, device in enumerate(record.devices):
        name = f"{record.uid}-{device.result.device}"
        while name in names:
            name = f"{name}-{index}"
        names.append(name)
    return tuple(names)


def claim_spec(
    record: Record,
    edits: Sequence[cdi.ContainerEdits],
    common: cdi.ContainerEdits,
    mounts: Mapping[int, Sequence[cdi.Mount]],
    *,
    state: str,
    highest: str | None = None,
) -> cdi.Spec:
    """The spec.

    Args:
        record: The claim.
        edits: What a container gets for each device, in the order of the record.
        common: What a container gets once.
        mounts: Index of a device → metadata files to mount.
        state: The state directory, for the note.
        highest: The highest version that the container runtime reads.

    Raises:
        LoweringError: That version can't say what the devices need.
    """
    spec = cdi.Spec(
        kind=kind(record.driver),
        annotations=_annotations(record, state, highest),
        devices=tuple(
            cdi.Device(
                name=name,
                container_edits=msgspec.structs.replace(edit, mounts=(*edit.mounts, *mounts.get(index, ()))),
            )
            for index, (name, edit) in enumerate(zip(device_names(record), edits, strict=True))
        ),
        container_edits=common,
    )
    spec = msgspec.structs.replace(spec, cdi_version=cdi.minimum_version(spec))
    return spec if highest is None else cdi.lower(spec, highest)


def encode(spec: cdi.Spec) -> bytes:
    """The text of the spec file.

    Raises:
        DriverFailedError: The driver made edits that a spec can't say.
        ValidationError: It made edits that break a rule of CDI.
    """
    try:
        data = cdi.encode(spec)
        msgspec.json.decode(data, type=cdi.Spec)
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError) as error:
        raise DriverFailedError(
            f"the driver made edits that a CDI spec can't say: {error}", hint="this is a mistake in the driver"
        ) from None
    cdi.validate(spec)
    return data


def read_note(data: bytes) -> Note | None:
    """The note in a spec file; None if there is none that can be read."""
    try:
        spec = msgspec.json.decode(data, type=cdi.Spec)
        return msgspec.json.decode(spec.annotations.get(ANNOTATION, ""), type=Note)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _annotations(record: Record, state: str, highest: str | None) -> dict[str, str]:
    if highest is not None and cdi.VERSIONS.index(highest) < cdi.VERSIONS.index(_NOTES_SINCE):
        return {}
    note = msgspec.json.encode(Note(state=state, record=record))
    return {ANNOTATION: note.decode()} if len(note) <= NOTE_BYTES else {}
