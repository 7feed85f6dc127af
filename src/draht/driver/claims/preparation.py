"""Preparing the claims of a driver: what the kubelet's side calls, from any thread and any process.

Owns the lock around each claim, and what concerns all claims at once: recovery at the start, orphans, left-over files.
The way of one claim is `draht.driver.claims.states`. It asks no API server: claims are given to it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from draht.api.errors import DrahtError
from draht.api.resource import ResourceClaim
from draht.driver.claims import allocated
from draht.driver.claims import rows as claims
from draht.driver.claims.files import ClaimFiles
from draht.driver.claims.lock import claim_lock, locked_uids
from draht.driver.claims.prepared import Places, PreparedClaim, PreparedDevice, Recovered
from draht.driver.claims.states import ClaimStates
from draht.driver.database import Database
from draht.driver.errors import ClaimBusyError, ClaimError, PlacesError, StateError
from draht.driver.framework import Driver, Offer
from draht.driver.process import boot_id

__all__ = ["Places", "PreparedClaim", "PreparedDevice", "Preparer", "Recovered"]


class Preparer:
    """Prepares the claims of one driver on this machine. Thread-safe; claims don't wait for each other.

    Args:
        driver: The vendor's driver.
        database: The machine's database, shared with ``draht run`` and other drivers.
        places: Where files go.
        node_name: Name of the node, which is also the name of the node's own pool.
        host_root: Where the host's root file system is, to see whether device nodes are there.
        cdi_version: The highest CDI version that the container runtime reads; None: the newest.
        steps: Called with the name of each step when it is done; tests kill here.
        lock_seconds: How long to wait for another call that works on the same claim.
        boot: The id of this boot; what was prepared in another one is prepared again.
    """

    def __init__(
        self,
        driver: Driver,
        database: Database,
        places: Places,
        *,
        node_name: str,
        host_root: Path = Path("/"),
        cdi_version: str | None = None,
        steps: Callable[[str], None] = lambda _name: None,
        lock_seconds: float = 30.0,
        boot: str | None = None,
    ) -> None:
        self.driver = driver
        self.database = database
        self.node_name = node_name
        driver.files, driver.node_name = str(places.files_directory), node_name
        self._files = ClaimFiles(places, driver.name)
        self._states = ClaimStates(
            driver,
            database,
            self._files,
            node_name=node_name,
            host_root=host_root,
            cdi_version=cdi_version,
            steps=steps,
            boot=boot_id() if boot is None else boot,
        )
        self._steps = steps
        self._lock_seconds = lock_seconds

    def offer(self) -> Offer:
        """What the driver offers, as it was last discovered; discovers it on the first call.

        Raises:
            DrahtError: The driver can't discover anything.
        """
        return self._states.offer()

    def refresh(self) -> Offer:
        """Discover again; if that fails, what was discovered before is still offered.

        Raises:
            DrahtError: The driver can't discover anything.
        """
        return self._states.refresh()

    def prepare(self, claim: ResourceClaim) -> PreparedClaim:
        """Make the claim's devices usable. A claim prepared twice gives the same answer.

        Raises:
            DrahtError: It can't be prepared, see `ClaimError` and what the driver raises; nothing of it is left, or
                what is left is undone by the next call.
            StateError: The database can't be used.
        """
        uid = claim.metadata.uid
        allocated.check_uid(uid)
        with self._lock(uid) as forget:
            try:
                return self._states.after_loss(lambda: self._states.prepare(claim))
            except ClaimError:
                if not self._states.knows(uid):
                    forget()
                raise

    def unprepare(self, uid: str) -> None:
        """Undo `prepare`, with what the database has; an unknown claim is a success.

        Raises:
            DrahtError: Something couldn't be undone; the next call goes on.
            StateError: The database can't be used.
        """
        allocated.check_uid(uid)
        with self._lock(uid) as forget:
            self._states.after_loss(lambda: self._states.unprepare(uid))
            forget()

    def prepared(self) -> list[PreparedClaim]:
        """The claims that are prepared, oldest first."""
        if not self.database.path.exists():
            return []
        with self.database.reading() as tx:
            rows = claims.all_claims(tx, self.driver.name)
        return [row.answer for row in rows if row.state == "prepared" and row.answer is not None]

    def recover(self) -> Recovered:
        """Call it at the start, before the kubelet can ask: half-done claims are rolled back, lost files made again.

        Raises:
            StateError: The database can't be used.
        """
        self.database.check()
        adopted, fresh = self._states.adopt()
        problems = list(adopted.problems)
        # Files are listed before the rows: a file is made after its row, so one without a row is nobody's.
        files = self._files.written() | locked_uids(self._locks, self.driver.name)
        with self._states.transaction() as tx:
            rows = claims.all_claims(tx, self.driver.name)
        done: dict[str, list[str]] = {}
        for row in rows:
            uid = row.record.uid
            try:
                with self._lock(uid, seconds=0) as forget:
                    outcome = self._states.settle(uid)
                    if outcome == "rolled back":
                        forget()
            except (ClaimBusyError, StateError) as error:
                if isinstance(error, StateError):
                    raise
                # Another agent works on it: it is alive.
                continue
            except DrahtError as error:
                problems.append(f"claim {row.record.title}: {error}")
                continue
            done.setdefault(outcome, []).append(uid)
        # In a database that has just begun, a spec without a note may be of a claim whose pod still runs.
        keep = set(adopted.unreadable) if fresh else set()
        self.database.notices += [f"{self._files.spec(uid)}: the claim isn't known; it is kept" for uid in sorted(keep)]
        swept = self._sweep(files - {row.record.uid for row in rows} - keep, problems)
        swept += self._files.sweep(self.database.clock())
        notices, self.database.notices = self.database.notices, []
        return Recovered(
            kept=tuple(done.get("kept", ())),
            restored=tuple(done.get("restored", ())),
            rolled_back=tuple(done.get("rolled back", ())),
            adopted=tuple(record.uid for record in adopted.claims),
            swept=tuple(swept),
            problems=tuple(problems),
            notices=tuple(notices),
        )

    def orphans(self, alive: Container[str] | Callable[[str], bool]) -> tuple[str, ...]:
        """Unprepare what nobody will ask for any more: claims stuck half-way that the API server doesn't have.

        A claim that is prepared stays: the kubelet, which may still run its pod, ends it. One that came back from a CDI
        spec goes if the API server doesn't have it, since the kubelet may have ended it while the database was lost.

        Args:
            alive: UIDs of the claims that exist, or a question for one; it may block.

        Returns:
            The UIDs that are gone now.

        Raises:
            StateError: The database can't be used.
        """
        exists = alive if callable(alive) else alive.__contains__
        with self.database.transaction() as tx:
            rows = claims.all_claims(tx, self.driver.name)
        stuck = [row.record.uid for row in rows if row.state != "prepared" or row.adopted]
        gone = []
        for uid in stuck:
            if exists(uid):
                continue
            try:
                with self._lock(uid, seconds=0) as forget:
                    self._states.after_loss(partial(self._states.unprepare, uid, "the claim doesn't exist any more"))
                    forget()
            except StateError:
                raise
            except DrahtError:
                # Somebody works on it, or it can't be undone now: the next round looks again.
                continue
            gone.append(uid)
        return tuple(gone)

    def _sweep(self, uids: Iterable[str], problems: list[str]) -> list[str]:
        """Remove files of claims that there aren't."""
        swept = []
        for uid in sorted(uids):
            try:
                with self._lock(uid, seconds=0) as forget:
                    with self._states.transaction() as tx:
                        if claims.find(tx, uid, self.driver.name) is not None:
                            continue
                    swept += [str(path) for path in (self._files.spec(uid), self._files.metadata(uid)) if path.exists()]
                    self._files.remove_spec(uid)
                    self._files.remove_metadata(uid)
                    forget()
            except ClaimBusyError:
                continue
            except PlacesError as error:
                problems.append(str(error))
        if swept:
            self._steps("swept")
        return swept

    @property
    def _locks(self) -> Path:
        return self.database.directory / "claims"

    def _lock(self, uid: str, *, seconds: float | None = None) -> AbstractContextManager[Callable[[], None]]:
        return claim_lock(
            self._locks, self.driver.name, uid, seconds=self._lock_seconds if seconds is None else seconds
        )
