"""A host for tests: fake engine, machine of a few GPUs, and runs in processes that can be killed.

`Workplace.fork` runs one `draht run` in a child process made by fork, which costs a millisecond, so that many can be
killed at many places.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from draht import cdi
from draht.api.errors import DrahtError
from draht.driver import audit, holds, waiting
from draht.driver.database import Database
from draht.driver.holds import Hold
from draht.hardware.inventory import Device, Inventory
from draht.host.engine import Container, Engine
from draht.host.engines import engines
from draht.host.order import Host, Order, Outcome
from draht.host.reconcile import STATE_LABEL, Reconciled, reconcile
from draht.host.run import run
from draht.host.selection import Request
from draht.host.specs import written
from fake_engine import FakeEngine

NEVER = "never"

GROUP = 4242
"""Group of the users that `Workplace.fork` becomes."""


def gpus(count: int, *, simulated: bool = True, per_node: int = 4, kind: str = "nvidia.com/gpu") -> Inventory:
    """A machine of equal GPUs, some to a NUMA node."""
    return Inventory(
        machine="test",
        source="test",
        simulated=simulated,
        devices=tuple(
            Device(
                id=f"GPU-{index}",
                uuid=f"GPU-{index}",
                kind="gpu",
                index=index,
                vendor="nvidia",
                product="Test 9000",
                numa_node=index // per_node,
                pcie_root=f"pci0000:{index:02x}",
                units=frozenset({f"GPU-{index}/{part}" for part in range(2)}),
                cdi_names=(f"{kind}={index}",),
                simulated=simulated,
            )
            for index in range(count)
        ),
    )


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


@dataclass(kw_only=True)
class Workplace:
    """Directories of one host; every process makes its own objects on them."""

    root: Path
    inventory: Inventory = field(default_factory=lambda: gpus(8))
    said: list[str] = field(default_factory=list)
    engine_name: str = "fake"
    rootfs: Path = Path("/")
    kind: str = ""

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    @property
    def database(self) -> Database:
        return Database(self.root / "state")

    def engine(self, steps: Callable[[str], None] = lambda _step: None) -> FakeEngine:
        return FakeEngine(self.root / "engine", self.cdi, steps=steps)

    def engines(self, steps: Callable[[str], None] = lambda _step: None) -> dict[str, Engine]:
        return {"fake": self.engine(steps)}

    def containers(self) -> list[Container]:
        """The containers that this database's holds are for."""
        ours = str((self.root / "state").resolve())
        listed = [container for engine in self.engines().values() for container in engine.containers()]
        return [container for container in listed if container.labels.get(STATE_LABEL) == ours]

    def kill(self, pid: int) -> None:
        """Kill a container by its first process. The fake one has no kernel that ends the others with it."""
        os.killpg(pid, signal.SIGKILL)

    def clean(self) -> None:
        """Remove whatever is left."""
        for container in self.containers():
            self.engines()[self.engine_name].remove(container.id)

    def host(self, steps: Callable[[str], None] = lambda _step: None) -> Host:
        self.cdi.mkdir(exist_ok=True)
        return Host(
            database=self.database,
            engines=self.engines(steps),
            cdi_directory=self.cdi,
            say=self.said.append,
            steps=steps,
        )

    def order(
        self,
        command: Sequence[str] = ("true",),
        *,
        number: int = 1,
        names: Sequence[str] = (),
        detach: bool = False,
        wait: float = 0.0,
    ) -> Order:
        return Order(
            inventory=self.inventory,
            request=Request(gpus=number, names=tuple(names), kind=self.kind),
            engine=self.engine_name,
            rootfs=str(self.rootfs),
            command=tuple(command),
            detach=detach,
            wait=wait,
        )

    def run(self, command: Sequence[str] = ("true",), **order: object) -> Outcome:
        return run(self.host(), self.order(command, **order))  # type: ignore[arg-type]

    def fork(self, order: Order, *, kill_at: str = NEVER, log: Path | None = None, user: int | None = None) -> int:
        """Run an order in a child and return its pid; it exits with the container's status, 125 or 99 for a defect."""
        pid = os.fork()
        if pid:
            return pid
        status = 99
        try:

            def steps(name: str) -> None:
                if name == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if user is not None:
                os.setgroups([])
                os.setgid(GROUP)
                os.setuid(user)
            status = run(self.host(steps), order).status
        except DrahtError as error:
            status = 125
            if log is not None:
                with log.open("a") as file:
                    file.write(f"{type(error).__name__}: {error}\n")
        except BaseException:  # noqa: BLE001 — a forked child must not go on as a second pytest
            traceback.print_exc()
        finally:
            os._exit(status)

    def reconcile(self) -> Reconciled:
        return reconcile(self.database, self.engines(), cdi_directories=[self.cdi])

    def holds(self) -> list[Hold]:
        with self.database.transaction() as tx:
            return holds.all_holds(tx)

    def tickets(self) -> list[waiting.Ticket]:
        with self.database.transaction() as tx:
            return waiting.tickets(tx)

    def audit(self, hold: str | None = None) -> list[audit.Entry]:
        with self.database.transaction() as tx:
            return audit.entries(tx, hold)

    def specs(self) -> list[str]:
        return sorted(path.name for path in self.cdi.iterdir()) if self.cdi.exists() else []

    def specs_of_holds(self) -> set[str]:
        """The holds that a transient spec of this database is there for."""
        return set(written([self.cdi], self.root / "state").values())

    def consistent(self, *, explained: bool = True) -> None:
        """Every hold has a container that runs, every container a hold, every spec a hold, and the trail tells it."""
        containers = self.containers()
        running = {container.hold for container in containers if container.state == "running"}
        assert {container.hold for container in containers} == running
        held = {hold.id for hold in self.holds()}
        assert held == running
        assert self.specs_of_holds() == held
        assert self.tickets() == []
        if explained:
            self.explained()

    def explained(self) -> None:
        """The audit trail tells the life of each hold: held first, freed last and once, unless it still exists."""
        entries = self.audit()
        living = {hold.id for hold in self.holds()}
        for identity in {entry.hold for entry in entries if entry.hold}:
            events = [entry.event for entry in entries if entry.hold == identity]
            assert events[0] in ("held", "adopted"), (identity, events)
            assert events.count("freed") == (0 if identity in living else 1), (identity, events)
            if "created" in events and "started" in events:
                assert events.index("created") < events.index("started"), (identity, events)


@dataclass(kw_only=True)
class RealWorkplace(Workplace):
    """A host with one of the machine's engines and its own database; podman reads specs from one directory only."""

    def __post_init__(self) -> None:
        self.kind = self.inventory.devices[0].cdi_names[0].partition("=")[0]

    @property
    def cdi(self) -> Path:
        return Path("/var/run/cdi") if self.engine_name == "podman" else self.root / "cdi"

    def engines(self, steps: Callable[[str], None] = lambda _step: None) -> dict[str, Engine]:
        found = engines(state=self.root / "state", spec_directories=[str(self.cdi)])
        return {self.engine_name: found[self.engine_name]}

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def host(self, steps: Callable[[str], None] = lambda _step: None) -> Host:
        return replace(super().host(steps), cache=cdi.Cache([self.cdi]))


def wait_for(pid: int) -> int:
    """Exit status of a child, 128+n if signal n ended it."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 128 - status if status < 0 else status
