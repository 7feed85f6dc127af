"""What ``draht node`` serves: the drivers, the device plugin and the labels that a command line asks for.

Owns the choice. Without ``--driver`` these are the drivers of the vendors whose GPUs the machine has; network functions
are served only where they are named, because draht moves no interface into a pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from draht import cdi
from draht.api.errors import DrahtError
from draht.cli.driver_file import load_driver
from draht.driver.claims.prepared import Places
from draht.driver.vendors.drivers import DRIVERS, AmdDriver, NetworkDriver
from draht.driver.vendors.health_file import HealthFile
from draht.driver.vendors.labels import gpu_labels
from draht.driver.vendors.plugin_split import Split
from draht.driver.vendors.slice_files import read_slices, slice_drivers
from draht.hardware import profiles
from draht.hardware.machine import MachineProvider
from draht.hardware.simulated import SimulatedProvider
from draht.node.node_labels import NodeLabels
from draht.node.plugin_resource import RESOURCES, PluginResource

if TYPE_CHECKING:
    from draht.driver.framework import Driver
    from draht.driver.vendors.inventory_driver import InventoryDriver
    from draht.hardware.inventory import Provider
    from draht.node.agent import Settings

__all__ = ["HEALTH", "Parts"]

HEALTH = "health.yaml"
"""File in the state directory that says how simulated devices are."""
_BUILT_IN = {driver.name: driver for driver in DRIVERS}


@dataclass(frozen=True, slots=True)
class Parts:
    """What an agent serves.

    Attributes:
        drivers: The drivers.
        resources: What the device plugin serves.
        labels: The node's labels, or None to leave them alone.
    """

    drivers: Sequence[Driver]
    resources: Sequence[PluginResource] = ()
    labels: NodeLabels | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        drivers: Sequence[str],
        profile: str | None,
        partitions: bool,
        shares: bool,
        slice_files: Sequence[str],
        device_plugin: str,
        labels: bool,
        **_others: Any,
    ) -> Parts:
        """What the options of ``draht node`` mean; see there.

        Raises:
            DrahtError: A profile, driver or file can't be used, or there is nothing to serve.
        """
        cache = cdi.Cache(cdi.DEFAULT_DIRECTORIES)
        provider: Provider = MachineProvider(cache)
        if profile is not None:
            provider = SimulatedProvider(profiles.load(profile), host=settings.node_name)
        inventory = provider.inventory()
        watch = HealthFile(settings.state_directory / HEALTH)
        splits = {vendor: Split.parse(device_plugin, vendor=vendor) for vendor in RESOURCES}
        present = {gpu.vendor for gpu in inventory.gpus()}
        if device_plugin and device_plugin != "all":
            vendors = [vendor for vendor in splits if vendor in present] or list(splits)
            splits[vendors[0]].check(inventory)

        def built_in(kind: type[InventoryDriver]) -> Driver:
            vendor = {AmdDriver: "amd", NetworkDriver: ""}.get(kind, "nvidia")
            return kind(
                provider,
                cache=cache,
                partitions=partitions,
                shares=shares,
                without=splits.get(vendor, Split()),
                watch=watch,
            )

        wanted = drivers or [f"gpu.{vendor}.com" for vendor in RESOURCES if vendor in present]
        served: list[Driver] = [
            built_in(_BUILT_IN[name]) if name in _BUILT_IN else load_driver(name) for name in wanted
        ]
        if slice_files:
            served += slice_drivers(read_slices(slice_files), watch=watch)
        resources = [
            _resource(settings, vendor, provider, splits[vendor], watch)
            for vendor in RESOURCES
            if device_plugin and vendor in present
        ]
        if not served and not resources:
            raise DrahtError(
                f"{inventory.machine} has no GPU that draht could serve",
                hint="--profile serves a simulated machine, --driver another vendor's driver",
            )
        twice = [name for name in {each.name for each in served} if sum(each.name == name for each in served) > 1]
        if twice:
            raise DrahtError(f"the driver {twice[0]} is asked for twice", hint="name each driver once")
        return cls(
            served, resources, NodeLabels(lambda: gpu_labels(provider.inventory())) if labels and present else None
        )


def _resource(settings: Settings, vendor: str, provider: Provider, split: Split, watch: HealthFile) -> PluginResource:
    files = settings.state_directory / "files" / RESOURCES[vendor].replace("/", "-")
    places = Places(
        cdi_directory=settings.cdi_directory,
        metadata_directory=settings.metadata_directory,
        files_directory=files,
    )
    return PluginResource(vendor, provider, which=split, watch=watch, places=places)
