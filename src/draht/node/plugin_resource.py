"""An extended resource of one vendor's GPUs, served by a device plugin beside the DRA drivers.

Owns which GPUs they are and how they are. A GPU belongs to the device plugin or to DRA by the node's configuration, so
it is never given away twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from draht.api.errors import DrahtError
from draht.driver.claims.files import ClaimFiles
from draht.driver.claims.prepared import Places
from draht.driver.framework import Health
from draht.driver.vendors import plugin_devices, simulated
from draht.driver.vendors.preferred import preferred
from draht.hardware.inventory import Device, Inventory, Provider
from draht.node.kubelet.claim_work import in_thread
from draht.node.kubelet.device_plugin import DevicePlugin
from draht.node.kubelet.device_service import ContainerDevices, PluginDevice
from draht.node.kubelet.observation import Observer

__all__ = ["RESOURCES", "PluginResource"]

logger = logging.getLogger(__name__)

RESOURCES: Final[Mapping[str, str]] = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
"""Vendor → the extended resource of its whole GPUs."""
SECONDS: Final = 5.0
"""Between two looks at the GPUs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Seen:
    inventory: Inventory
    devices: Mapping[str, Device]
    unhealthy: Collection[str]


class PluginResource:
    """The GPUs of one vendor that are asked for by number.

    Args:
        vendor: A key of `RESOURCES`.
        provider: Says what the machine has.
        which: Inventory → ids of the devices that the device plugin gives away.
        watch: How the devices are, by the names under which they would be published.
        places: Where files for containers go.
        seconds: Between two looks.
    """

    def __init__(
        self,
        vendor: str,
        provider: Provider,
        *,
        which: Callable[[Inventory], Collection[str]],
        watch: Callable[[], Sequence[Health]] = tuple,
        places: Places,
        seconds: float = SECONDS,
    ) -> None:
        self.name = RESOURCES[vendor]
        self._vendor = vendor
        self._provider = provider
        self._which = which
        self._watch = watch
        self._places = places
        self._seconds = seconds
        self._seen: _Seen | None = None
        self._plugin: DevicePlugin | None = None
        self._trouble: str | None = None

    async def serve(self, kubelet: Path, observer: Observer) -> None:
        """Serve until cancelled, whatever becomes of the kubelet."""
        self._plugin = DevicePlugin(self.name, self._allocate, prefer=self._prefer, kubelet=kubelet, observer=observer)
        await self._look()
        async with self._plugin:
            while True:
                await asyncio.sleep(self._seconds)
                await self._look()

    def unready(self) -> list[str]:
        """Why the resource isn't of full use now, as sentences."""
        problem = self._plugin.problem if self._plugin is not None else "not started yet"
        return [f"{self.name}: {reason}" for reason in (problem, self._trouble) if reason]

    async def _look(self) -> None:
        try:
            self._seen = await in_thread(self._examine)
            self._trouble = None
        except (DrahtError, OSError) as error:
            if str(error) != self._trouble:
                logger.warning(str(error), extra={"driver": self.name})
            self._trouble = str(error)
            return
        assert self._plugin is not None
        self._plugin.set(
            PluginDevice(
                id=device.id,
                healthy=device.id not in self._seen.unhealthy,
                numa_nodes=() if device.numa_node is None else (device.numa_node,),
            )
            for device in self._seen.devices.values()
        )

    def _examine(self) -> _Seen:
        inventory = self._provider.inventory()
        chosen = self._which(inventory)
        gpus = [gpu for gpu in inventory.gpus() if gpu.vendor == self._vendor and gpu.id in chosen]
        written = (self._places.cdi_directory / plugin_devices.SPEC_FILE).exists()
        known = self._seen is not None and self._seen.inventory == inventory
        if inventory.simulated and not (known and written):
            ClaimFiles(self._places, self.name).write_shared(simulated.stub_files(gpus))
            directory, stubs = self._places.cdi_directory, self._places.files_directory
            plugin_devices.write_simulated(gpus, inventory, stubs=stubs, directory=directory)
        ill = {each.device for each in self._watch() if each.state == "Unhealthy"}
        unhealthy = {gpu.id for gpu in gpus if f"gpu-{gpu.index}" in ill}
        return _Seen(inventory=inventory, devices={gpu.id: gpu for gpu in gpus}, unhealthy=unhealthy)

    def _allocate(self, ids: Sequence[str]) -> ContainerDevices:
        assert self._seen is not None
        devices = [self._seen.devices[id_] for id_ in ids]
        return ContainerDevices(
            cdi_device_ids=plugin_devices.names(devices),
            environment=plugin_devices.environment(devices, self._seen.inventory),
        )

    def _prefer(self, available: Sequence[str], required: Sequence[str], size: int) -> Sequence[str]:
        assert self._seen is not None
        return preferred(available, required, size, self._seen.inventory)
