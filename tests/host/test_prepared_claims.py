"""Devices that are prepared for pods, as somebody at the same machine sees them: `draht run`, `ps` and `release`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from draht.cli.ps import ps
from draht.cli.release import release as release_command
from draht.driver import holds
from draht.driver.claims.preparation import Preparer
from draht.driver.claims.rows import Claim, all_claims
from draht.driver.errors import DeviceInUseError
from draht.host import local
from draht.host.errors import NotFreeError, SelectionError
from draht.host.local import _machine_holds
from draht.host.release import find
from draht.host.status import settle, status
from holding import hold
from running import Workplace, until, wait_for
from toy_driver import ToyDriver, claim, device, preparer


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    engine = place.engine()
    for container in engine.containers():
        engine.remove(container.id)


@pytest.fixture
def node(place: Workplace) -> Preparer:
    """The node agent of that host: a toy is one of its GPUs."""
    units = {f"toy-{gpu.index}": gpu.units for gpu in place.inventory.gpus()}
    driver = ToyDriver(place.root / "effects", units, units=units)
    return preparer(place.root, driver, database=place.database)


def test_a_run_leaves_prepared_devices_alone(place: Workplace, node: Preparer) -> None:
    """It chooses among the others, and says whose they are when too few are left."""
    node.prepare(claim("u1", "toy-0", "toy-1"))
    node.prepare(claim("u2", device("toy-2", share="a")))
    node.prepare(claim("u3", device("toy-2", share="b"), device("toy-7", admin=True)))
    assert place.run(number=5).status == 0
    with pytest.raises(NotFreeError) as caught:
        place.run(number=6)
    text = str(caught.value)
    assert "6 wanted, 5 of 8 free" in text
    assert "GPU 0-1 prepared for claim default/claim-u1 since" in text
    assert "GPU 2 prepared for claim default/claim-u2 since" in text
    assert "GPU 7" not in text
    node.unprepare("u1")
    assert place.run(number=7).status == 0


def test_a_pod_is_refused_what_a_run_holds(place: Workplace, node: Preparer) -> None:
    """While the container lives; when it has ended, the next command or the next run frees the device."""
    place.run(("sleep", "1000"), number=8, detach=True)
    with pytest.raises(DeviceInUseError, match=r"device toy-3 is held by hold h\w+ of .+ \(sleep 1000\)"):
        node.prepare(claim("u1", "toy-3"))
    place.clean()
    place.reconcile()
    node.prepare(claim("u1", "toy-3"))


def test_a_waiting_run_gets_what_a_pod_gives_back(place: Workplace, node: Preparer) -> None:
    """The end of a claim wakes who waits, like the end of a hold."""
    node.prepare(claim("u1", *(f"toy-{number}" for number in range(8))))
    child = place.fork(place.order(number=8, wait=60))
    until(lambda: bool(place.tickets()))
    node.unprepare("u1")
    assert wait_for(child) == 0


def test_reconciling_keeps_claims_and_their_specs(place: Workplace, node: Preparer) -> None:
    """They belong to the node agent; `draht ps` doesn't end them, whatever runs or doesn't."""
    answer = node.prepare(claim("u1", "toy-0"))
    found = place.reconcile()
    assert found.problems == found.claims == []
    assert node.prepared() == [answer]
    assert place.specs() == ["k8s.toy.example.com-claim_u1.json"]


def test_a_run_brings_lost_claims_back_before_it_chooses(place: Workplace, node: Preparer) -> None:
    """The database was deleted: a pod's device must not look free, even if the agent isn't there."""
    node.prepare(claim("u1", "toy-0"))
    for path in (place.root / "state").glob("state.db*"):
        path.unlink()
    with pytest.raises(NotFreeError, match="GPU 0 prepared for claim default/claim-u1"):
        place.run(number=8)
    assert "note: read from CDI specs, since the database had lost them: claim default/claim-u1" in place.said
    assert [(one.state, one.adopted) for one in rows(place)] == [("prepared", True)]


def rows(place: Workplace) -> list[Claim]:
    """The claims in the database."""
    with place.database.transaction() as tx:
        return all_claims(tx)


def test_status_names_claims(place: Workplace, node: Preparer) -> None:
    """As values: namespace, name, driver, devices and state."""
    node.prepare(claim("u1", "toy-0", "toy-1"))
    (one,) = status(place.database).claims
    assert (one.namespace, one.name, one.uid, one.driver) == ("default", "claim-u1", "u1", "toy.example.com")
    assert (one.state, one.devices) == ("prepared", ("toy-0", "toy-1"))
    assert one.since.endswith("Z")


@pytest.mark.parametrize("text", ["u1", "claim-u1", "default/claim-u1"])
def test_release_refuses_a_claim_and_says_what_to_do(place: Workplace, node: Preparer, text: str) -> None:
    """It ends with its pod; the hint names the command that shows the pod."""
    node.prepare(claim("u1", "toy-0"))
    with pytest.raises(SelectionError, match="is claim default/claim-u1, which was prepared for a pod") as caught:
        find(place.holds(), text, rows(place))
    assert "kubectl describe resourceclaim -n default claim-u1" in str(caught.value.hint)
    with pytest.raises(SelectionError, match="there is no hold `x`"):
        find(place.holds(), "x", rows(place))


def test_the_commands_show_and_refuse_claims(place: Workplace, node: Preparer, monkeypatch: pytest.MonkeyPatch) -> None:
    """`draht ps` has a table of claims, and their part of the trail; `draht release` refuses."""
    monkeypatch.setattr(local, "local_host", lambda _say: place.host())
    node.prepare(claim("u1", "toy-0", "toy-1"))
    shown = CliRunner().invoke(ps, [], catch_exceptions=False).output
    head, row = [line.split() for line in shown.splitlines() if "claim-u1" in line or line.startswith("CLAIM")]
    assert head == ["CLAIM", "STATE", "DEVICES", "DRIVER", "UID", "SINCE"]
    assert row[:6] == ["default/claim-u1", "prepared", "toy-0,", "toy-1", "toy.example.com", "u1"]
    found = json.loads(CliRunner().invoke(ps, ["-o", "json"], catch_exceptions=False).output)
    assert [one["name"] for one in found["claims"]] == ["claim-u1"]
    trail = CliRunner().invoke(ps, ["--audit"], catch_exceptions=False).output
    assert [line.split()[2] for line in trail.splitlines()[1:]] == ["preparing", "prepared"]
    with pytest.raises(SelectionError, match="prepared for a pod"):
        CliRunner().invoke(release_command, ["default/claim-u1"], catch_exceptions=False)


def test_claims_of_the_machine_count_for_users_with_an_own_database(place: Workplace, node: Preparer) -> None:
    """Who has an own database sees the units that the machine's has, and by what."""
    node.prepare(claim("u1", "toy-0"))
    with place.database.transaction() as tx:
        holds.insert(tx, hold("h1"), {"x"})
    found = _machine_holds(place.root / "user", place.root / "state")
    state = place.root / "state"
    assert found == {
        "GPU-0/0": f"claim default/claim-u1 ({state})",
        "GPU-0/1": f"claim default/claim-u1 ({state})",
        "x": f"ada (h1 in {state})",
    }


def test_settle_tells_what_came_back(place: Workplace, node: Preparer) -> None:
    """`draht ps` says it, too."""
    node.prepare(claim("u1", "toy-0"))
    for path in (place.root / "state").glob("state.db*"):
        path.unlink()
    settle(place.host())
    assert "note: read from CDI specs, since the database had lost them: claim default/claim-u1" in place.said
