"""This machine as the commands need it: which database, which engines, which devices, who else uses them.

The one place that reads the environment and puts the parts together; everything below takes them as parameters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from draht import cdi
from draht.driver import holds
from draht.driver.claims import rows as claims
from draht.driver.database import FILE, Database
from draht.driver.errors import StateError
from draht.hardware import simulated
from draht.hardware.inventory import Inventory
from draht.hardware.machine import MachineProvider
from draht.host.engines import engines
from draht.host.errors import OwnedError, SelectionError
from draht.host.order import Host
from draht.host.ownership import Ownership
from draht.host.places import cdi_directory, state_directory
from draht.host.reconcile import STATE_LABEL, Reconciled, read_facts
from draht.host.selection import Ask, Request
from draht.host.usage import survey

__all__ = [
    "MACHINE_STATE",
    "database_directory",
    "local_host",
    "local_inventory",
    "no_gpu_kind",
    "outside",
    "refuse_owned",
    "refuse_unresolvable",
    "spec_directories",
]

MACHINE_STATE = Path("/var/lib/draht")
"""Root's state directory. An administrator may open it to a group; then it is everybody's in that group."""

GPU_KINDS = ("nvidia.com/gpu", "amd.com/gpu")
"""CDI kinds whose devices `--gpus` means, the first one that is offered."""


def database_directory(environ: Mapping[str, str] = os.environ, *, machine: Path = MACHINE_STATE) -> Path:
    """The directory of the database: the machine's for all who may write it, else the user's own.

    A user's own database refuses double holds of that user only; the machine's is consulted beside it.
    """
    if not environ.get("DRAHT_STATE_DIR") and machine.is_dir() and os.access(machine, os.W_OK | os.X_OK):
        return machine
    return state_directory(environ)


def spec_directories(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Directories in which CDI names are looked up, the strongest last."""
    chosen = str(cdi_directory(environ))
    return tuple(dict.fromkeys((*cdi.DEFAULT_DIRECTORIES, chosen)))


def local_host(say: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> Host:
    """The host that commands work on. The database has been looked at; what was wrong with it has been said.

    Raises:
        StateError: The database can't be used.
    """
    database = Database(database_directory(environ))
    database.check()
    for notice in database.notices:
        say(f"note: {notice}")
    said: set[str] = set()

    def note_once(text: str) -> None:
        if text not in said:
            said.add(text)
            say(f"note: {text}")

    return Host(
        database=database,
        engines=engines(state=state_directory(environ)),
        cdi_directory=cdi_directory(environ),
        cache=cdi.Cache(spec_directories(environ)),
        outside=lambda inventory, state: outside(inventory, state, database.directory, note_once),
        say=say,
    )


def local_inventory(
    cache: cdi.Cache, *, profile: str | None, kind: str | None, root: str = "/"
) -> tuple[Inventory, str]:
    """What to choose from, and the CDI kind that `--gpus` means (empty for a profile's devices).

    Args:
        cache: CDI specs of the machine.
        profile: Name or path of a machine profile instead of the real machine.
        kind: CDI kind the user insists on.
        root: Directory that has ``sys`` and ``proc``.

    Raises:
        SelectionError: The kind isn't offered.
        draht.hardware.errors.HardwareError: There is no such profile, or it isn't valid.
    """
    if profile is not None:
        return simulated.from_profile(profile), ""
    cache.refresh()
    offered = {name.partition("=")[0] for name in cache.devices()}
    if kind is not None and kind not in offered:
        raise SelectionError(f"no CDI spec offers devices of kind {kind}", hint=_offered_hint(cache))
    chosen = kind or next((one for one in GPU_KINDS if one in offered), "")
    return MachineProvider(cache, root).inventory(), chosen


def no_gpu_kind(cache: cdi.Cache) -> SelectionError:
    """The error for `--gpus` where no GPU kind is offered."""
    return SelectionError(f"no CDI spec offers {' or '.join(GPU_KINDS)}", hint=_offered_hint(cache))


def _offered_hint(cache: cdi.Cache) -> str:
    broken = cache.errors()
    if broken:
        # The first suspect: a spec that engines refuse as a whole looks like no spec at all.
        path, errors = next(iter(broken.items()))
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        said = str(errors[0])
        return f"mend {said if path in said else f'{path}: {said}'}{more}; `draht cdi validate` shows all mistakes"
    offered = {name.partition("=")[0] for name in cache.devices()}
    if offered:
        return f"there are {', '.join(sorted(offered))}: choose one with --kind, or name devices with --device"
    return (
        "let the vendor's tool write a spec (`nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`), "
        "or try without hardware: --profile dgx-h100"
    )


def refuse_owned(inventory: Inventory, ask: Ask, owned: Ownership) -> None:
    """Leave alone what a kubelet hands out.

    Raises:
        OwnedError: A device plugin or DRA driver owns devices that could be given for it.
    """
    if inventory.simulated:
        return
    wanted = {unit for demand in ask.demands() for units in demand.candidates for unit in units}
    for device in inventory.devices:
        owner = owned.of(device.vendor)
        if owner is not None and device.units & wanted:
            raise OwnedError(owner.reason, where=owner.socket, hint=owner.fix)


def refuse_unresolvable(cache: cdi.Cache, inventory: Inventory, request: Request) -> None:
    """Say why a CDI name leads nowhere before anything is held, instead of letting the engine say that it does.

    Raises:
        cdi.InjectionError: Some of the names aren't on offer, or their device nodes aren't on the host.
    """
    names = [] if inventory.simulated else [name for name in request.names if cdi.is_qualified_name(name)]
    diagnosis = cdi.explain_unresolvable(cache, names)
    if diagnosis.unresolvable:
        raise diagnosis.error()


def outside(
    inventory: Inventory, state: Reconciled, directory: Path, note: Callable[[str], None] = lambda _text: None
) -> dict[str, str]:
    """Units that are used by others than the holds of the database in a directory, and by whom.

    Simulated devices don't exist, so nothing outside the database can use them.
    """
    if inventory.simulated:
        return {}
    containers = [container for listed in state.listed.values() for container in listed]
    ours = str(directory.resolve())
    seen = survey(inventory, containers, ours=[one.id for one in containers if one.labels.get(STATE_LABEL) == ours])
    if seen.partial is not None:
        note(seen.partial)
    found = seen.by_unit(inventory)
    for container in containers:
        # draht with another database: its containers say which units they have, whatever name they got them by.
        facts = read_facts(container)
        if facts is None or facts.simulated or container.labels.get(STATE_LABEL) == ours:
            continue
        if container.state == "running":
            found |= dict.fromkeys(facts.units, f"{facts.user} ({container.hold}, {container.engine})")
    return found | _machine_holds(directory)


def _machine_holds(directory: Path, machine: Path = MACHINE_STATE) -> dict[str, str]:
    """Units held in the machine's database, for a user who has an own one and may read it."""
    if directory.resolve() == machine or not (machine / FILE).exists():
        return {}
    try:
        with Database(machine).reading() as tx:
            names = {hold.id: f"{hold.user} ({hold.id} in {machine})" for hold in holds.all_holds(tx)}
            names |= {one.record.uid: f"claim {one.record.title} ({machine})" for one in claims.all_claims(tx)}
            return {unit: names[of] for unit, of in holds.held_units(tx).items()}
    except StateError:
        # Not for us to read: then engines and open device files are all there is to see.
        return {}
