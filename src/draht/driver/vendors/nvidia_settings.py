"""Which parameters apply to which device of ``gpu.nvidia.com``, and which of them draht can't carry out.

Owns precedence and fit: defaults, then the class, then the claim, the later one wins; what names requests must fit
their devices, what names none applies where it fits. A setting that would have an effect which draht doesn't have yet
is refused. It is never ignored: a container that was promised a share would otherwise get a whole GPU, or be slowed
down by a neighbour.

Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.5.0-dev, ``cmd/gpu-kubelet-plugin/device_state.go``.
"""

from __future__ import annotations

from typing import Final

from draht.driver.framework import Allocated, ClaimDevices, Parameters
from draht.driver.vendors.nvidia_config import (
    ComputeDomainChannelConfig,
    ComputeDomainDaemonConfig,
    Config,
    Fault,
    GpuConfig,
    GpuSharing,
    MigDeviceConfig,
    MigDeviceSharing,
    TimeSlicingConfig,
    VfioDeviceConfig,
    faults,
    read,
    refuse,
)

__all__ = ["CONFIG_PATH", "settings", "unsupported", "where"]

CONFIG_PATH: Final = "status.allocation.devices.config"
_FITS: Final[dict[type, str]] = {GpuConfig: "gpu", MigDeviceConfig: "mig", VfioDeviceConfig: "vfio"}
_LATER: Final = "leave it out of the claim and its class: draht doesn't do this yet"


def where(parameters: Parameters) -> str:
    """The field of the claim that has these parameters."""
    return f"{CONFIG_PATH}[{parameters.index}].opaque.parameters"


def settings(claim: ClaimDevices) -> dict[str, Config]:
    """`Allocated.key` → what is set for that device; devices without parameters of their own are left out.

    Parameters that lose against later ones must be readable, as NVIDIA's driver wants it, but aren't judged.

    Raises:
        ParametersError: Parameters can't be read, don't fit the device they were written for, break a rule, or ask for
            something that draht doesn't do; everything is told at once.
    """
    readable: dict[int, Config | None] = {}
    found: list[Fault] = []
    for parameters in _distinct(claim):
        config, wrong = read(parameters.value, where=where(parameters))
        found += wrong
        if config is not None and type(config) not in _FITS:
            # Parameters of NVIDIA's other driver fit nothing here, and must not be passed over for that.
            found += unsupported(config, where=where(parameters))
        readable[parameters.index] = config if type(config) in _FITS else None
    chosen: dict[str, Config] = {}
    judged: set[int] = set()
    for device in claim.devices:
        for parameters in reversed(device.parameters):
            config = readable[parameters.index]
            if config is None:
                break
            if not parameters.requests and not _fits(config, device):
                continue
            if not _fits(config, device):
                message = (
                    f"a {config.kind} doesn't fit device {device.result.device} of request {device.result.request}, "
                    f"which is of type {_type(device) or 'unknown'}"
                )
                found.append(Fault(f"{where(parameters)}.kind", message, "name the requests that it is for"))
            elif parameters.index not in judged:
                judged.add(parameters.index)
                found += faults(config, where=where(parameters)) or unsupported(config, where=where(parameters))
            chosen[device.key] = config
            break
    if found:
        # A fault that several devices share is told once.
        each = list(dict.fromkeys(found))
        refuse(each, where=CONFIG_PATH if len({fault.where.partition("]")[0] for fault in each}) > 1 else _one(each))
    return chosen


def unsupported(config: Config, *, where: str) -> list[Fault]:
    """What a config asks for and draht doesn't do yet; nothing for settings that change nothing."""
    match config:
        case GpuConfig(sharing=GpuSharing(strategy="TimeSlicing", time_slicing_config=TimeSlicingConfig() as slices)):
            if slices.interval == "Default":
                return []
            message = f"the time-slicing interval {slices.interval} is asked for, and draht can't set intervals yet"
            path = "sharing.timeSlicingConfig.interval"
            return [Fault(f"{where}.{path}", message, "leave it out, or write Default")]
        case GpuConfig(sharing=GpuSharing()) | MigDeviceConfig(sharing=MigDeviceSharing(strategy="MPS")):
            return [Fault(f"{where}.sharing.strategy", "MPS is asked for, and draht can't start MPS yet", _LATER)]
        case VfioDeviceConfig():
            message = "a GPU for a virtual machine (VFIO) is asked for, and draht can't pass GPUs through yet"
            return [Fault(f"{where}.kind", message, _LATER)]
        case ComputeDomainChannelConfig() | ComputeDomainDaemonConfig():
            message = "a ComputeDomain is asked for, and draht can't set up IMEX domains yet"
            return [Fault(f"{where}.kind", message, _LATER)]
    return []


def _distinct(claim: ClaimDevices) -> list[Parameters]:
    by_index = {parameters.index: parameters for device in claim.devices for parameters in device.parameters}
    return [by_index[index] for index in sorted(by_index)]


def _fits(config: Config, device: Allocated) -> bool:
    return _FITS.get(type(config), "") == _type(device)


def _type(device: Allocated) -> str | None:
    attribute = None if device.offered is None else device.offered.device.attributes.get("type")
    return None if attribute is None else attribute.string


def _one(found: list[Fault]) -> str:
    """The parameters that all faults are about."""
    head, parameters, _ = found[0].where.partition(".opaque.parameters")
    return head + parameters
