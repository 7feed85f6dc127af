"""AMD GPUs as devices of a ResourceSlice, with the names of AMD's DRA driver.

Owns device names, attributes and capacities of ``gpu.amd.com``. Source: ROCm/k8s-gpu-dra-driver, snapshot 2025-10, with
the standard attribute names instead of its former ``pciAddr``. Compute partitions are not published.
"""

from __future__ import annotations

import re
from typing import Final

from draht.api.resource import Device as WireDevice
from draht.api.resource import DeviceAttribute, DeviceCapacity
from draht.driver.vendors.nvidia import SIMULATED, text
from draht.hardware.inventory import Device, Inventory

__all__ = ["DRIVER", "device_name", "gpu"]

DRIVER: Final = "gpu.amd.com"
_NODE = re.compile(r"/dev/dri/(?:card|renderD)(\d+)")


def device_name(device: Device) -> str:
    """``gpu-<card>-<render>`` from the numbers of its DRM nodes, else ``gpu-<index>``, else by its id."""
    numbers = [match[1] for node in device.device_nodes if (match := _NODE.fullmatch(node))]
    if numbers or device.index is not None:
        return "-".join(["gpu", *(numbers or [str(device.index)])])
    return f"gpu-{re.sub('[^a-z0-9]+', '-', device.id.lower())}"[:63].strip("-")


def gpu(device: Device, inventory: Inventory) -> WireDevice:
    """A whole GPU."""
    known = {
        "type": "amdgpu",
        "family": device.architecture,
        "productName": device.product,
        "deviceID": device.uuid or device.id,
        "resource.kubernetes.io/pciBusID": device.pci_address,
        "resource.kubernetes.io/pcieRoot": device.pcie_root,
    }
    attributes = {name: text(value) for name, value in known.items() if value}
    if device.numa_node is not None:
        attributes["resource.kubernetes.io/numaNode"] = DeviceAttribute(int_=device.numa_node)
    if inventory.simulated:
        attributes[SIMULATED] = DeviceAttribute(bool_=True)
    memory = device.memory_bytes
    capacity = {} if memory is None else {"memory": DeviceCapacity(value=f"{memory >> 20}Mi")}
    return WireDevice(name=device_name(device), attributes=attributes, capacity=capacity)
