"""The DeviceClasses that claims for these devices name.

Owns the classes that NVIDIA's, AMD's and dranet's installations bring, from ``gpu.nvidia.com`` to ``dra.net``, so that
a claim runs without a cluster. A class given by the user replaces the one here.
"""

from __future__ import annotations

from functools import cache

from draht.api.meta import ObjectMeta
from draht.api.resource import CELDeviceSelector, DeviceClass, DeviceClassSpec, DeviceSelector
from draht.driver.vendors import amd, network, nvidia

__all__ = ["device_classes"]


@cache
def device_classes() -> tuple[DeviceClass, ...]:
    """All classes, sorted by name."""
    return (
        _class("dra.net", f'device.driver == "{network.DRIVER}"'),
        _class("gpu.amd.com", f'device.driver == "{amd.DRIVER}"', extended_resource="amd.com/gpu"),
        _class("gpu.nvidia.com", _nvidia("gpu"), extended_resource="nvidia.com/gpu"),
        _class("mig.nvidia.com", _nvidia("mig")),
        _class("vfio.gpu.nvidia.com", _nvidia("vfio")),
    )


def _nvidia(kind: str) -> str:
    return f'device.driver == "{nvidia.DRIVER}" && device.attributes["{nvidia.DRIVER}"].type == "{kind}"'


def _class(name: str, expression: str, *, extended_resource: str | None = None) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(
            selectors=(DeviceSelector(cel=CELDeviceSelector(expression=expression)),),
            extended_resource_name=extended_resource,
        ),
    )
