"""Network functions from sysfs: SR-IOV virtual functions, and physical ones that have none.

Start it with ``draht node --driver nic.py``. With the standard attribute ``resource.kubernetes.io/pcieRoot`` a claim
can ask for a GPU of another driver and a NIC on one PCIe path. ``SYSFS_ROOT`` is a directory that has ``sys`` and
``proc``, where it isn't ``/``.
"""

import os

from draht import cdi
from draht.api.resource import Device, DeviceAttribute
from draht.driver.framework import ClaimDevices, Driver, Offer, Offered, Prepared
from draht.hardware import inventory
from draht.hardware.sysfs import SysfsProvider

ROOT = os.environ.get("SYSFS_ROOT", "/")


class Nic(Driver):
    """Tells a container which functions it has; CDI's ``netDevices`` would move their interfaces in."""

    name = "nic.example.com"
    addresses: dict[str, str]

    def discover(self) -> Offer:
        """The functions that can be given away as a whole."""
        found = SysfsProvider(ROOT).inventory()
        split = {device.parent for device in found.devices if device.kind == "vf"}
        functions = [each for each in found.devices if each.kind in {"nic", "vf"} and each.id not in split]
        offered = [Offered(device=published(each), units=each.units) for each in functions]
        self.addresses = {each.device.name: function.id for each, function in zip(offered, functions, strict=True)}
        return Offer.of(offered)

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """One variable for each function: ``NIC_pci_0000_18_00_0=0000:18:00.0``."""
        edits = {}
        for allocated in claim.devices:
            device = allocated.result.device
            variable = f"NIC_{device.replace('-', '_')}={self.addresses[device]}"
            edits[allocated.key] = cdi.ContainerEdits(env=(variable,))
        return Prepared(edits=edits)


def published(function: inventory.Device) -> Device:
    """A function in the words of a ResourceSlice; what isn't known is left out."""
    texts = {
        "resource.kubernetes.io/pciBusID": function.pci_address,
        "resource.kubernetes.io/pcieRoot": function.pcie_root,
        "interface": function.attributes.get("interface"),
    }
    attributes = {name: DeviceAttribute(string=str(value)) for name, value in texts.items() if value}
    attributes["virtual"] = DeviceAttribute(bool_=function.kind == "vf")
    return Device(name="pci-" + function.id.replace(":", "-").replace(".", "-"), attributes=attributes)
