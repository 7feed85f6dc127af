"""What `draht run` is given and gives back: the host it works on, the order, the outcome. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from draht import cdi
from draht.driver.database import Database
from draht.hardware.inventory import Inventory
from draht.host.engine import Bind, Engine
from draht.host.reconcile import Reconciled
from draht.host.selection import Ask, Request, Selection

__all__ = ["ContainerOrder", "Host", "Order", "Outcome", "PodsOrder", "Wanted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The machine as `run` needs it; everything with an effect or a clock is a parameter.

    Attributes:
        database: The machine's database.
        engines: Engines by name; all are asked when reconciling.
        cdi_directory: Preferred directory for transient specs.
        cache: Where CDI names are looked up.
        outside: Inventory and reconciled state → units used outside draht, and by whom.
        say: Tell the person something (stderr).
        steps: Told the name of each step as it is passed.
    """

    database: Database
    engines: Mapping[str, Engine]
    cdi_directory: Path
    cache: cdi.Cache | None = None
    outside: Callable[[Inventory, Reconciled], Mapping[str, str]] = field(default=lambda _inventory, _state: {})
    say: Callable[[str], None] = field(default=lambda _text: None)
    steps: Callable[[str], None] = field(default=lambda _step: None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is to be held, whatever runs with it.

    Attributes:
        inventory: The machine or profile to choose from.
        ask: The devices.
        engine: Name of the engine.
        command: What runs, for people.
        wait: Seconds to wait for devices; infinity for ever.
    """

    inventory: Inventory
    ask: Ask
    engine: str
    command: tuple[str, ...] = ()
    wait: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What is to be run.

    Attributes:
        inventory: The machine or profile to choose from.
        request: The devices.
        ask: The devices in other words; takes the place of `request`.
        engine: Name of the engine.
        image: Image, or None with `rootfs`.
        rootfs: Directory that is the root file system.
        command: Command and arguments.
        name: Name of the container; made from the hold's id if empty.
        env: Environment variables.
        binds: Directories and files of the host to mount.
        interactive: Pass stdin through.
        tty: Give it a terminal.
        detach: Return when it runs.
        wait: Seconds to wait for devices; infinity for ever.
        network: As `ContainerRequest.network`.
        engine_args: Passed to podman or docker as they are.
    """

    inventory: Inventory
    request: Request = field(default_factory=Request)
    ask: Ask | None = None
    engine: str
    image: str | None = None
    rootfs: str | None = None
    command: tuple[str, ...] = ()
    name: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    binds: tuple[Bind, ...] = ()
    interactive: bool = False
    tty: bool = False
    detach: bool = False
    wait: float = 0.0
    network: str | None = None
    engine_args: tuple[str, ...] = ()

    @property
    def wanted(self) -> Wanted:
        """What is to be held for it."""
        return Wanted(
            inventory=self.inventory,
            ask=self.ask or Selection(self.inventory, self.request),
            engine=self.engine,
            command=self.command or ((self.image,) if self.image else ()),
            wait=self.wait,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerOrder:
    """One of several containers that share a hold.

    Attributes:
        name: As in the choice's parts, ``pod/container``.
        image: Image, or None with `rootfs`.
        rootfs: Directory that is the root file system.
        command: Command and arguments.
        env: Environment variables.
    """

    name: str
    image: str | None = None
    rootfs: str | None = None
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PodsOrder:
    """Containers that run side by side with the devices of one hold.

    Attributes:
        wanted: What is held; its choice has a part for each container that gets devices.
        containers: What runs.
        network: As `ContainerRequest.network`.
        output: Told each line that a container writes, with the container's name, without the line's end.
    """

    wanted: Wanted
    containers: tuple[ContainerOrder, ...]
    network: str | None = None
    output: Callable[[str, bytes], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended: the hold it had, and the container's exit status (0 when detached)."""

    hold: str
    status: int
