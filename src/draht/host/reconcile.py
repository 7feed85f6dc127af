"""Bringing the database in line with what runs: every command does it first.

A hold follows the container. The rules, and why they are safe without a lock during the effects:

- A hold whose draht lives is left alone: that process ends it.
- Otherwise its container decides. Running (or not known): the hold stays. Anything else: the container is removed
  *first*, so that a start which is still under way in the engine fails or is undone; then the spec; then the hold.
  The starter was seen dead before the engine was asked, so nobody starts the container afterwards.
- An engine that can't be asked says nothing: its holds stay. Neither does the absence of another user's container,
  whose engine may keep containers per user; there the container's first process decides, if one was recorded.
- A container of this database without a row that runs, or is made by a draht that lives, gets its hold back from its
  labels (the database was lost). It has to be seen *after* the row was found missing: a hold is deleted only after its
  container is gone.
- Who chooses has reconciled before, and the database has lost nothing since (`audit.continues`): otherwise again.
- Created or ended containers without a row whose starter is dead, and specs without a row, are left-overs and removed.
  Their hold was inserted before they were made, so a missing row means that it was freed.
- Claims of pods are the node agent's. Only those that the database has lost are read again from their CDI specs, so
  that their devices don't look free.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from draht.api.errors import DrahtError
from draht.driver import audit, holds, waiting
from draht.driver.claims import recovery
from draht.driver.database import Database
from draht.driver.errors import HeldError
from draht.driver.holds import HeldDevice, Hold
from draht.driver.process import Condition, ProcessIdentity, boot_id, condition, identify
from draht.host import specs
from draht.host.engine import Container, Engine, EngineError

__all__ = ["FACTS_LABEL", "STATE_LABEL", "Facts", "Reconciled", "end", "read_facts", "reconcile"]

STATE_LABEL = "draht.dev/state"
"""Label with the state directory whose database has the container's hold."""

FACTS_LABEL = "draht.dev/facts"
"""Label with what is needed to write the hold's row again (`Facts`), as JSON."""

Judge = Callable[[ProcessIdentity], Condition]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A hold as its container carries it: everything but what the engine tells, and the units."""

    machine: str
    simulated: bool
    devices: tuple[HeldDevice, ...]
    units: tuple[str, ...]
    cdi_names: tuple[str, ...]
    command: tuple[str, ...]
    uid: int
    user: str
    starter: ProcessIdentity
    detached: bool
    since: float


@dataclass(slots=True)
class Reconciled:
    """What a reconcile found.

    Attributes:
        containers: Hold → its container, as far as there is one that may run.
        listed: Everything the engines listed; engines that couldn't be asked are missing.
        problems: What couldn't be settled, one sentence each.
        adopted: Holds that were rebuilt from running containers.
        claims: Claims of pods that were read again from their CDI specs, for people.
        point: The database before the engines were asked; while it continues from there, no hold is missing.
    """

    containers: dict[str, Container] = field(default_factory=dict)
    listed: dict[str, list[Container]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    point: audit.Point | None = None


def reconcile(
    database: Database, engines: Mapping[str, Engine], *, cdi_directories: Sequence[Path] = (), judge: Judge = condition
) -> Reconciled:
    """Make the database agree with the containers of these engines. Safe to run any number of times at once.

    Raises:
        StateError: The database can't be used.
    """
    found = Reconciled()
    lost = recovery.adopt(database, cdi_directories)
    found.claims = [f"claim {record.title}" for record in lost.claims]
    found.problems += lost.problems
    with database.transaction() as tx:
        waiting.expire(tx, judge=judge)
        known, found.point = holds.all_holds(tx), audit.point(tx)
    orphans = [hold for hold in known if judge(hold.starter) == "dead"]
    # Files are listed before the rows are read again below, see the last rule.
    files = specs.written(cdi_directories, database.directory)
    for name, engine in engines.items():
        try:
            found.listed[name] = engine.containers()
        except EngineError as error:
            if kept := [hold.id for hold in known if hold.engine == name]:
                found.problems.append(f"{name} can't be asked, so holds {', '.join(kept)} are kept: {error}")
    mine = [container for listed in found.listed.values() for container in listed if _is_ours(container, database)]
    for hold in known:
        _observe(database, hold, [container for container in mine if container.hold == hold.id], found)
    for hold in orphans:
        _settle(database, hold, engines, [container for container in mine if container.hold == hold.id], found, judge)
    with database.reading() as tx:
        now = {hold.id for hold in holds.all_holds(tx)}
    _strays(database, [container for container in mine if container.hold not in now], engines, files, found, judge)
    for path, of in files.items():
        if of not in now and of not in found.containers:
            _attempt(found, partial(specs.remove, path))
    specs.sweep(cdi_directories, database.directory, database.clock())
    return found


def end(database: Database, hold: Hold, engine: Engine | None, containers: Iterable[str], why: str) -> bool:
    """End a hold: container, spec, row, in this order. False if somebody else has done it.

    Each step is idempotent, so it can be repeated after a crash at any point and done by two processes at once.

    Raises:
        EngineError: The container is still there; the hold stays, marked ``releasing``.
        cdi.WriteError: The spec can't be removed; likewise.
        StateError: The database can't be used; the next reconcile frees the hold.
    """
    with database.transaction() as tx:
        if not holds.set_state(tx, hold.id, "releasing", after=("starting", "running", "releasing")):
            return False
        paths = [path for path, of in holds.spec_paths(tx).items() if of == hold.id]
    if engine is not None:
        for container in containers:
            engine.remove(container)
    for path in paths:
        specs.remove(path)
    with database.transaction() as tx:
        return holds.delete(tx, hold.id, why)


def _is_ours(container: Container, database: Database) -> bool:
    return container.hold is not None and container.labels.get(STATE_LABEL) == str(database.directory.resolve())


def _may_run(container: Container) -> bool:
    return container.state in ("running", "unknown")


def _is_coming(container: Container, judge: Judge) -> bool:
    """Made, not started, and its draht lives."""
    facts = read_facts(container)
    return container.state == "created" and facts is not None and judge(facts.starter) != "dead"


def _observe(database: Database, hold: Hold, containers: list[Container], found: Reconciled) -> None:
    """Note the container that may run, and its first process once."""
    for container in containers:
        if not _may_run(container):
            continue
        found.containers[hold.id] = container
        if container.pid and (hold.init is None or hold.init.pid != container.pid):
            init = identify(container.pid)
            if init is not None and init.boot_id == hold.starter.boot_id:
                with database.transaction() as tx:
                    holds.set_init(tx, hold.id, init)


def _settle(
    database: Database,
    hold: Hold,
    engines: Mapping[str, Engine],
    containers: list[Container],
    found: Reconciled,
    judge: Judge,
) -> None:
    """Decide about a hold whose draht is dead."""
    if any(_may_run(container) for container in containers):
        return
    if hold.engine not in found.listed:
        if hold.engine not in engines:
            found.problems.append(f"hold {hold.id} is kept: {hold.engine}, which has its container, isn't found")
        return
    why = "draht died before the container was started"
    if hold.state == "running":
        why = "the container is gone"
        if containers:
            code = containers[0].exit_code
            why = "the container has ended" + (f" with status {code}" if code is not None else "")
    if not containers and hold.uid != os.getuid():
        rebooted = hold.starter.boot_id != boot_id()
        if hold.init is None and not rebooted:
            found.problems.append(
                f"hold {hold.id} of {hold.user} can't be judged from here; {hold.user} or `draht release` settles it"
            )
            return
        if hold.init is not None and judge(hold.init) != "dead":
            return
        why = "the container's first process is gone"
    ids = [container.id for container in containers]
    _attempt(found, lambda: end(database, hold, engines[hold.engine], ids, why))


def _strays(
    database: Database,
    containers: list[Container],
    engines: Mapping[str, Engine],
    files: Mapping[Path, str],
    found: Reconciled,
    judge: Judge,
) -> None:
    """Containers of this database that it doesn't know: adopt what runs or is about to, remove what doesn't."""
    living = {container.id for container in containers if _may_run(container) or _is_coming(container, judge)}
    if living:
        again = {name: engines[name] for name in {container.engine for container in containers}}
        try:
            seen = {c.id: c for engine in again.values() for c in engine.containers()}
        except EngineError as error:
            found.problems.append(f"containers without a hold can't be looked at again: {error}")
            return
        # What runs comes first: of a container that runs and one that is about to, the second has to give way.
        for container in sorted(containers, key=lambda one: not (one.id in seen and _may_run(seen[one.id]))):
            now = seen.get(container.id)
            if container.id in living and now is not None and (_may_run(now) or _is_coming(now, judge)):
                _adopt(database, now, [str(path) for path, of in files.items() if of == container.hold], found)
    for container in containers:
        facts = read_facts(container)
        let_go = facts is None or judge(facts.starter) == "dead" or (facts.detached and container.state == "exited")
        if container.id not in living and let_go:
            _attempt(found, partial(engines[container.engine].remove, container.id))


def _adopt(database: Database, container: Container, paths: Iterable[str], found: Reconciled) -> None:
    """Write the row of a container again."""
    facts = read_facts(container)
    assert container.hold is not None
    if facts is None or not facts.units:
        found.problems.append(f"container {container.name} runs with hold {container.hold}, whose facts are unreadable")
        return
    runs = _may_run(container)
    hold = Hold(
        id=container.hold,
        state="running" if runs else "starting",
        engine=container.engine,
        container=container.id,
        init=identify(container.pid) if container.pid else None,
        machine=facts.machine,
        simulated=facts.simulated,
        devices=facts.devices,
        cdi_names=facts.cdi_names,
        command=facts.command,
        uid=facts.uid,
        user=facts.user,
        starter=msgspec.structs.replace(facts.starter, pid=0) if facts.detached and runs else facts.starter,
        since=facts.since,
    )
    with database.transaction() as tx:
        events = {entry.event for entry in audit.entries(tx, hold.id)}
        if holds.find(tx, hold.id) is not None or (not runs and "freed" in events):
            # There already; or released by somebody while it was made, which its draht is about to find out.
            return
        try:
            holds.insert(tx, hold, facts.units, specs=paths, event="adopted")
        except HeldError:
            if not runs:
                # Its draht finds its hold missing before it starts the container.
                return
            if "conflict" not in events:
                audit.record(tx, "conflict", hold.id, f"container {container.name} runs with devices held by others")
            found.containers[hold.id] = container
            found.problems.append(
                f"container {container.name} ({container.engine}) runs with devices of another hold or a claim; stop it"
            )
            return
    found.adopted.append(hold.id)
    found.containers[hold.id] = container


def read_facts(container: Container) -> Facts | None:
    """What a container of draht says about its hold; None for other containers and unreadable labels."""
    try:
        return msgspec.json.decode(container.labels.get(FACTS_LABEL, ""), type=Facts)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _attempt(found: Reconciled, effect: Callable[[], object]) -> None:
    """Do something that may fail without keeping the rest from being settled."""
    try:
        effect()
    except DrahtError as error:
        found.problems.append(str(error))
