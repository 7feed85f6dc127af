"""A DRA driver for what an inventory has, real or simulated: the part that is the same for every vendor.

Owns discovery and preparation. On a real machine containers get what the vendor's CDI spec says, so draht brings no
knowledge of libraries and device nodes of its own. On a simulated one they get what `draht.driver.vendors.simulated`
makes, which says that it is simulated. Nothing on the machine is changed, so there is nothing to undo.

Names, parameters and hints of the vendors are in `draht.driver.vendors.drivers`.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from draht import cdi
from draht.driver.errors import DeviceMissingError, DriverError, ParametersError
from draht.driver.framework import Allocated, ClaimDevices, Driver, Health, Offer, Prepared
from draht.driver.vendors import nvidia, offers, simulated
from draht.driver.vendors.nvidia_settings import where
from draht.driver.vendors.specs import VendorEdits, VendorSpecs
from draht.hardware.inventory import Device, Inventory, Provider

__all__ = ["InventoryDriver", "named", "refuse_parameters"]


def _nobody(_inventory: Inventory) -> Collection[str]:
    return ()


def _nothing() -> Sequence[Health]:
    return ()


class InventoryDriver(Driver):
    """A driver whose devices an inventory has. Subclasses give it a name and say which parameters they know.

    Args:
        provider: Says what the machine has.
        cache: CDI specs of the machine; not needed for a simulated one.
        partitions: Offer MIG placements beside whole GPUs; on a simulated machine only.
        shares: Let several claims share a GPU; on a simulated machine only.
        without: Inventory → ids of the devices that somebody else gives away, such as the device plugin.
        watch: How the devices are now; those of other drivers are left out.
    """

    missing_spec_hint: ClassVar[str] = "generate one with the vendor's tool"

    def __init__(
        self,
        provider: Provider,
        *,
        cache: cdi.Cache | None = None,
        partitions: bool = False,
        shares: bool = False,
        without: Callable[[Inventory], Collection[str]] = _nobody,
        watch: Callable[[], Sequence[Health]] = _nothing,
    ) -> None:
        self._provider = provider
        self._specs = None if cache is None else VendorSpecs(cache)
        self._partitions = partitions
        self._shares = shares
        self._without = without
        self._watch = watch
        self._lock = threading.Lock()
        self._inventory: Inventory | None = None
        self._devices: Mapping[str, Device] = {}

    @property
    def inventory(self) -> Inventory:
        """The machine as it was seen last."""
        if self._inventory is None:
            self.discover()
        assert self._inventory is not None
        return self._inventory

    def discover(self) -> Offer:
        """Look at the machine now.

        Raises:
            DriverError: Partitions or shares of real GPUs are to be offered.
        """
        with self._lock:
            inventory = self._provider.inventory()
            if not inventory.simulated and (self._partitions or self._shares):
                raise DriverError("partitions and shares of real GPUs can't be made yet", hint="offer whole GPUs only")
            if self._specs is not None:
                self._specs.refresh()
            found = offers.offer(
                inventory,
                self.name,
                partitions=self._partitions,
                shares=self._shares,
                without=self._without(inventory),
                paths=None if inventory.simulated or self._specs is None else self._specs.paths,
            )
            self._inventory, self._devices = inventory, found.devices
        return found.offer

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """Say what containers get.

        Raises:
            ParametersError: The claim brings parameters that the driver can't read or carry out.
            DeviceMissingError: A device isn't there any more, or no CDI spec describes it.
        """
        inventory = self.inventory
        self.check_parameters(claim)
        devices = {allocated.key: self._device(allocated) for allocated in claim.devices}
        prepared = self._simulated(devices, inventory) if inventory.simulated else self._real(devices)
        names = {allocated.key: allocated.result.device for allocated in claim.devices}
        edits = {key: named(edit, names[key], devices[key].id) for key, edit in prepared.edits.items()}
        return dataclasses.replace(prepared, edits=edits)

    def check_parameters(self, claim: ClaimDevices) -> None:
        """Refuse parameters; by default all of them, because parameters that nobody knows must not be passed over.

        Raises:
            ParametersError: There are some.
        """
        refuse_parameters(claim, self.name)

    def health(self) -> Sequence[Health]:
        """How the devices are, as far as the given source knows these; a GPU's partitions are as the GPU is."""
        told = {health.device: health for health in self._watch() if not health.pool}
        with self._lock:
            inventory, devices = self._inventory, self._devices
        found = []
        for name, device in devices.items():
            parent = inventory.device(device.parent or "") if inventory and device.kind == "mig" else None
            health = told.get(name) or (told.get(nvidia.device_name(parent)) if parent is not None else None)
            if health is not None:
                found.append(dataclasses.replace(health, device=name))
        return found

    def _device(self, allocated: Allocated) -> Device:
        result = allocated.result
        with self._lock:
            device = self._devices.get(result.device)
        if device is None or allocated.offered is None:
            raise DeviceMissingError(
                f"{self.name} doesn't offer device {result.device} any more",
                where=f"{result.pool}/{result.device}",
                hint="delete the pod: a new one is given devices that are there",
            )
        return device

    def _simulated(self, devices: Mapping[str, Device], inventory: Inventory) -> Prepared:
        common = simulated.common_edits(list(devices.values()), stubs=self.files, machine=inventory.machine)
        return Prepared(
            edits={key: simulated.device_edits(device) for key, device in devices.items()},
            common=common,
            files=simulated.stub_files(list(devices.values())),
        )

    def _real(self, devices: Mapping[str, Device]) -> Prepared:
        with self._lock:
            if self._specs is not None:
                self._specs.refresh()
            found = {key: self._described(device) for key, device in devices.items()}
        if len({each.spec for each in found.values()}) == 1:
            common = next(iter(found.values())).common
            return Prepared(edits={key: each.own for key, each in found.items()}, common=common)
        # What one spec gives to all its devices isn't for the devices of another.
        return Prepared(edits={key: cdi.collect([each.common, each.own]) for key, each in found.items()})

    def _described(self, device: Device) -> VendorEdits:
        found = None if self._specs is None else self._specs.find(device)
        if found is None:
            raise DeviceMissingError(
                f"no CDI spec on this machine describes {device.product or device.kind} {device.id}",
                where=device.id,
                hint=self.missing_spec_hint,
            )
        return found


def named(edits: cdi.ContainerEdits, name: str, identity: str) -> cdi.ContainerEdits:
    """Edits that also tell the container about the device: ``DRAHT_DEVICE_gpu_0=GPU-…``, a variable for each device."""
    return replace(edits, env=(*edits.env, f"DRAHT_DEVICE_{simulated.variable(name)}={identity}"))


def refuse_parameters(claim: ClaimDevices, driver: str) -> None:
    """Refuse every parameter.

    Raises:
        ParametersError: The claim brings one.
    """
    for device in claim.devices:
        for parameters in device.parameters:
            raise ParametersError(
                f"draht knows no parameters of {driver}",
                where=where(parameters),
                hint="leave the configuration out of the claim and its class",
            )
