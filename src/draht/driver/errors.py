"""What can go wrong with the machine's database and with claims; the hierarchy is drawn in the package's docstring."""

from __future__ import annotations

from draht.api.errors import DrahtError

__all__ = [
    "ClaimBusyError",
    "ClaimError",
    "DeviceInUseError",
    "DeviceMissingError",
    "DriverError",
    "DriverFailedError",
    "HeldError",
    "NewerSchemaError",
    "NotAllocatedError",
    "ParametersError",
    "PlacesError",
    "StateError",
    "StateLostError",
]


class DriverError(DrahtError):
    """Any failure of this package."""


class StateError(DriverError):
    """The machine's database can't be opened, read or written."""


class NewerSchemaError(StateError):
    """The database was written by a newer draht; it is left untouched."""


class StateLostError(StateError):
    """The database turned out to be unreadable during a transaction and has been moved aside."""


class HeldError(DriverError):
    """A unit was to be held that another hold has: the database itself refuses a double hold."""


class ClaimError(DriverError):
    """A claim can't be prepared or unprepared; the message reaches the events of the pod."""


class NotAllocatedError(ClaimError):
    """The claim has no allocation, or none of its devices are this driver's."""


class DeviceInUseError(ClaimError):
    """A device is prepared for another claim, or held by a container of ``draht run``; the message names it."""


class DeviceMissingError(ClaimError):
    """The driver doesn't offer an allocated device any more, or a file that it needs isn't there; see the message."""


class ParametersError(ClaimError):
    """Opaque parameters that the driver can't read or doesn't support; `where` is the field of the claim."""


class ClaimBusyError(ClaimError):
    """Another call has been working on the claim for too long."""


class DriverFailedError(ClaimError):
    """The driver's own code failed, in a way that it doesn't explain."""


class PlacesError(ClaimError):
    """A file that containers of the claim need can't be written or removed."""
