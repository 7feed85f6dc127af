"""What can go wrong between draht and the kubelet; the hierarchy is drawn in the package's docstring."""

from __future__ import annotations

from draht.api.errors import DrahtError

__all__ = [
    "ClaimGoneError",
    "ClaimReferenceError",
    "ClaimReplacedError",
    "DevicePluginError",
    "DriverRegisteredError",
    "KubeletError",
    "NodeError",
    "SocketError",
]


class NodeError(DrahtError):
    """Any failure of this package."""


class SocketError(NodeError):
    """A socket can't be made where it has to be."""


class DriverRegisteredError(SocketError):
    """Another plugin serves this driver's name on this node; two would answer for the same claims."""


class ClaimReferenceError(NodeError):
    """What the kubelet asks for isn't what the API server has."""


class ClaimGoneError(ClaimReferenceError):
    """The claim doesn't exist any more."""


class ClaimReplacedError(ClaimReferenceError):
    """The claim was deleted, and another one was made with its name."""


class DevicePluginError(NodeError):
    """Devices were asked for that the plugin can't give."""


class KubeletError(NodeError):
    """The kubelet can't be reached, or refuses what it is asked for."""
