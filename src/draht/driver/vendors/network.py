"""Network functions as devices of a ResourceSlice, with the names of dranet.

Owns device names and attributes of ``dra.net``, the driver that claims most often name beside a GPU. Source:
google/dranet, ``pkg/inventory`` and ``pkg/apis`` (2026). Putting an interface into a container is not draht's.
"""

from __future__ import annotations

from typing import Final

from draht.api.resource import Device as WireDevice
from draht.api.resource import DeviceAttribute
from draht.driver.vendors.nvidia import SIMULATED, text
from draht.hardware.inventory import Device, Inventory

__all__ = ["DRIVER", "device_name", "nic"]

DRIVER: Final = "dra.net"


def device_name(device: Device) -> str:
    """``pci-0000-18-00-0``: the PCI address with dashes."""
    return "pci-" + device.id.replace(":", "-").replace(".", "-")


def nic(device: Device, inventory: Inventory) -> WireDevice:
    """A physical or virtual network function."""
    texts = {
        "ifName": device.attributes.get("interface"),
        "rdmaDevice": device.attributes.get("rdmaDevice"),
        "pciVendor": device.attributes.get("vendorID"),
        "pciDevice": device.attributes.get("deviceID"),
        "resource.kubernetes.io/pciBusID": device.pci_address,
        "resource.kubernetes.io/pcieRoot": device.pcie_root,
    }
    attributes = {name: text(str(value)) for name, value in texts.items() if value}
    attributes["rdma"] = DeviceAttribute(bool_=bool(device.attributes.get("rdma")))
    attributes["isSriovVf"] = DeviceAttribute(bool_=device.kind == "vf")
    if device.numa_node is not None:
        attributes["numaNode"] = DeviceAttribute(int_=device.numa_node)
        attributes["resource.kubernetes.io/numaNode"] = DeviceAttribute(int_=device.numa_node)
    if inventory.simulated:
        attributes[SIMULATED] = DeviceAttribute(bool_=True)
    return WireDevice(name=device_name(device), attributes=attributes)
