"""Which GPUs the device plugin gives away by number, and which are left to claims.

Owns reading ``--device-plugin all`` or ``--device-plugin 0,GPU-…,0000:3b:00.0``. The split is fixed for the life of the
agent and a GPU is on one side of it, so that the kubelet's two ways to devices never meet.
"""

from __future__ import annotations

from dataclasses import dataclass

from draht.driver.errors import DriverError
from draht.driver.vendors import nvidia
from draht.hardware.inventory import Device, Inventory
from draht.hardware.near import near

__all__ = ["Split"]


@dataclass(frozen=True, slots=True)
class Split:
    """GPUs of one vendor for the device plugin; call it with an inventory for their ids.

    Args:
        words: Index, UUID, PCI address or published name (``gpu-0``) of each; ``all`` for every GPU.
        vendor: Whose GPUs.
    """

    words: tuple[str, ...] = ()
    vendor: str = "nvidia"

    @classmethod
    def parse(cls, text: str, *, vendor: str = "nvidia") -> Split:
        """The split that a text means: words with commas between them, none for no GPU.

        Raises:
            DriverError: ``all`` stands beside other words.
        """
        words = tuple(dict.fromkeys(word for part in text.split(",") if (word := part.strip())))
        if "all" in words and len(words) > 1:
            raise DriverError(f"`{text}` names all GPUs and single ones", hint="write all, or the GPUs")
        return cls(words, vendor)

    def __call__(self, inventory: Inventory) -> frozenset[str]:
        """Ids of whole GPUs for the device plugin; a GPU that has gone is left out."""
        return frozenset(device.id for device in self._gpus(inventory) if self._means(device))

    def check(self, inventory: Inventory) -> None:
        """Make sure, before anything starts, that each word means a GPU.

        Raises:
            DriverError: One doesn't; the message says which.
        """
        names = [name for device in self._gpus(inventory) for name in _names(device)]
        for word in self.words:
            if word != "all" and word.lower() not in {name.lower() for name in names}:
                raise DriverError(
                    f"{inventory.machine} has no GPU {word} of {self.vendor}{near(word, names)}",
                    where="--device-plugin",
                    hint="see `draht devices` for what there is",
                )

    def _gpus(self, inventory: Inventory) -> list[Device]:
        return [device for device in inventory.gpus() if device.vendor == self.vendor]

    def _means(self, device: Device) -> bool:
        names = {name.lower() for name in _names(device)}
        return self.words == ("all",) or any(word.lower() in names for word in self.words)


def _names(device: Device) -> list[str]:
    """Everything that means a GPU."""
    names = [device.id, device.uuid, device.pci_address, None if device.index is None else str(device.index)]
    if device.vendor == "nvidia":
        names.append(nvidia.device_name(device))
    return list(dict.fromkeys(name for name in names if name))
