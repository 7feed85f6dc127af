"""Configuration that comes with an allocation: of the classes that were used, then of the claim.

Follows upstream (v0.37.2). A class contributes once, whichever requests use it. An entry of the claim is taken over
with the references it has, if one of them is a request or the alternative that was chosen; an entry that covers every
request loses its references, because none means all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from draht.api.resource import DeviceAllocationConfiguration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draht.api.resource import DeviceClass, ResourceClaimSpec

__all__ = ["configuration"]


def configuration(
    spec: ResourceClaimSpec, chosen: Sequence[tuple[str, DeviceClass | None]]
) -> tuple[DeviceAllocationConfiguration, ...]:
    """The configuration of an allocated claim.

    Args:
        spec: Of the claim.
        chosen: For each request of the claim the reference (``request`` or ``request/subrequest``) that was satisfied,
            and its class.
    """
    if not spec.devices.config and not any(device_class and device_class.spec.config for _, device_class in chosen):
        return ()
    names = [request.name for request in spec.devices.requests]
    references: dict[str, list[str]] = {}
    classes: dict[str, DeviceClass] = {}
    for reference, device_class in chosen:
        if device_class is not None:
            classes[device_class.metadata.name] = device_class
            references.setdefault(device_class.metadata.name, []).append(reference)
    found = [
        DeviceAllocationConfiguration(
            source="FromClass", requests=_cleared(references[name], names, chosen), opaque=config.opaque
        )
        for name, device_class in classes.items()
        for config in device_class.spec.config
    ]
    satisfied = {*names, *(reference for reference, _ in chosen)}
    found += [
        DeviceAllocationConfiguration(
            source="FromClaim", requests=_cleared(config.requests, names, chosen), opaque=config.opaque
        )
        for config in spec.devices.config
        if not config.requests or any(reference in satisfied for reference in config.requests)
    ]
    return tuple(found)


def _cleared(
    requests: Sequence[str], names: Sequence[str], chosen: Sequence[tuple[str, DeviceClass | None]]
) -> tuple[str, ...]:
    listed = set(requests)
    covers = all(name in listed or reference in listed for name, (reference, _) in zip(names, chosen, strict=True))
    return () if covers else tuple(requests)
