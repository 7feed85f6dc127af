"""A node for tests whose preparer can be killed at a chosen step, and a look at what is left of it."""

from __future__ import annotations

import os
import shutil
import signal
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from draht.driver.claims import rows as claims
from draht.driver.claims.preparation import Preparer
from draht.driver.database import Database
from draht.driver.framework import ClaimDevices
from toy_driver import ToyDriver, preparer

__all__ = ["CrashNode"]

Action = Callable[[Preparer, ToyDriver], object]


@dataclass
class CrashNode:
    """A node of toys.

    Attributes:
        root: Everything is below it.
        boot: The id of the boot that it is in.
    """

    root: Path
    boot: str = "boot-1"

    def start(self, steps: Callable[[str], None] = lambda _name: None) -> tuple[Preparer, ToyDriver]:
        """A new agent, as after a restart."""
        driver = ToyDriver(self.root / "effects")
        database = Database(self.root / "state", clock=lambda: 1000.0, busy_seconds=30)
        return preparer(self.root, driver, database=database, steps=steps, boot=self.boot), driver

    def reboot(self) -> None:
        """Another boot: what lay in ``/var/run`` and the effects are gone, the database isn't."""
        self.boot = "boot-2"
        for name in ("cdi", "metadata", "effects"):
            shutil.rmtree(self.root / name, ignore_errors=True)

    def steps_of(self, action: Action) -> list[str]:
        """The steps of an action that isn't killed; a driver's call is one, too."""
        seen: list[str] = []
        place, driver = self.start(seen.append)
        driver.hook = lambda what, _claim: seen.append(f"driver-{what}")
        action(place, driver)
        return seen

    def kill_at(self, number: int, action: Action) -> None:
        """Do it in a process of its own, which kills itself when that many steps are done."""
        self.join(self.fork(action, kill_at=number), -signal.SIGKILL)

    def fork(self, action: Action, *, kill_at: int | None = None) -> int:
        """Do it in a process of its own, and tell its id."""
        child = os.fork()
        if child:
            return child
        try:
            left = kill_at

            def step(_name: str) -> None:
                nonlocal left
                if left is not None:
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left -= 1

            def hook(what: str, _claim: ClaimDevices) -> None:
                step(f"driver-{what}")

            place, driver = self.start(step)
            driver.hook = hook
            action(place, driver)
            os._exit(0)
        except BaseException:  # noqa: BLE001 — nothing of a child may get back into the test run
            traceback.print_exc()
            os._exit(1)

    @staticmethod
    def join(child: int, status: int = 0) -> None:
        """Wait for a process that ends like this."""
        _, ended = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(ended) == status

    def consistent(self, uids: Collection[str]) -> None:
        """Rows, units, effects, specs, metadata and locks are those of these claims, and nothing else is there."""
        expected = sorted(uids)
        with Database(self.root / "state").reading() as tx:
            rows = claims.all_claims(tx)
            units = {uid for (uid,) in tx.connection.execute("SELECT claim FROM held_units")}
        assert sorted(row.record.uid for row in rows) == expected
        assert all(row.state == "prepared" and row.boot_id == self.boot for row in rows)
        assert sorted(units) == expected
        assert sorted(ToyDriver(self.root / "effects").prepared()) == expected
        name = ToyDriver.name
        assert self._names("cdi") == [f"k8s.{name}-claim_{uid}.json" for uid in expected]
        assert self._names(f"metadata/{name}") == expected
        assert all(self._names(f"metadata/{name}/{uid}") == ["toys.json"] for uid in expected)
        assert self._names("state/claims") == [f"{name}_{uid}.lock" for uid in expected]

    def _names(self, directory: str) -> list[str]:
        path = self.root / directory
        return sorted(one.name for one in path.iterdir()) if path.exists() else []
