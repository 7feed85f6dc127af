"""What the CDI specs of a machine say about a device that is there: the name to ask for, its edits, the files it needs.

Owns the choice of the name and the split of its edits into those of the whole spec and those of the device, so that a
claim's own spec says the same as the vendor's. Specs of claims, ours and those of other DRA drivers, are left out: they
repeat what has been prepared already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from draht import cdi
from draht.hardware.cdi import OWN_VENDOR
from draht.hardware.inventory import Device

__all__ = ["VendorEdits", "VendorSpecs"]


@dataclass(frozen=True, slots=True)
class VendorEdits:
    """What a vendor's spec says about one device.

    Attributes:
        name: The qualified name.
        spec: Path of the spec file.
        common: What the spec gives to each container that has any of its devices.
        own: What this device adds.
    """

    name: str
    spec: str
    common: cdi.ContainerEdits
    own: cdi.ContainerEdits


class VendorSpecs:
    """The vendors' specs in a cache. Not safe for several threads at once, as the cache isn't.

    Args:
        cache: CDI specs of the machine.
    """

    def __init__(self, cache: cdi.Cache) -> None:
        self._cache = cache

    def refresh(self) -> None:
        """Read what has changed in the directories."""
        self._cache.refresh()

    def find(self, device: Device) -> VendorEdits | None:
        """What is said about a device under its best name, or None if no spec offers it."""
        for name in sorted(device.cdi_names, key=lambda name: not name.endswith(f"={device.uuid}")):
            loaded = self._cache.device(name)
            if loaded is not None and not _is_of_claim(name):
                spec = loaded.spec
                return VendorEdits(name, str(spec.path), spec.spec.container_edits, loaded.device.container_edits)
        return None

    def paths(self, device: Device) -> tuple[str, ...]:
        """Everything on the host that the edits of a device name: nodes, mounted files, hooks."""
        found = self.find(device)
        return () if found is None else tuple(dict.fromkeys(_paths(cdi.collect([found.common, found.own]))))


def _paths(edits: cdi.ContainerEdits) -> Iterator[str]:
    for node in edits.device_nodes:
        yield node.host_path or node.path
    for mount in edits.mounts:
        # A tmpfs has a word where a bind mount has a path.
        if mount.host_path.startswith("/"):
            yield mount.host_path
    for hook in edits.hooks:
        yield hook.path


def _is_of_claim(name: str) -> bool:
    parsed = cdi.parse_qualified_name(name)
    return f".{parsed.vendor}".endswith(f".{OWN_VENDOR}") or (
        parsed.class_ == "claim" and parsed.vendor.startswith("k8s.")
    )
