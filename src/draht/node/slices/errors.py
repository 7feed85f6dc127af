"""What can be wrong with the slices of a driver; each is shown as a problem and none stops the publisher.

Errors::

    DrahtError
    └── PublishError
        ├── DeviceRefusedError    the rules of the API, or this server, refuse a device; it alone is left out
        ├── DroppedFieldsError    the server keeps a slice without some of its fields: a feature gate is off
        ├── WithheldError         devices aren't published, because without those fields they would be given out twice
        └── TakenPoolError        another node publishes the pool
"""

from __future__ import annotations

from draht.api.errors import DrahtError

__all__ = ["DeviceRefusedError", "DroppedFieldsError", "PublishError", "TakenPoolError", "WithheldError"]


class PublishError(DrahtError):
    """Something that keeps the API server from showing what a driver offers."""


class DeviceRefusedError(PublishError):
    """A device breaks a rule; the others of its slice are published."""


class DroppedFieldsError(PublishError):
    """The server keeps a slice without some of its fields."""


class WithheldError(PublishError):
    """Devices that would be allocated twice if they were published as this server would keep them."""


class TakenPoolError(PublishError):
    """A pool that is for all nodes belongs to another node's slices."""
