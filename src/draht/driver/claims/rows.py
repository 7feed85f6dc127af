"""Rows of claims: what is prepared, or half prepared, for pods on this machine, and the units that it occupies.

A claim is known per driver. It is ``preparing`` from before the first effect, ``prepared`` once everything that its
containers need is there, and ``unpreparing`` from before the first step back. Every function works inside a
transaction of the caller; none calls a driver or writes a file. Claims and holds exclude each other in the database:
they share the table of units.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from draht.api.resource import DeviceRequestAllocationResult
from draht.driver import audit
from draht.driver.claims.prepared import PreparedClaim
from draht.driver.database import Transaction
from draht.driver.errors import HeldError, StateError
from draht.driver.framework import Parameters

__all__ = [
    "Claim",
    "ClaimState",
    "Record",
    "RecordedDevice",
    "all_claims",
    "delete",
    "find",
    "holders",
    "insert",
    "keys",
    "set_answer",
    "set_prepared",
    "set_unpreparing",
]

ClaimState = Literal["preparing", "prepared", "unpreparing"]


class RecordedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """An allocated device as it was when the claim was prepared.

    Attributes:
        result: The entry of the allocation.
        units: What it occupies; empty for administrative access, which occupies nothing.
    """

    result: DeviceRequestAllocationResult
    units: tuple[str, ...] = ()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to undo a preparation, or to do it again, without the API server.

    Attributes:
        uid: UID of the ResourceClaim.
        pod_claim_name: Name of the claim in the pod, if it was made from a template.
        devices: This driver's devices, in the order of the allocation.
        parameters: This driver's opaque parameters, in the order in which they apply.
        since: When it was first prepared, seconds since the epoch.
    """

    uid: str
    namespace: str
    name: str
    driver: str
    pod_claim_name: str = ""
    devices: tuple[RecordedDevice, ...] = ()
    parameters: tuple[Parameters, ...] = ()
    since: float = 0.0

    @property
    def title(self) -> str:
        """The claim for people: ``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def units(self) -> frozenset[str]:
        """What its devices occupy."""
        return frozenset(unit for device in self.devices for unit in device.units)

    @property
    def labels(self) -> tuple[str, ...]:
        """Its devices for people."""
        return tuple(dict.fromkeys(device.result.device for device in self.devices))


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One row.

    Attributes:
        state: See `ClaimState`.
        record: What was to be prepared.
        answer: What was answered, once it was prepared.
        boot_id: The boot in which it was prepared last; empty if that isn't known.
        adopted: The database had lost it, and it was found in a CDI spec.
        files: Path → SHA-256 of the files that its containers need.
    """

    state: ClaimState
    record: Record
    answer: PreparedClaim | None = None
    boot_id: str = ""
    adopted: bool = False
    files: Mapping[str, str] = {}


def insert(
    tx: Transaction, record: Record, *, state: ClaimState = "preparing", adopted: bool = False, units: bool = True
) -> None:
    """Add a claim with the units of its devices.

    Raises:
        HeldError: One of the units belongs to a hold or to another claim, or the claim is there already. The
            transaction is still usable and has nothing of this claim.
    """
    tx.connection.execute("SAVEPOINT claim")
    try:
        tx.connection.execute(
            "INSERT INTO claims (uid, driver, namespace, name, state, adopted, boot_id, since, record)"
            " VALUES (?, ?, ?, ?, ?, ?, '', ?, ?)",
            (
                record.uid,
                record.driver,
                record.namespace,
                record.name,
                state,
                int(adopted),
                record.since,
                msgspec.json.encode(record).decode(),
            ),
        )
        if units:
            tx.connection.executemany(
                "INSERT INTO held_units (unit, share, device, claim, driver) VALUES (?, ?, ?, ?, ?)",
                [(unit, share, device, record.uid, record.driver) for unit, share, device in _occupied(record)],
            )
    except sqlite3.IntegrityError as error:
        tx.connection.execute("ROLLBACK TO claim")
        tx.connection.execute("RELEASE claim")
        raise HeldError(f"a device of claim {record.title} is taken already ({error})") from None
    tx.connection.execute("RELEASE claim")
    audit.record(tx, "adopted" if adopted else "preparing", record.uid, _detail(record))


def find(tx: Transaction, uid: str, driver: str) -> Claim | None:
    """The row of a claim, or None."""
    row = tx.connection.execute(f"{_SELECT} WHERE uid = ? AND driver = ?", (uid, driver)).fetchone()
    return _claim(row) if row else None


def all_claims(tx: Transaction, driver: str | None = None) -> list[Claim]:
    """All claims, of one driver if given, oldest first."""
    rows = tx.connection.execute(
        f"{_SELECT} WHERE ? IS NULL OR driver = ? ORDER BY since, uid, driver", (driver, driver)
    )
    return [_claim(row) for row in rows]


def keys(tx: Transaction) -> set[tuple[str, str]]:
    """(UID, driver) of all claims."""
    return set(tx.connection.execute("SELECT uid, driver FROM claims"))


def set_prepared(tx: Transaction, answer: PreparedClaim, files: Mapping[str, str], *, boot_id: str) -> bool:
    """Everything is there: record the answer. False if the row is gone, as after a loss of the database."""
    changed = tx.connection.execute(
        "UPDATE claims SET state = 'prepared', boot_id = ?, answer = ?, files = ? WHERE uid = ? AND driver = ?",
        (
            boot_id,
            msgspec.json.encode(answer).decode(),
            msgspec.json.encode(files).decode(),
            answer.uid,
            answer.driver,
        ),
    ).rowcount
    if changed:
        names = ", ".join(dict.fromkeys(device.device for device in answer.devices))
        audit.record(tx, "prepared", answer.uid, f"{names} for claim {answer.namespace}/{answer.name}, {answer.driver}")
    return bool(changed)


def set_answer(tx: Transaction, answer: PreparedClaim) -> None:
    """Change what is told about a prepared claim, and nothing else."""
    tx.connection.execute(
        "UPDATE claims SET answer = ? WHERE uid = ? AND driver = ?",
        (msgspec.json.encode(answer).decode(), answer.uid, answer.driver),
    )


def set_unpreparing(tx: Transaction, uid: str, driver: str) -> None:
    """From here on the claim can only end."""
    tx.connection.execute("UPDATE claims SET state = 'unpreparing' WHERE uid = ? AND driver = ?", (uid, driver))


def delete(tx: Transaction, record: Record, why: str) -> None:
    """Free the claim's devices; its files and effects must be gone."""
    if tx.connection.execute("DELETE FROM claims WHERE uid = ? AND driver = ?", (record.uid, record.driver)).rowcount:
        audit.record(tx, "freed", record.uid, f"claim {record.title}, {record.driver}: {why}")


def holders(tx: Transaction, record: Record) -> list[tuple[str, str | None, tuple[str, str] | None]]:
    """Who has units that this claim's devices need: (device, hold, (uid, driver) of a claim), one for each device."""
    found = []
    for device in record.devices:
        marks = ", ".join("?" * len(device.units))
        row = tx.connection.execute(
            f"SELECT hold, claim, driver FROM held_units WHERE unit IN ({marks})"  # noqa: S608 — only question marks
            " AND NOT (claim IS ? AND driver IS ?) AND (share = '' OR ? = '' OR share = ? OR device <> ?) LIMIT 1",
            (*device.units, record.uid, record.driver, _share(device), _share(device), _device(record, device)),
        ).fetchone()
        if row is not None:
            found.append((device.result.device, row[0], (row[1], row[2]) if row[1] is not None else None))
    return found


def _occupied(record: Record) -> Iterable[tuple[str, str, str]]:
    """(unit, share, device): a claim that has a device whole needs no shares of it."""
    rows = {(unit, _share(device)): _device(record, device) for device in record.devices for unit in device.units}
    return [
        (unit, share, device if share else "")
        for (unit, share), device in sorted(rows.items())
        if not share or (unit, "") not in rows
    ]


def _share(device: RecordedDevice) -> str:
    return device.result.share_id or ""


def _device(record: Record, device: RecordedDevice) -> str:
    return f"{record.driver}/{device.result.pool}/{device.result.device}"


def _detail(record: Record) -> str:
    return f"{', '.join(record.labels)} for claim {record.title}, {record.driver}"


_SELECT = "SELECT state, record, answer, boot_id, adopted, files FROM claims"


def _claim(row: Sequence[object]) -> Claim:
    state, record, answer, boot_id, adopted, files = row
    try:
        return Claim(
            state=msgspec.convert(state, ClaimState),
            record=_RECORDS.decode(str(record)),
            answer=None if answer is None else _ANSWERS.decode(str(answer)),
            boot_id=str(boot_id),
            adopted=bool(adopted),
            files=_FILES.decode(str(files)),
        )
    except msgspec.MsgspecError as error:
        raise StateError(
            f"the database has a claim that this draht can't read: {error}",
            where=str(record)[:200],
            hint="use the draht that wrote it, or move the database away: claims are found again from CDI specs",
        ) from None


_RECORDS = msgspec.json.Decoder(Record)
_ANSWERS = msgspec.json.Decoder(PreparedClaim)
_FILES = msgspec.json.Decoder(dict[str, str])
