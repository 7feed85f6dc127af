"""How devices are chosen and configured: selectors, opaque parameters, tolerations, amounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from draht.api.wire import Int64, QuantityValue, Wire

__all__ = [
    "CELDeviceSelector",
    "CapacityRequirements",
    "DeviceConfiguration",
    "DeviceDerivedAttribute",
    "DeviceSelector",
    "DeviceToleration",
    "OpaqueDeviceConfiguration",
]


class CELDeviceSelector(Wire, frozen=True, kw_only=True):
    """A CEL expression over ``device`` that must be true."""

    expression: str


class DeviceSelector(Wire, frozen=True, kw_only=True):
    """A test that a device must pass; exactly one member is set."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Wire, frozen=True, kw_only=True):
    """Parameters only the driver understands, kept as they came."""

    driver: str
    parameters: Any


class DeviceConfiguration(Wire, frozen=True, kw_only=True):
    """Configuration for allocated devices; exactly one member is set."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceToleration(Wire, frozen=True, kw_only=True):
    """Device taints that a request puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Wire, frozen=True, kw_only=True):
    """How much of a shared device's capacity a request needs."""

    requests: Mapping[str, QuantityValue] = field(default_factory=dict)


class DeviceDerivedAttribute(Wire, frozen=True, kw_only=True):
    """An attribute computed from the others with CEL (1.37 alpha)."""

    name: str
    expression: str
