"""Which optional parts of the resource API the allocator honours.

A release of Kubernetes is a value of `Features`: the allocator has one code for all of them. The table of releases is
that of upstream's feature gates at their defaults; two gates that upstream's allocator reads together
(DRADeviceBindingConditions and DRAResourceClaimDeviceStatus) are one member here as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from draht.allocator.errors import AllocatorError

__all__ = ["ALL", "NONE", "RELEASES", "Features"]


@dataclass(frozen=True, slots=True)
class Features:
    """Eleven switches, named as upstream's ``structured.Features`` (v0.37.2) in snake case; all off by default."""

    admin_access: bool = False
    compatibility_groups: bool = False
    consumable_capacity: bool = False
    derived_attributes: bool = False
    device_binding_and_status: bool = False
    device_taints: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = False
    prioritized_list: bool = False

    @property
    def experimental(self) -> bool:
        """Whether upstream decides with its experimental code, which it takes once a feature needs that.

        The code before it, which decides under the default gates of 1.36 and 1.37, knows nothing of
        ``skipNodeOperations``: it allocates such devices like any other and doesn't copy the field.
        """
        return (
            self.compatibility_groups
            or self.derived_attributes
            or self.list_type_attributes
            or self.optional_node_operations
        )

    @staticmethod
    def of_kubernetes(release: str) -> Features:
        """What a release of Kubernetes does when its feature gates are left alone.

        Args:
            release: ``1.32`` to ``1.37``.

        Raises:
            AllocatorError: The release isn't known.
        """
        try:
            return RELEASES[release.removeprefix("v")]
        except KeyError:
            raise AllocatorError(
                f"Kubernetes {release[:20]!r} is not known", hint=f"use one of {', '.join(RELEASES)}"
            ) from None


NONE: Final = Features()
"""The API without optional parts, as in 1.32."""

ALL: Final = Features(
    admin_access=True,
    compatibility_groups=True,
    consumable_capacity=True,
    derived_attributes=True,
    device_binding_and_status=True,
    device_taints=True,
    fractional_capacity_range=True,
    list_type_attributes=True,
    optional_node_operations=True,
    partitionable_devices=True,
    prioritized_list=True,
)
"""Everything that v0.37.2 knows, alpha included."""

RELEASES: Final = {
    "1.32": NONE,
    "1.33": NONE,
    "1.34": Features(admin_access=True, prioritized_list=True),
    "1.35": Features(admin_access=True, prioritized_list=True),
    "1.36": Features(
        admin_access=True,
        prioritized_list=True,
        partitionable_devices=True,
        device_taints=True,
        device_binding_and_status=True,
        consumable_capacity=True,
    ),
    "1.37": Features(
        admin_access=True,
        prioritized_list=True,
        partitionable_devices=True,
        device_taints=True,
        device_binding_and_status=True,
        consumable_capacity=True,
        fractional_capacity_range=True,
    ),
}
"""Features at the default gates of each release."""
