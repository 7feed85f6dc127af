"""The DRA drivers of the vendors: ``gpu.nvidia.com``, ``gpu.amd.com`` and ``dra.net``.

Owns their names, the parameters that each of them reads, and what a person is told when a device has no CDI spec. They
have the names of the vendors' own drivers, so that classes and claims written for these work unchanged; two drivers of
one name can't run on a node, and the kubelet plugin refuses to start beside another.
"""

from __future__ import annotations

from draht.driver.framework import ClaimDevices
from draht.driver.vendors import amd, network, nvidia
from draht.driver.vendors.inventory_driver import InventoryDriver
from draht.driver.vendors.nvidia_settings import settings

__all__ = ["DRIVERS", "AmdDriver", "NetworkDriver", "NvidiaDriver"]


class NvidiaDriver(InventoryDriver):
    """NVIDIA GPUs and their MIG instances, with the parameters of ``resource.nvidia.com/v1beta1``."""

    name = nvidia.DRIVER
    missing_spec_hint = "run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`"

    def check_parameters(self, claim: ClaimDevices) -> None:
        """Read parameters and refuse what isn't implemented yet; what is left changes nothing.

        Raises:
            ParametersError: Parameters can't be read, don't fit, or ask for something that draht doesn't do.
        """
        settings(claim)


class AmdDriver(InventoryDriver):
    """AMD GPUs; there are no parameters."""

    name = amd.DRIVER
    missing_spec_hint = "run `sudo amd-ctk cdi generate --output=/etc/cdi/amd.json`"


class NetworkDriver(InventoryDriver):
    """Network functions; draht moves none into a container unless a CDI spec does."""

    name = network.DRIVER
    missing_spec_hint = "write a CDI spec with a netDevices entry, or let dranet serve dra.net on this node"


DRIVERS: tuple[type[InventoryDriver], ...] = (NvidiaDriver, AmdDriver, NetworkDriver)
"""All of them, in the order in which they are published."""
