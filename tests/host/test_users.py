"""Two users of one machine whose engines, as rootless ones do, show only their own containers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from draht.host.errors import NotOwnerError
from draht.host.release import find, release
from requirements import require
from running import GROUP, Workplace, until, wait_for

ADA, BOB = 1001, 1002


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that both can reach, with a state directory that belongs to their group."""
    require(os.geteuid() == 0, "becoming two users needs root")
    root = Path("/tmp") / f"draht-test-users-{os.getpid()}"
    for path, mode in ((root, 0o755), (root / "state", 0o2770), (root / "cdi", 0o2775)):
        path.mkdir()
        os.chown(path, 0, GROUP)
        path.chmod(mode)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def places(shared: Path) -> Iterator[tuple[Workplace, Workplace]]:
    """One database, one spec directory, an engine for each user."""
    found = []
    for user in (ADA, BOB):
        root = shared / str(user)
        root.mkdir()
        for name in ("state", "cdi"):
            (root / name).symlink_to(shared / name)
        (root / "engine").mkdir()
        for path in (root, root / "engine"):
            os.chown(path, user, GROUP)
        found.append(Workplace(root=root))
    yield found[0], found[1]
    for place in found:
        place.clean()


def test_what_one_user_holds_the_other_does_not_get(places: tuple[Workplace, Workplace]) -> None:
    """Bob can't see Ada's container, but he sees her hold, and that it has ended when its first process is gone."""
    ada, bob = places
    log = ada.root / "log"
    assert wait_for(ada.fork(ada.order(["sleep", "60"], number=8, detach=True), user=ADA)) == 0
    (held,) = ada.holds()
    assert held.uid == ADA
    bobs = bob.order(number=1)
    (bob.root / "log").touch()
    os.chown(bob.root / "log", BOB, GROUP)
    assert wait_for(bob.fork(bobs, user=BOB, log=bob.root / "log")) == 125
    assert "0 of 8 free" in (bob.root / "log").read_text()
    assert held.id in (bob.root / "log").read_text()
    ada.engine().remove(ada.engine().containers()[0].id)
    assert wait_for(bob.fork(bobs, user=BOB)) == 0
    assert ada.holds() == []
    assert not log.exists()


def test_nobody_frees_what_he_cannot_judge(places: tuple[Workplace, Workplace]) -> None:
    """Ada's draht died while her container was made: only she (or force) can know what became of it."""
    ada, bob = places
    assert wait_for(ada.fork(ada.order(["sleep", "60"], number=8), user=ADA, kill_at="marked-running")) == 137
    assert wait_for(bob.fork(bob.order(number=1), user=BOB)) == 125
    assert len(ada.holds()) == 1
    assert wait_for(ada.fork(ada.order(number=8), user=ADA)) == 0
    assert ada.holds() == []


def test_another_users_hold_is_released_by_force_only(places: tuple[Workplace, Workplace]) -> None:
    """Who may write the database may free any hold, if he says that he means it."""
    ada, bob = places
    assert wait_for(ada.fork(ada.order(["sleep", "60"], number=8, detach=True), user=ADA)) == 0
    state = bob.reconcile()
    held = find(bob.holds(), "h")
    host = replace(bob.host())
    with pytest.raises(NotOwnerError):
        release(host, held, state)
    release(host, held, state, force=True)
    assert bob.holds() == []
    until(lambda: [one.state for one in ada.engine().containers()] == ["running"])
    # What still runs is not forgotten: Ada's next command gives it its hold back.
    assert wait_for(ada.fork(ada.order(number=1), user=ADA)) == 125
    assert [one.id for one in ada.holds()] == [held.id]
