from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from draht import cdi
from draht.driver.database import Database
from draht.host.engine import EngineError
from draht.host.errors import HoldLostError, InterruptedRunError, NotFreeError
from draht.host.run import STEPS, run
from running import Workplace, until, wait_for

INSIDE = ("creating", "created-inside", "starting", "gate", "started-inside")
"""Places inside the fake engine's create and start."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    engine = place.engine()
    for container in engine.containers():
        engine.remove(container.id)


def test_a_run_leaves_nothing_but_its_trail(place: Workplace) -> None:
    """The status is the container's, and container, spec and hold are gone; the trail tells all of it."""
    outcome = place.run(["sh", "-c", "exit 7"])
    assert outcome.status == 7
    assert (place.holds(), place.specs(), place.engine().containers()) == ([], [], [])
    assert [entry.event for entry in place.audit(outcome.hold)] == ["held", "created", "started", "freed"]
    assert place.audit(outcome.hold)[-1].detail == "the container ended with status 7"


def test_what_the_container_gets(place: Workplace) -> None:
    """Nodes, libraries and variables of simulated GPUs come through CDI; the files say what they are."""
    outcome = place.run(["sleep", "60"], number=2, detach=True)
    (container,) = place.engine().containers()
    env = place.engine().environment(container.id)
    assert (env["DRAHT_HOLD"], env["DRAHT_DEVICES"], env["DRAHT_SIMULATED"]) == (outcome.hold, "GPU-0,GPU-1", "test")
    (name,) = place.specs()
    spec = cdi.decode((place.cdi / name).read_bytes())
    nodes = [node for device in spec.devices for node in device.container_edits.device_nodes]
    assert [(node.path, node.host_path) for node in nodes] == [
        ("/dev/nvidia0", "/dev/null"),
        ("/dev/nvidia1", "/dev/null"),
    ]
    for mount in spec.container_edits.mounts:
        assert "ro" in mount.options
        assert "simulated" in Path(mount.host_path).read_text()


def test_held_devices_are_not_given_again(place: Workplace) -> None:
    """Two containers at once have different GPUs, and a request for more than is left says who has them."""
    first = place.run(["sleep", "60"], number=5, detach=True)
    second = place.run(["sleep", "60"], number=2, detach=True)
    devices = [{device.id for device in hold.devices} for hold in place.holds()]
    assert devices[0].isdisjoint(devices[1])
    with pytest.raises(NotFreeError) as caught:
        place.run(number=2)
    message = str(caught.value)
    assert "2 wanted, 1 of 8 free" in message
    assert first.hold in message
    assert second.hold in message
    assert "\n" not in message
    assert "--wait" in str(caught.value.hint)
    place.consistent()


def test_a_finished_container_frees_its_devices(place: Workplace) -> None:
    """Detached, nobody watches: the next command finds that the container has ended."""
    place.run(["true"], number=8, detach=True)
    until(lambda: all(container.state == "exited" for container in place.engine().containers()))
    assert place.run(number=8).status == 0
    place.consistent()


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("step", [*STEPS, *INSIDE])
def test_kill_at_every_step(place: Workplace, step: str, detach: bool) -> None:
    """Killed at any step, draht leaves what the next command settles: what runs keeps its GPUs, all else goes.

    The container counts as running exactly if its process runs, whatever the database says.
    """
    pid = place.fork(place.order(["sleep", "60"] if detach else ["true"], number=8, detach=detach), kill_at=step)
    status = wait_for(pid)
    passed = STEPS[-3:] if detach else ("started", "noted")
    assert status == (0 if step in passed else 137)
    runs = detach and step in ("gate", "started-inside", "started", "noted", *STEPS[-3:])
    if step == "gate":
        # Recorded, but never let through the gate: it ends by itself.
        runs = False
    until(lambda: any(container.state == "running" for container in place.engine().containers()) == runs)
    if runs:
        for _ in range(2):
            with pytest.raises(NotFreeError):
                place.run(number=1)
        assert len(place.holds()) == 1
        place.consistent()
        place.engine().remove(place.engine().containers()[0].id)
    assert place.run(number=8).status == 0
    assert (place.holds(), place.specs(), place.engine().containers()) == ([], [], [])
    place.consistent()


def runs_command(pid: int | None, command: str) -> bool:
    """Whether a process has become that command."""
    try:
        return pid is not None and Path(f"/proc/{pid}/cmdline").read_bytes().startswith(command.encode())
    except OSError:
        return False


@pytest.mark.parametrize("step", [*STEPS[:-2], *INSIDE])
def test_kill_while_the_container_runs_on(place: Workplace, step: str) -> None:
    """Attached to a long container: after kill -9 at any step before its end, the container decides alone."""
    order = place.order(["sleep", "60"], number=8)
    pid = place.fork(order, kill_at=step)
    runs = step == "started-inside"
    if step in ("started", "noted", "ended"):
        # At the gate it counts as running, too, but ends with draht.
        until(lambda: any(runs_command(container.pid, "sleep") for container in place.engine().containers()))
        os.kill(pid, signal.SIGKILL)
        runs = True
    assert wait_for(pid) == 137
    until(lambda: any(container.state == "running" for container in place.engine().containers()) == runs)
    place.reconcile()
    assert len(place.holds()) == runs
    place.consistent()


@pytest.mark.parametrize("failing", ["create", "create-late", "start"])
def test_a_failing_engine_leaves_nothing(place: Workplace, failing: str) -> None:
    """The engine's error comes through, and devices, spec and container are given back at once."""
    host = place.host()
    host.engines["fake"].fails.add(failing)  # type: ignore[attr-defined]
    with pytest.raises(EngineError, match=failing):
        run(host, place.order(number=8))
    place.consistent()
    assert place.holds() == []
    failed = [entry for entry in place.audit() if entry.event == "failed"]
    assert [failing in entry.detail for entry in failed] == [True]


def test_an_engine_that_cannot_be_asked_keeps_its_holds(place: Workplace) -> None:
    """Not being able to ask isn't "nothing runs"."""
    place.run(["sleep", "60"], number=8, detach=True)
    host = place.host()
    host.engines["fake"].fails.add("containers")  # type: ignore[attr-defined]
    with pytest.raises(NotFreeError):
        run(host, place.order())
    assert any("can't be asked" in text for text in place.said)
    assert len(place.holds()) == 1


def test_a_container_that_cannot_be_removed_keeps_its_devices(place: Workplace) -> None:
    """The status still comes through; the hold stays, marked, until the container is really gone."""
    host = place.host()
    host.engines["fake"].fails.add("remove")  # type: ignore[attr-defined]
    assert run(host, place.order(["sh", "-c", "exit 3"], number=8)).status == 3
    assert any("couldn't be freed" in text for text in place.said)
    assert len(place.holds()) == 1
    wait_for(place.fork(place.order(number=8)))
    assert len(place.holds()) == 1, "the process that has the hold still lives and could end it"


@pytest.mark.parametrize("how", ["UPDATE holds SET state = 'releasing'", "DELETE FROM holds"])
@pytest.mark.parametrize("moment", ["held", "stubs-and-spec-written", "created", "recorded"])
def test_released_by_somebody_while_starting(place: Workplace, moment: str, how: str) -> None:
    """Nothing is started under a hold that is being ended, or has ended, in the meantime."""

    def steps(name: str) -> None:
        if name == moment:
            with place.database.transaction() as tx:
                tx.connection.execute(how)

    with pytest.raises(HoldLostError):
        run(place.host(steps), place.order(["sleep", "60"]))
    assert (place.holds(), place.specs(), place.engine().containers()) == ([], [], [])


@pytest.mark.parametrize("moment", ["held", "created", "marked-running"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_before_the_start_undo_everything(place: Workplace, moment: str, number: signal.Signals) -> None:
    """A signal that comes before the container runs ends draht, not without cleaning up."""
    before = signal.getsignal(number)
    with pytest.raises(InterruptedRunError) as caught:
        run(place.host(lambda name: os.kill(os.getpid(), number) if name == moment else None), place.order())
    assert caught.value.signal == number
    assert signal.getsignal(number) is before
    assert (place.holds(), place.specs(), place.engine().containers()) == ([], [], [])


def test_lost_database_is_rebuilt_from_what_runs(place: Workplace) -> None:
    """Garbage instead of a database: running containers keep their GPUs, and the person is told."""
    place.run(["sleep", "60"], number=5, detach=True)
    before = place.holds()
    place.database.path.write_bytes(b"\0garbage" * 1000)
    database = Database(place.root / "state")
    database.check()
    assert "unreadable" in database.notices[0]
    with pytest.raises(NotFreeError, match="3 of 8 free"):
        place.run(number=4)
    assert any("got back the holds" in text for text in place.said)
    (after,) = place.holds()
    assert (after.id, after.devices, after.command, after.since, after.container) == (
        before[0].id,
        before[0].devices,
        before[0].command,
        before[0].since,
        before[0].container,
    )
    place.engine().remove(str(after.container))
    assert place.run(number=8).status == 0
    place.consistent()


def test_lost_database_between_create_and_start(place: Workplace) -> None:
    """The database is replaced under a run: nothing is started, and nothing is left."""

    def steps(name: str) -> None:
        if name == "created":
            for path in (place.root / "state").glob("state.db*"):
                path.unlink()

    with pytest.raises(HoldLostError, match="replaced"):
        run(place.host(steps), place.order(["sleep", "60"]))
    assert place.engine().containers() == []
    place.reconcile()
    assert (place.holds(), place.specs()) == ([], [])


@pytest.mark.parametrize("moment", ["created", "recorded", "marked-running"])
def test_lost_database_and_another_command_before_the_start(place: Workplace, moment: str) -> None:
    """Another command meets the empty database first: it gives the container that is about to start its hold back."""
    refused = []

    def steps(name: str) -> None:
        if name == moment:
            for path in (place.root / "state").glob("state.db*"):
                path.unlink()
            with pytest.raises(NotFreeError):
                place.run(number=1)
            refused.append(name)

    assert run(place.host(steps), place.order(["sh", "-c", "exit 5"], number=8)).status == 5
    assert refused == [moment]
    place.consistent()


def test_two_databases_do_not_clean_up_each_other(tmp_path: Path) -> None:
    """Containers and specs carry whose they are; another state directory on the same engine leaves them alone."""
    one, two = Workplace(root=tmp_path / "one"), Workplace(root=tmp_path / "two")
    one.root.mkdir()
    two.root.mkdir()
    one.run(["sleep", "60"], detach=True)
    (two.root / "engine").symlink_to(one.root / "engine")
    (two.root / "cdi").symlink_to(one.root / "cdi")
    two.reconcile()
    assert two.holds() == []
    assert [container.state for container in one.engine().containers()] == ["running"]
    assert len(one.specs()) == 1
    one.engine().remove(one.engine().containers()[0].id)


def test_half_written_files_are_swept_when_they_are_old(place: Workplace) -> None:
    """A writer killed in the middle leaves a temporary file; the fresh one of a living writer stays."""
    place.run()
    fresh = [place.cdi / ".spec.abc.tmp", place.root / "state/simulated/.nvidia-smi.1.tmp"]
    old = [place.cdi / ".spec.def.tmp", place.root / "state/simulated/.nvidia-smi.2.tmp"]
    others = [place.cdi / "spec.123.tmp", place.cdi / ".other"]
    for path in (*fresh, *old, *others):
        path.touch()
    for path in (*old, *others):
        os.utime(path, (1, 1))
    place.reconcile()
    assert [path.exists() for path in (*fresh, *old, *others)] == [True, True, False, False, True, True]


def test_left_over_spec_and_container_are_removed(place: Workplace) -> None:
    """What no hold explains any more goes: a spec, and a container that was made but never started."""
    pid = place.fork(place.order(number=1), kill_at="created")
    wait_for(pid)
    with place.database.transaction() as tx:
        tx.connection.execute("DELETE FROM holds")
    place.reconcile()
    assert (place.specs(), place.engine().containers()) == ([], [])
