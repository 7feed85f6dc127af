from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from draht.driver.process import ProcessIdentity, boot_id, condition, identify


def test_this_process_is_alive() -> None:
    """A process that runs is identified by pid, start time and boot, and counts as alive."""
    me = identify(os.getpid())
    assert me is not None
    assert (me.pid, me.boot_id) == (os.getpid(), boot_id())
    assert condition(me) == "alive"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"started": 1}, "another process has the number now"),
        ({"boot_id": "another"}, "the machine was restarted"),
        ({"pid": 0}, "no process has that number"),
    ],
)
def test_reused_numbers_are_dead(change: dict[str, object], why: str) -> None:
    """The number alone proves nothing."""
    me = identify(os.getpid())
    assert me is not None
    fields = {"pid": me.pid, "started": me.started, "boot_id": me.boot_id, **change}
    assert condition(ProcessIdentity(**fields)) == "dead", why  # type: ignore[arg-type]


def test_life_of_a_child() -> None:
    """A child is alive, stopped, alive, and dead as soon as it has ended, before anybody has waited for it."""
    child = subprocess.Popen(["sleep", "60"])
    try:
        identity = identify(child.pid)
        assert identity is not None
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert condition(identity) == "stopped"
        os.kill(child.pid, signal.SIGCONT)
        assert condition(identity) == "alive"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert condition(identity) == "dead"
    finally:
        child.kill()
        child.wait()
    assert identify(child.pid) is None


def test_hidden_process_is_not_taken_for_dead(tmp_path: Path) -> None:
    """Where procfs hides a process that exists (hidepid), it isn't judged dead."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("b\n")
    hidden = ProcessIdentity(pid=os.getpid(), started=5, boot_id="b")
    stat = tmp_path / str(os.getpid()) / "stat"

    def kill(pid: int, number: int) -> None:
        raise PermissionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "kill", kill)
        assert condition(hidden, tmp_path) == "alive"
    stat.parent.mkdir()
    stat.write_text(f"{os.getpid()} (a ) name) S " + " ".join(["0"] * 18) + " 5 0\n")
    assert condition(hidden, tmp_path) == "alive"
