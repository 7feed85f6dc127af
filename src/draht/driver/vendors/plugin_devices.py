"""What containers get for GPUs that the device plugin gives away by number, instead of claims.

Owns the CDI names behind an extended resource such as ``nvidia.com/gpu``. On a real machine they are those of the
vendor's spec. For a simulated machine there is one spec with all GPUs, because an allocation is not a claim: nobody
says when it ends, so nothing can be written for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from draht import cdi
from draht.driver.errors import DeviceMissingError
from draht.driver.vendors import simulated
from draht.driver.vendors.inventory_driver import named
from draht.hardware.inventory import Device, Inventory

__all__ = ["SPEC_FILE", "environment", "names", "write_simulated"]

VENDOR: Final = "plugin.draht.dev"
CLASS: Final = "gpu"
COMMON: Final = "common"
"""What a container gets once, however many of the GPUs it has."""
SPEC_FILE: Final = f"{VENDOR}-{CLASS}.json"


def write_simulated(devices: Sequence[Device], inventory: Inventory, *, stubs: Path, directory: Path) -> None:
    """Write the spec of simulated GPUs, or remove it if there are none.

    Args:
        devices: The GPUs.
        inventory: The machine.
        stubs: Directory that has `draht.driver.vendors.simulated.stub_files`.
        directory: Where the container runtime looks for specs.

    Raises:
        cdi.WriteError: It can't be written.
    """
    if not devices:
        cdi.remove_spec(directory, SPEC_FILE)
        return
    common = simulated.common_edits(devices, stubs=str(stubs), machine=inventory.machine)
    # Which GPUs there are to see depends on the container: those variables come with the allocation.
    shared = cdi.Device(name=COMMON, container_edits=msgspec.structs.replace(common, env=()))
    each = [cdi.Device(name=device.id, container_edits=simulated.device_edits(device)) for device in devices]
    spec = cdi.Spec(kind=f"{VENDOR}/{CLASS}", devices=(shared, *each))
    cdi.write_spec(msgspec.structs.replace(spec, cdi_version=cdi.minimum_version(spec)), directory, SPEC_FILE)


def names(devices: Sequence[Device]) -> tuple[str, ...]:
    """The qualified CDI names for a container that gets these GPUs.

    Raises:
        DeviceMissingError: No spec of the vendor describes one of them.
    """
    if devices and all(device.simulated for device in devices):
        return tuple(cdi.qualified_name(VENDOR, CLASS, name) for name in (COMMON, *(device.id for device in devices)))
    for device in devices:
        if not device.cdi_names:
            raise DeviceMissingError(
                f"no CDI spec on this machine describes {device.product or device.kind} {device.id}",
                where=device.id,
                hint="generate one with the vendor's tool, such as `nvidia-ctk cdi generate`",
            )
    return tuple(device.cdi_names[0] for device in devices)


def environment(devices: Sequence[Device], inventory: Inventory) -> dict[str, str]:
    """Variables that tell a container which GPUs it has; the vendor's spec brings its own on a real machine."""
    edits = [named(cdi.ContainerEdits(), f"gpu-{device.index}", device.id) for device in devices]
    if inventory.simulated:
        edits.append(simulated.common_edits(devices, stubs="", machine=inventory.machine))
    return dict(entry.split("=", 1) for edit in edits for entry in edit.env)
