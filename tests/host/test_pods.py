from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from draht.driver.waiting import Demand
from draht.hardware.inventory import Inventory
from draht.host.engine import EngineError
from draht.host.errors import InterruptedRunError, NotFreeError
from draht.host.order import ContainerOrder, PodsOrder, Wanted
from draht.host.pods import PodsOutcome, run_pods
from draht.host.selection import Choice, Part, Request, Selection
from running import Workplace, until, wait_for

STEPS = ("begun", "held", "stubs-and-spec-written", "created", "recorded", "marked-running", "ended", "freed")


@dataclass
class Shared:
    """Asks for two GPUs: the first for both containers, the second for container b alone."""

    inventory: Inventory

    @property
    def amount(self) -> str:
        return "2"

    def demands(self) -> tuple[Demand, ...]:
        return Selection(self.inventory, Request(gpus=2)).demands()

    def choose(self, taken: AbstractSet[str]) -> Choice | None:
        choice = Selection(self.inventory, Request(gpus=2)).choose(taken)
        if choice is None:
            return None
        first, second = choice.devices
        parts = (
            Part(name="pod/a", devices=(first,), env={"DRAHT_SIMULATED_CONFIG": "x"}),
            Part(name="pod/b", devices=(first, second)),
        )
        return Choice(devices=choice.devices, cdi_names=(), units=choice.units, parts=parts)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    place.clean()


def order(place: Workplace, script: str, output: Callable[[str, bytes], None] = lambda *_: None) -> PodsOrder:
    """Three containers that run a script; the third has no device."""
    return PodsOrder(
        wanted=Wanted(inventory=place.inventory, ask=Shared(place.inventory), engine="fake", command=("pod",)),
        containers=tuple(
            ContainerOrder(name=f"pod/{name}", rootfs="/", command=("sh", "-c", script), env={"NAME": name})
            for name in "abc"
        ),
        output=output,
    )


def run(place: Workplace, script: str) -> tuple[PodsOutcome, dict[str, list[str]]]:
    """Run it; what each container wrote."""
    lines: dict[str, list[str]] = {}

    def note(name: str, line: bytes) -> None:
        lines.setdefault(name, []).append(line.decode())

    return run_pods(place.host(), order(place, script, note)), lines


def test_each_container_sees_its_own_devices_of_the_one_hold(place: Workplace) -> None:
    """Shared ones in both, own ones in one, none where none were given; every status is told, and all is freed."""
    outcome, lines = run(place, 'echo "$DRAHT_DEVICES"; echo $DRAHT_SIMULATED_CONFIG >&2; [ "$NAME" != b ]')
    assert lines == {"pod/a": ["GPU-0", "x"], "pod/b": ["GPU-0,GPU-1", ""], "pod/c": ["", ""]}
    assert outcome.statuses == {"pod/a": 0, "pod/b": 1, "pod/c": 0}
    assert len(outcome.held.choice.units) == 4
    assert place.holds() == []
    place.consistent()


def test_the_containers_run_at_the_same_time(place: Workplace) -> None:
    """Each waits for the others, which would never end if they ran one after the other."""
    meet = place.root / "meet"
    meet.mkdir()
    script = f"touch {meet}/$NAME; while [ $(ls {meet} | wc -l) -lt 3 ]; do sleep 0.05; done"
    outcome, _ = run(place, script)
    assert set(outcome.statuses.values()) == {0}


def test_long_output_without_line_ends_is_passed_on_in_pieces(place: Workplace) -> None:
    """A container that never ends its line costs no memory; nothing is lost."""
    outcome, lines = run(place, "head -c 300000 /dev/zero | tr '\\0' x")
    assert outcome.statuses["pod/a"] == 0
    assert len("".join(lines["pod/a"])) == 300000


def test_if_one_container_cannot_be_made_none_runs(place: Workplace) -> None:
    """The error names the container; nothing is left."""
    host = place.host()
    engine = place.engine()
    engine.fails.add("create")
    ran = place.root / "ran"
    with pytest.raises(EngineError, match="container pod/a: fake failure of create"):
        run_pods(replace(host, engines={"fake": engine}), order(place, f"touch {ran}"))
    assert not ran.exists()
    place.consistent()
    assert place.holds() == []


def test_what_is_taken_is_said(place: Workplace) -> None:
    """Seven GPUs are held: the two asked for aren't there."""
    place.run(["sleep", "60"], number=7, detach=True)
    with pytest.raises(NotFreeError, match="2 wanted, 1 of 8 free"):
        run(place, "true")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_containers(place: Workplace, number: int) -> None:
    """Containers, processes and hold are gone when the error arrives."""
    here = os.getpid()
    pids: list[int] = []

    def note(_name: str, line: bytes) -> None:
        pids.append(int(line))
        if len(pids) == 3:
            os.kill(here, number)

    with pytest.raises(InterruptedRunError):
        run_pods(place.host(), order(place, "echo $$; exec sleep 60", note))
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert place.containers() == []
    assert place.holds() == []


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_nothing_is_lost(place: Workplace, step: str) -> None:
    """After kill -9 the containers decide: none has run half, and once they have ended everything is free again."""
    pid = os.fork()
    if not pid:
        try:
            run_pods(place.host(lambda name: os.kill(os.getpid(), 9) if name == step else None), order(place, "true"))
        finally:
            os._exit(0)
    assert wait_for(pid) == 137

    def settled() -> bool:
        place.reconcile()
        return place.holds() == [] and place.containers() == []

    until(settled)
    place.consistent()
