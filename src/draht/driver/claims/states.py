"""The states of one claim and the way between them: a record before and after every effect.

::

    (no row) ──record──▶ preparing ──effects, files──▶ prepared ──record──▶ unpreparing ──files, effects──▶ (no row)
                             └───────────── anything fails: undone ──────────────────────────────────────────▲

Why it holds: a row is committed before the first effect and deleted after the last one is undone, so whatever is there
has a row; every effect can be repeated and undone from any point (`draht.driver.claims.effects`); and the table of
units refuses a device that somebody else has, whatever the code does (`draht.driver.schema`). Whoever calls holds the
lock of the claim.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from draht.api.errors import DrahtError
from draht.api.resource import ResourceClaim
from draht.driver import audit, holds
from draht.driver.claims import allocated, driver_calls
from draht.driver.claims import rows as claims
from draht.driver.claims import status as claim_status
from draht.driver.claims.effects import Effects
from draht.driver.claims.files import ClaimFiles
from draht.driver.claims.prepared import PreparedClaim
from draht.driver.claims.recovery import Adopted, adopt
from draht.driver.claims.rows import Claim, Record
from draht.driver.database import Database, Transaction
from draht.driver.errors import DeviceInUseError, HeldError, StateError, StateLostError
from draht.driver.framework import Driver, Offer

__all__ = ["ClaimStates"]

T = TypeVar("T")


class ClaimStates:
    """The claims of one driver on this machine.

    Args:
        driver: The vendor's driver.
        database: The machine's database.
        files: Where files of claims are.
        node_name: Name of the node's own pool.
        host_root: Where the host's root file system is.
        cdi_version: The highest CDI version that the container runtime reads; None: the newest.
        steps: Told the name of each step when it is done.
        boot: The id of this boot.
    """

    def __init__(
        self,
        driver: Driver,
        database: Database,
        files: ClaimFiles,
        *,
        node_name: str,
        host_root: Path,
        cdi_version: str | None,
        steps: Callable[[str], None],
        boot: str,
    ) -> None:
        self.driver = driver
        self.database = database
        self.files = files
        self._effects = Effects(
            driver=driver,
            files=files,
            host_root=host_root,
            state=str(database.directory.resolve()),
            cdi_version=cdi_version,
            steps=steps,
        )
        self._node_name = node_name
        self._steps = steps
        self._boot = boot
        self._origin: str | None = None
        self._offer: Offer | None = None
        self._devices: allocated.Devices = {}
        self._discovering = threading.Lock()

    def offer(self) -> Offer:
        """What the driver offers, as it was last discovered; discovers it on the first call."""
        return self._offer or self.refresh()

    def refresh(self) -> Offer:
        """Discover again."""
        with self._discovering:
            offer = driver_calls.discover(self.driver)
            self._devices = allocated.by_name(offer, self._node_name)
            self._offer = offer
            return offer

    def prepare(self, claim: ResourceClaim) -> PreparedClaim:
        """From whatever state the claim is in to ``prepared``."""
        name, uid = self.driver.name, claim.metadata.uid
        results = allocated.results(claim, name)
        wanted, problem = self._wanted(claim)
        with self.transaction() as tx:
            row = claims.find(tx, uid, name)
            if row is None:
                self._take(tx, wanted, problem)
        if row is not None:
            if row.state == "prepared" and allocated.same(results, row.record):
                return self._again(row)
            self._undo(row, "left half done" if row.state != "prepared" else "other devices were allocated for it")
            with self.transaction() as tx:
                self._take(tx, wanted, problem)
        self._steps("recorded")
        assert wanted is not None
        try:
            return self._make(wanted)
        except StateLostError:
            # What has been made is found again: its spec may be there.
            raise
        except Exception as error:
            self._roll_back(wanted, error)
            raise

    def _wanted(self, claim: ResourceClaim) -> tuple[Record | None, DrahtError | None]:
        """What is to be recorded, or why it can't be: that matters only if the claim isn't prepared already."""
        try:
            self.offer()
            if any((one.pool, one.device) not in self._devices for one in allocated.results(claim, self.driver.name)):
                self.refresh()
            record = allocated.record(claim, self.driver.name, self._devices, since=self.database.clock())
            self._effects.look(record, self._devices)
        except DrahtError as error:
            return None, error
        return record, None

    def _take(self, tx: Transaction, record: Record | None, problem: DrahtError | None) -> None:
        """Record the claim and occupy its units."""
        if problem is not None:
            raise problem
        assert record is not None
        try:
            claims.insert(tx, record)
        except HeldError:
            raise _in_use(tx, record) from None

    def _make(self, record: Record, row: Claim | None = None) -> PreparedClaim:
        before = row.answer if row is not None else None
        made = self._effects.make(record, self._devices, now=self.database.clock(), before=before)
        with self.transaction() as tx:
            known = claims.set_prepared(tx, made.answer, made.files, boot_id=self._boot)
        if not known:
            raise self._lost()
        self._steps("prepared")
        return made.answer

    def _again(self, row: Claim) -> PreparedClaim:
        """The answer of a prepared claim; what is missing of it, as after a reboot, is made again."""
        if self._intact(row):
            assert row.answer is not None
            return row.answer
        self.offer()
        try:
            return self._make(row.record, row)
        except StateError:
            raise
        except DrahtError as error:
            if row.answer is not None:
                status = claim_status.failed(row.answer.status, error, now=self.database.clock())
                with self.transaction() as tx:
                    claims.set_answer(tx, msgspec.structs.replace(row.answer, status=status))
            raise

    def _intact(self, row: Claim) -> bool:
        return row.answer is not None and row.boot_id == self._boot and self.files.intact(row.files)

    def knows(self, uid: str) -> bool:
        """Whether there is a row of the claim, in whatever state."""
        with self.database.reading() as tx:
            return claims.find(tx, uid, self.driver.name) is not None

    def unprepare(self, uid: str, why: str = "unprepared") -> None:
        """From whatever state the claim is in to nothing; an unknown claim may still have files."""
        with self.transaction() as tx:
            row = claims.find(tx, uid, self.driver.name)
            if row is not None:
                claims.set_unpreparing(tx, uid, self.driver.name)
        if row is None:
            self.files.remove_spec(uid)
            self.files.remove_metadata(uid)
            return
        self._steps("unpreparing")
        self._undo(row, why)

    def _undo(self, row: Claim, why: str) -> None:
        if self._offer is None:
            # Helpful, not needed: what was prepared has to go even if nothing can be discovered.
            with suppress(DrahtError):
                self.refresh()
        self._effects.undo(row.record, self._devices, row.files)
        with self.transaction() as tx:
            claims.delete(tx, row.record, why)
        self._steps("freed")

    def _roll_back(self, record: Record, error: Exception) -> None:
        """A step failed: leave nothing behind. What can't be undone now is undone by the next call, or by `recover`."""
        try:
            self._undo(Claim(state="preparing", record=record), f"undone: {error}")
        except DrahtError as problem:
            with suppress(StateError), self.transaction() as tx:
                audit.record(tx, "failed", record.uid, f"claim {record.title} can't be undone: {problem}")

    def settle(self, uid: str) -> str:
        """Bring one claim into order after a start."""
        with self.transaction() as tx:
            row = claims.find(tx, uid, self.driver.name)
        if row is None:
            return "gone"
        if row.state != "prepared":
            self._undo(row, "left half done")
            return "rolled back"
        if self._intact(row):
            return "kept"
        self._again(row)
        return "restored"

    def adopt(self) -> tuple[Adopted, bool]:
        """Read the claims that the database doesn't have from their specs; also whether it has just begun."""
        with self.database.transaction() as tx:
            point = audit.point(tx)
        found = adopt(self.database, [self.files.places.cdi_directory], driver=self.driver.name)
        self._origin = point.origin
        if found.claims:
            titles = ", ".join(record.title for record in found.claims[:8])
            more = f" and {len(found.claims) - 8} more" if len(found.claims) > 8 else ""
            self.database.notices.append(
                f"prepared claims were missing and have been read from CDI specs: {titles}{more}"
            )
            self._steps("adopted")
        return found, point.newest[0] == 0

    def after_loss(self, action: Callable[[], T]) -> T:
        """Do it; if the database was lost meanwhile, bring the claims back first and do it once more."""
        if self._origin is None:
            self.adopt()
        try:
            return action()
        except StateLostError:
            self.adopt()
            return action()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction of the database whose claims are known; another one may miss some."""
        with self.database.transaction() as tx:
            if audit.origin(tx) != self._origin:
                raise self._lost()
            yield tx

    def _lost(self) -> StateLostError:
        return StateLostError("the database was replaced while it was used", where=str(self.database.path))


def _in_use(tx: Transaction, record: Record) -> DeviceInUseError:
    """Who has what the claim needs, in one sentence for each of them."""
    taken: dict[tuple[str | None, tuple[str, str] | None], list[str]] = {}
    for device, hold, other in claims.holders(tx, record):
        taken.setdefault((hold, other), []).append(device)
    parts, hint = [], "the kubelet tries again; the other pod has to end first"
    for (hold, other), devices in taken.items():
        which = f"device {devices[0]} is" if len(devices) == 1 else f"devices {_some(devices)} are"
        if hold is not None:
            held = holds.find(tx, hold)
            whose = f" of {held.user} ({holds.one_line(held.command)[:40]})" if held is not None else ""
            parts.append(f"{which} held by hold {hold}{whose}")
            hint = f"the kubelet tries again; `draht release {hold}` ends that hold"
        elif other is not None:
            claim = claims.find(tx, *other)
            title = claim.record.title if claim is not None else other[0]
            state = "prepared" if claim is None or claim.state == "prepared" else "being prepared"
            if claim is not None and claim.state == "unpreparing":
                state = "not yet free after being prepared"
            parts.append(f"{which} {state} for claim {title}")
    return DeviceInUseError("; ".join(parts) or "a device is taken", where=record.title, hint=hint)


def _some(names: Sequence[str]) -> str:
    """The first names: events of pods are cut at 1024 characters."""
    shown = 4
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
