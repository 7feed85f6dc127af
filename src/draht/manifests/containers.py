"""Which requests' devices a container gets.

A container names entries of its pod's claims, and may narrow one to a single request; for a prioritised list that is
the request, never the alternative (KEP-4816). Its extended resources are requests of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from draht.api.core import Pod
from draht.manifests.claims import EXTENDED, PodClaim, containers, extended_request_name, extended_resources
from draht.manifests.errors import ManifestError
from draht.manifests.objects import Manifests

__all__ = ["container_requests"]


def container_requests(
    pod: Pod, container: str, claims: Sequence[PodClaim], manifests: Manifests
) -> tuple[tuple[PodClaim, str | None], ...]:
    """Each claim the container uses, with the one request it is narrowed to, or None for all of them.

    Raises:
        ManifestError: There is no such container, entry or request.
    """
    place, found = next(
        ((place, each) for place, each in enumerate(containers(pod)) if each.name == container), (0, None)
    )
    who = f"Pod {pod.metadata.namespace}/{pod.metadata.name}"
    if found is None:
        raise ManifestError(f"{who} has no container `{container}`")
    by_entry = {each.entry: each for each in claims}
    used: list[tuple[PodClaim, str | None]] = []
    for index, reference in enumerate(found.resources.claims):
        where = f"{who}: container {container}, resources.claims[{index}]"
        claim = by_entry.get(reference.name)
        if claim is None or reference.name == EXTENDED:
            names = ", ".join(name for name in by_entry if name != EXTENDED)
            raise ManifestError(
                f"the pod has no claim entry `{reference.name}`", where=where, hint=f"there are {names or 'none'}"
            )
        requests = [request.name for request in claim.claim.spec.devices.requests]
        if reference.request and reference.request not in requests:
            raise ManifestError(
                f"claim {claim.claim.metadata.name} has no request `{reference.request}`",
                where=where,
                hint=f"there are {', '.join(requests)}",
            )
        used.append((claim, reference.request or None))
    extended = by_entry.get(EXTENDED)
    if extended is not None:
        numbers = range(len(list(extended_resources(found, manifests))))
        used += [(extended, extended_request_name(place, number)) for number in numbers]
    return tuple(used)
