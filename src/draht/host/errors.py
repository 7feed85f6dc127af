"""What stops `draht run`, beside what engines say (`draht.host.engine`)."""

from __future__ import annotations

from draht.api.errors import DrahtError

__all__ = [
    "HoldLostError",
    "HostError",
    "InterruptedRunError",
    "NotFreeError",
    "NotOwnerError",
    "OwnedError",
    "SelectionError",
]


class HostError(DrahtError):
    """Any failure of this package that isn't an engine's."""


class SelectionError(HostError):
    """What is asked for doesn't exist on this machine, free or not."""


class NotFreeError(HostError):
    """What is asked for exists but is taken, and the caller didn't want to wait (any longer)."""


class OwnedError(HostError):
    """A kubelet's plugin hands out the devices."""


class NotOwnerError(HostError):
    """A hold of somebody else."""


class HoldLostError(HostError):
    """The hold ended while its container was being made: somebody released it, or the database was lost."""


class InterruptedRunError(HostError):
    """A signal ended the run before its container was started."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"interrupted by signal {signal}")
        self.signal = signal
