"""Skeleton."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ContainerDevices", "DevicePlugin", "PluginDevice"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PluginDevice:
    """One device of an extended resource."""

    id: str
    healthy: bool = True
    numa_nodes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerDevices:
    """What one container gets."""

    cdi_device_ids: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


Allocate = Callable[[Sequence[str]], ContainerDevices]
"""IDs of one container, in the kubelet's order → what it gets; blocking, called from a thread."""
Prefer = Callable[[Sequence[str], Sequence[str], int], Sequence[str]]
"""(available IDs, those that must be among them, how many) → the best set; pure and quick."""


class DevicePlugin:
    """An extended resource as the kubelet sees it."""

    def __init__(
        self,
        resource_name: str,
        allocate: Allocate,
        *,
        prefer: Prefer | None = None,
        kubelet: Path = Path("/var/lib/kubelet"),
        interval: float = 1.0,
    ) -> None:
        raise NotImplementedError

    registered: bool
    problem: str | None

    def set(self, devices: Iterable[PluginDevice]) -> None:
        """Replace the list; open streams see it at once. From the event loop's thread."""
        raise NotImplementedError

    async def start(self) -> None:
        """Serve, and register as soon as and as often as the kubelet is there."""
        raise NotImplementedError

    async def stop(self) -> None:
        """End the streams and remove the socket."""
        raise NotImplementedError
