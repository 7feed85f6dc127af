"""A driver whose agent can be stopped, killed and rebooted at a chosen moment, by files in the directory ``$STEERED``.

It is given to ``draht node`` as a file, so the agent is the one that people run; only this file makes it breakable:

- ``wait-in-prepare``: while it is there, preparing doesn't get on.
- ``die-at-STEP``: the agent kills itself at that step of a claim, once (`draht.driver.claims.preparation`).
- ``boot``: an id of another boot; it takes the next start to notice.
- ``node``: the device node without which the device ``node-0`` can't be prepared.
- ``effects/<uid>``: what the driver has prepared; these files are its effects.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partialmethod
from pathlib import Path

from draht import cdi
from draht.api.resource import Device, DeviceAttribute
from draht.driver.claims.preparation import Preparer
from draht.driver.framework import ClaimDevices, Driver, Offer, Offered, Prepared

ROOT = Path(os.environ["STEERED"])


class Steered(Driver):
    """Four devices without anything, and one that needs a device node."""

    name = "steered.example.com"

    def discover(self) -> Offer:
        """The same devices at every look."""
        plain = [Offered(device=_device("plain", number)) for number in range(4)]
        return Offer.of([*plain, Offered(device=_device("node", 0), paths=(str(ROOT / "node"),))])

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """A file as effect, and the name of the device as a variable."""
        effects = ROOT / "effects"
        effects.mkdir(exist_ok=True)
        (effects / claim.uid).touch()
        while (ROOT / "wait-in-prepare").exists():
            time.sleep(0.02)
        edits = {each.key: cdi.ContainerEdits(env=(f"STEERED={each.result.device}",)) for each in claim.devices}
        return Prepared(edits=edits)

    def unprepare(self, claim: ClaimDevices) -> None:
        """Remove the file."""
        (ROOT / "effects" / claim.uid).unlink(missing_ok=True)


def _device(kind: str, number: int) -> Device:
    attributes = {"kind": DeviceAttribute(string=kind), "draht.dev/simulated": DeviceAttribute(bool_=True)}
    return Device(name=f"{kind}-{number}", attributes=attributes)


def step(name: str) -> None:
    """Die here, if that is wanted."""
    wish = ROOT / f"die-at-{name}"
    if wish.exists():
        wish.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


BOOT = ROOT / "boot"
# The command has no such parameters, and needs none; whoever writes a driver file can reach everything.
setattr(  # noqa: B010 - an assignment to a method is what mypy forbids
    Preparer,
    "__init__",
    partialmethod(Preparer.__init__, steps=step, **({"boot": BOOT.read_text()} if BOOT.exists() else {})),
)
