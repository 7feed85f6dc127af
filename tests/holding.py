"""Values for tests about holds: short ways to make what the database stores."""

from __future__ import annotations

import os

from draht.driver.holds import HeldDevice, Hold
from draht.driver.process import ProcessIdentity, boot_id, identify

DEAD = ProcessIdentity(pid=0, started=0, boot_id=boot_id())


def myself() -> ProcessIdentity:
    """The process that runs the test."""
    me = identify(os.getpid())
    assert me is not None
    return me


def hold(
    identity: str, *, starter: ProcessIdentity | None = None, engine: str = "fake", uid: int | None = None
) -> Hold:
    """A hold of one device, just begun."""
    return Hold(
        id=identity,
        engine=engine,
        machine="test",
        simulated=True,
        devices=(HeldDevice(id=f"GPU-{identity}", label=f"GPU {identity}"),),
        command=("train", "--fast"),
        uid=os.getuid() if uid is None else uid,
        user="ada",
        starter=myself() if starter is None else starter,
        since=1000.0,
    )
