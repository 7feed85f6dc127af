"""The opaque parameters of NVIDIA's DRA drivers: ``resource.nvidia.com/v1beta1``, read strictly.

Owns their shape, their defaults and the rules between their values, so that a claim written for NVIDIA's driver is
read, or refused, as there. A person sees every problem at once, each with the field of the claim. Which parameters
apply to which device, and which of them draht can't carry out, is `draht.driver.vendors.nvidia_settings`.

Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.5.0-dev, ``api/nvidia.com/resource/v1beta1``. Two differences: what
that driver refuses only when it carries parameters out (settings of the strategy that wasn't chosen, limits of pinned
memory, keys of devices, allocation modes) is refused here with everything else, and a ``timeSlicingConfig`` without
``interval`` means the default, where that driver ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

import msgspec
from msgspec import field
from msgspec.structs import replace

from draht.api import yaml
from draht.api.quantity import Quantity
from draht.api.reader.shape import shape
from draht.api.reader.strict import Walker
from draht.api.wire import Int32, QuantityValue, Wire
from draht.driver.errors import ParametersError
from draht.hardware.near import near

__all__ = [
    "API_VERSION",
    "KINDS",
    "ComputeDomainChannelConfig",
    "ComputeDomainDaemonConfig",
    "Config",
    "Fault",
    "GpuConfig",
    "GpuSharing",
    "IOMMUConfig",
    "MigDeviceConfig",
    "MigDeviceSharing",
    "MpsConfig",
    "TimeSlicingConfig",
    "VfioDeviceConfig",
    "faults",
    "read",
    "refuse",
]

API_VERSION: Final = "resource.nvidia.com/v1beta1"
MAX_BYTES: Final = 10 * 1024
"""Longest parameters that an API server takes (``OpaqueParametersMaxLength``)."""
_SHOWN: Final = 8
_LEAST_LIMIT: Final = 1 << 20
_DEVICE: Final = re.compile(r"[0-9]{1,4}|(GPU|MIG)-[0-9a-fA-F-]{1,60}")
_STRATEGIES: Final = ("TimeSlicing", "MPS")
_INTERVALS: Final = ("Default", "Short", "Medium", "Long")
_POLICIES: Final = ("LegacyOnly", "PreferIommuFD")
_MODES: Final = ("Single", "All")


class TimeSlicingConfig(Wire, frozen=True, kw_only=True):
    """How long a process runs before the next one has its turn: ``Default``, ``Short``, ``Medium`` or ``Long``."""

    interval: str | None = None


class MpsConfig(Wire, frozen=True, kw_only=True):
    """Settings of an MPS control daemon.

    Attributes:
        default_active_thread_percentage: Share of the multiprocessors that a client may use, 0 to 100.
        default_pinned_device_memory_limit: Memory that a client may use on each device, at least 1 Mi.
        default_per_device_pinned_memory_limit: The same by index among the claim's devices, or by UUID.
        multi_user: Users with different ids share one daemon.
    """

    default_active_thread_percentage: Int32 | None = None
    default_pinned_device_memory_limit: QuantityValue | None = None
    default_per_device_pinned_memory_limit: Mapping[str, QuantityValue] = field(default_factory=dict)
    multi_user: bool | None = None


class GpuSharing(Wire, frozen=True, kw_only=True):
    """How processes share a GPU: ``TimeSlicing`` or ``MPS``, with the settings of the one that was chosen."""

    strategy: str
    time_slicing_config: TimeSlicingConfig | None = None
    mps_config: MpsConfig | None = None


class MigDeviceSharing(Wire, frozen=True, kw_only=True):
    """How processes share a MIG instance; ``TimeSlicing`` is accepted and changes nothing."""

    strategy: str
    mps_config: MpsConfig | None = None


class IOMMUConfig(Wire, frozen=True, kw_only=True):
    """Which IOMMU interface a virtual machine gets, and whether its control node comes with it."""

    backend_policy: str = ""
    enable_api_device: bool | None = field(default=None, name="enableAPIDevice")


class _Config(Wire, frozen=True, kw_only=True):
    api_version: str = API_VERSION
    kind: str = ""


class GpuConfig(_Config, frozen=True, kw_only=True):
    """Parameters of a whole GPU."""

    sharing: GpuSharing | None = None


class MigDeviceConfig(_Config, frozen=True, kw_only=True):
    """Parameters of a MIG instance."""

    sharing: MigDeviceSharing | None = None


class VfioDeviceConfig(_Config, frozen=True, kw_only=True):
    """Parameters of a GPU that a virtual machine gets."""

    iommu: IOMMUConfig | None = None


class ComputeDomainChannelConfig(_Config, frozen=True, kw_only=True):
    """Which ComputeDomain an IMEX channel belongs to; the ``allocationMode`` is ``Single`` or ``All``."""

    domain_id: str = field(name="domainID")
    allocation_mode: str = ""


class ComputeDomainDaemonConfig(_Config, frozen=True, kw_only=True):
    """Which ComputeDomain an IMEX daemon belongs to."""

    domain_id: str = field(name="domainID")


Config: TypeAlias = (
    GpuConfig | MigDeviceConfig | VfioDeviceConfig | ComputeDomainChannelConfig | ComputeDomainDaemonConfig
)

KINDS: Final[Mapping[str, type[Config]]] = {
    kind.__name__: kind
    for kind in (
        GpuConfig,
        MigDeviceConfig,
        VfioDeviceConfig,
        ComputeDomainChannelConfig,
        ComputeDomainDaemonConfig,
    )
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with parameters: the field of the claim, a sentence, and the next step."""

    where: str
    message: str
    hint: str = ""


def refuse(found: list[Fault], *, where: str) -> NoReturn:
    """Raise everything that is wrong as one error.

    Args:
        found: At least one.
        where: The parameters that all of them are about.

    Raises:
        ParametersError: Always.
    """
    if len(found) == 1:
        raise ParametersError(found[0].message, where=found[0].where, hint=found[0].hint or None)
    shown = [f"{fault.where.removeprefix(where).lstrip('.')}: {fault.message}" for fault in found[:_SHOWN]]
    if len(found) > _SHOWN:
        shown.append(f"and {len(found) - _SHOWN} more")
    hint = next((fault.hint for fault in found if fault.hint), None)
    raise ParametersError(f"{len(found)} problems: {'; '.join(shown)}", where=where, hint=hint)


def read(value: Any, *, where: str) -> tuple[Config | None, list[Fault]]:
    """Parameters in the shape of their kind with their defaults, or None and everything that is wrong with them.

    Args:
        value: The object as it was decoded, or the JSON text that it came as.
        where: The field it stands in, ``status.allocation.devices.config[0].opaque.parameters``.
    """
    root = _node(value, where)
    if isinstance(root, Fault):
        return None, [root]
    names = {key.value: child for key, child in root.value if isinstance(key, yaml.ScalarNode)}
    version, kind = (_word(names.get(name)) for name in ("apiVersion", "kind"))
    found: list[Fault] = []
    if version != API_VERSION:
        known = f"parameters of this driver have apiVersion {API_VERSION}"
        found.append(Fault(f"{where}.apiVersion", f'"{version[:60]}" isn\'t the API of the parameters', known))
    if kind not in KINDS:
        found.append(Fault(f"{where}.kind", f'unknown kind "{kind[:60]}"{near(kind[:60], KINDS)}'))
    if found:
        return None, found
    walker = Walker(where)
    config = walker.value(root, shape(KINDS[kind]), where)
    found = [Fault(problem.path, problem.message, problem.hint or "") for problem in walker.problems]
    return (None, found) if found else (_with_defaults(config), [])


def faults(config: Config, *, where: str) -> list[Fault]:
    """Every rule between values that a config breaks."""
    return [Fault(f"{where}.{path}" if path else where, message, hint) for path, message, hint in _broken(config)]


def _with_defaults(config: Config) -> Config:
    """What isn't said, as NVIDIA's driver fills it in."""
    match config:
        case GpuConfig(sharing=GpuSharing(strategy="TimeSlicing") as sharing):
            interval = (sharing.time_slicing_config or TimeSlicingConfig()).interval
            chosen = TimeSlicingConfig(interval="Default" if interval is None else interval)
            return replace(config, sharing=replace(sharing, time_slicing_config=chosen))
        case GpuConfig(sharing=GpuSharing(strategy="MPS", mps_config=None) as sharing):
            return replace(config, sharing=replace(sharing, mps_config=MpsConfig()))
        case MigDeviceConfig(sharing=MigDeviceSharing(strategy="MPS", mps_config=None) as part):
            return replace(config, sharing=replace(part, mps_config=MpsConfig()))
        case VfioDeviceConfig():
            iommu = config.iommu or IOMMUConfig()
            policy = iommu.backend_policy or "LegacyOnly"
            return replace(
                config, iommu=IOMMUConfig(backend_policy=policy, enable_api_device=bool(iommu.enable_api_device))
            )
    return config


_Broken = tuple[str, str, str]


def _broken(config: Config) -> Iterator[_Broken]:
    match config:
        case GpuConfig(sharing=GpuSharing() as sharing):
            yield from _one_of(sharing.strategy, _STRATEGIES, "sharing.strategy")
            slices = sharing.time_slicing_config
            if slices is not None and sharing.strategy == "MPS":
                yield "sharing.timeSlicingConfig", "it doesn't go with the strategy MPS", "remove it"
            elif slices is not None and slices.interval is not None:
                yield from _one_of(slices.interval, _INTERVALS, "sharing.timeSlicingConfig.interval")
            yield from _mps(sharing.strategy, sharing.mps_config)
        case MigDeviceConfig(sharing=MigDeviceSharing() as sharing):
            yield from _one_of(sharing.strategy, _STRATEGIES, "sharing.strategy")
            yield from _mps(sharing.strategy, sharing.mps_config)
        case VfioDeviceConfig(iommu=IOMMUConfig() as iommu):
            yield from _one_of(iommu.backend_policy, _POLICIES, "iommu.backendPolicy")
        case ComputeDomainChannelConfig() | ComputeDomainDaemonConfig():
            if not config.domain_id:
                yield "domainID", "it must not be empty", "write the UID of the ComputeDomain"
            if isinstance(config, ComputeDomainChannelConfig) and config.allocation_mode:
                yield from _one_of(config.allocation_mode, _MODES, "allocationMode")


def _mps(strategy: str, mps: MpsConfig | None) -> Iterator[_Broken]:
    if mps is None:
        return
    path = "sharing.mpsConfig"
    if strategy == "TimeSlicing":
        yield path, "it doesn't go with the strategy TimeSlicing", "remove it, or choose the strategy MPS"
        return
    percentage = mps.default_active_thread_percentage
    if percentage is not None and not 0 <= percentage <= 100:
        yield f"{path}.defaultActiveThreadPercentage", f"{percentage} isn't between 0 and 100", ""
    if mps.default_pinned_device_memory_limit is not None:
        yield from _limit(mps.default_pinned_device_memory_limit, f"{path}.defaultPinnedDeviceMemoryLimit")
    for device, limit in mps.default_per_device_pinned_memory_limit.items():
        place = f"{path}.defaultPerDevicePinnedMemoryLimit[{device[:60]}]"
        if not _DEVICE.fullmatch(device):
            yield place, f'"{device[:60]}" is neither an index nor a UUID', "write 0, or GPU-…"
        yield from _limit(limit, place)


def _limit(limit: QuantityValue, path: str) -> Iterator[_Broken]:
    if Quantity.from_wire(limit) < Quantity.of(_LEAST_LIMIT):
        yield path, f"{limit} is less than 1Mi", "limits are whole mebibytes"


def _one_of(value: str, known: tuple[str, ...], path: str) -> Iterator[_Broken]:
    if value not in known:
        yield path, f'"{value[:60]}" isn\'t one of {", ".join(known)}', ""


def _node(value: Any, where: str) -> yaml.MappingNode | Fault:
    """The parameters as a node tree, with duplicates still in it where the text came along."""
    try:
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, msgspec.Raw | bytes | bytearray | memoryview):
            text = bytes(value)
            msgspec.json.decode(text)
        else:
            text = msgspec.json.encode(value)
        if len(text) > MAX_BYTES:
            return Fault(where, f"the parameters have {len(text)} bytes", f"an API server takes {MAX_BYTES}")
        roots = list(yaml.documents(text, source=where))
    except (RecursionError, ValueError, TypeError, yaml.YamlError) as error:
        reason = error.message if isinstance(error, yaml.YamlError) else str(error)
        return Fault(where, f"the parameters aren't JSON: {reason[:200]}")
    root = roots[0] if len(roots) == 1 else None
    if isinstance(root, yaml.MappingNode):
        return root
    return Fault(where, "the parameters aren't an object", f"write apiVersion: {API_VERSION} and a kind")


def _word(node: yaml.Node | None) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) else ""
