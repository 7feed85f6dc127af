"""What an allocated claim holds: devices, configuration, users, device states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from draht.api.core.scheduling import NodeSelector
from draht.api.meta import Condition
from draht.api.resource.selector import DeviceConfiguration, DeviceToleration
from draht.api.wire import QuantityValue, Time, Wire

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceRequestAllocationResult",
    "NetworkDeviceData",
    "ResourceClaimConsumerReference",
    "ResourceClaimStatus",
]


class DeviceRequestAllocationResult(Wire, frozen=True, kw_only=True):
    """One device given to one request (``request`` or ``request/subrequest``)."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: Mapping[str, QuantityValue] = field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(DeviceConfiguration, frozen=True, kw_only=True):
    """Configuration that came with an allocation, from the class or from the claim."""

    source: str
    requests: tuple[str, ...] = ()


class DeviceAllocationResult(Wire, frozen=True, kw_only=True):
    """Devices given, and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Wire, frozen=True, kw_only=True):
    """What was given, and on which nodes it can be used."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class ResourceClaimConsumerReference(Wire, frozen=True, kw_only=True):
    """Who may use the claim, usually a pod."""

    api_group: str = ""
    resource: str
    name: str
    uid: str


class NetworkDeviceData(Wire, frozen=True, kw_only=True):
    """Addresses of a network device."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Wire, frozen=True, kw_only=True):
    """What the driver says about one allocated device."""

    driver: str
    pool: str
    device: str
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Any = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """Allocation, users and device states of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()
