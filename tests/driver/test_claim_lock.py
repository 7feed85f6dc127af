"""One call at a time for a claim, and no file left of a claim that has ended."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from draht.driver.claims import lock as module
from draht.driver.claims.lock import claim_lock, locked_uids
from draht.driver.errors import ClaimBusyError, StateError


def test_claims_have_locks_of_their_own(tmp_path: Path) -> None:
    """Another claim, and the same claim of another driver, are free; the same isn't."""
    with claim_lock(tmp_path, "d", "u1", seconds=0):
        for driver, uid in (("d", "u2"), ("other", "u1")):
            with claim_lock(tmp_path, driver, uid, seconds=0):
                pass
        with pytest.raises(ClaimBusyError), claim_lock(tmp_path, "d", "u1", seconds=0):
            pass
    with claim_lock(tmp_path, "d", "u1", seconds=0) as forget:
        forget()
    assert locked_uids(tmp_path, "d") == {"u2"}
    assert locked_uids(tmp_path / "absent", "d") == set()


def test_who_waited_for_a_removed_file_waits_for_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that the waiter has opened is no lock any more once its file is gone."""
    opened, inside = threading.Event(), threading.Event()
    really_open = module._open

    def wait() -> None:
        with claim_lock(tmp_path, "d", "u1", seconds=60):
            inside.set()

    def tell(path: Path) -> int:
        handle = really_open(path)
        opened.set()
        return handle

    waiter = threading.Thread(target=wait)
    with ExitStack() as later:
        with claim_lock(tmp_path, "d", "u1", seconds=0) as forget:
            monkeypatch.setattr(module, "_open", tell)
            waiter.start()
            assert opened.wait(60)
            forget()
            later.enter_context(claim_lock(tmp_path, "d", "u1", seconds=0))
        # Long enough for a waiter that would take the old lock; whoever is right isn't hurried by it.
        assert not inside.wait(0.3)
    waiter.join(60)
    assert inside.is_set()


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    """With a next step."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(StateError, match="the lock of a claim can't be made") as caught,
        claim_lock(tmp_path / "file", "d", "u1", seconds=0),
    ):
        pass
    assert caught.value.hint
