"""What can go wrong with the machine's database; the hierarchy is drawn in the package's docstring."""

from __future__ import annotations

from draht.api.errors import DrahtError

__all__ = ["DriverError", "HeldError", "NewerSchemaError", "StateError", "StateLostError"]


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
