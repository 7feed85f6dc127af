"""The claims of a pod: those it names, those made from templates, and the one its extended resources become.

Source: the resourceclaim controller and the scheduler's DynamicResources plugin at v1.37. Names that the controller
ends with random letters are known from the pod's status; in files without one they are the pod's and the entry's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from draht.api.core import Container, Pod
from draht.api.meta import ObjectMeta, OwnerReference
from draht.api.quantity import Quantity
from draht.api.resource import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from draht.manifests.errors import ManifestError
from draht.manifests.objects import Manifests

__all__ = ["EXTENDED", "PodClaim", "extended_request_name", "pod_claims"]

EXTENDED = "extended-resources"
"""Name of the entry that stands for a pod's extended resources."""
_POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_EXTENDED_CLAIM = "resource.kubernetes.io/extended-resource-claim"
_IMPLICIT = "deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim as one pod uses it.

    Args:
        entry: Name of the pod's entry, or `EXTENDED`.
        claim: The claim; made from a template if ``generated``.
        generated: It belongs to this pod alone and goes with it.
    """

    entry: str
    claim: ResourceClaim
    generated: bool


def pod_claims(pod: Pod, manifests: Manifests) -> tuple[PodClaim, ...]:
    """The claims of a pod in the order in which they are allocated.

    Raises:
        ManifestError: A claim or template isn't there, or an entry names both or neither.
    """
    found = [_entry(pod, index, manifests) for index in range(len(pod.spec.resource_claims))]
    found.append(_extended(pod, manifests))
    return tuple(each for each in found if each is not None)


def extended_request_name(container: int, number: int) -> str:
    """The request that a container's extended resource becomes; init containers are counted first."""
    return f"container-{container}-request-{number}"


def containers(pod: Pod) -> tuple[Container, ...]:
    """Init containers, then containers."""
    return (*pod.spec.init_containers, *pod.spec.containers)


def extended_resources(container: Container, manifests: Manifests) -> Iterator[tuple[str, DeviceClass, int]]:
    """Name, class and number of each extended resource of a container that a class stands for, sorted by name."""
    amounts = {**container.resources.requests, **container.resources.limits}
    for resource in sorted(amounts):
        device_class = _class_of(resource, manifests)
        if device_class is None:
            continue
        amount = Quantity(str(amounts[resource]))
        if amount != Quantity(str(amount.value())):
            raise ManifestError(
                f"container {container.name} asks for {amount} of {resource}", hint="ask for a whole number of devices"
            )
        if amount.value() > 0:
            yield resource, device_class, amount.value()


def unserved_resources(manifests: Manifests) -> dict[str, tuple[str, ...]]:
    """Extended resources that no class stands for and no node offers, with the pods that ask for them."""
    offered = {name for node in manifests.nodes.values() for name in (*node.status.capacity, *node.status.allocatable)}
    found: dict[str, dict[str, None]] = {}
    for (namespace, name), pod in manifests.pods.items():
        for container in containers(pod):
            for resource in {**container.resources.requests, **container.resources.limits}:
                domain, slash, _ = resource.partition("/")
                # Names without a domain, and those of Kubernetes, are the node's own resources.
                own = not slash or domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
                if resource in offered or (own and not resource.startswith(_IMPLICIT)):
                    continue
                if _class_of(resource, manifests) is None:
                    found.setdefault(resource, {})[f"{namespace}/{name}"] = None
    return {resource: tuple(pods) for resource, pods in found.items()}


def _entry(pod: Pod, index: int, manifests: Manifests) -> PodClaim | None:
    entry = pod.spec.resource_claims[index]
    namespace = pod.metadata.namespace
    where = f"Pod {namespace}/{pod.metadata.name}: spec.resourceClaims[{index}]"
    if (entry.resource_claim_name is None) == (entry.resource_claim_template_name is None):
        raise ManifestError("exactly one of resourceClaimName and resourceClaimTemplateName must be set", where=where)
    if entry.resource_claim_name is not None:
        claim = manifests.claims.get((namespace, entry.resource_claim_name))
        if claim is None:
            raise _missing("ResourceClaim", namespace, entry.resource_claim_name, where, list(manifests.claims))
        return PodClaim(entry.name, claim, generated=False)
    assert entry.resource_claim_template_name is not None
    made_for = next((each for each in pod.status.resource_claim_statuses if each.name == entry.name), None)
    if made_for is not None:
        if made_for.resource_claim_name is None:
            return None  # the controller found that the pod needs no claim for it
        existing = manifests.claims.get((namespace, made_for.resource_claim_name))
        if existing is not None:
            return PodClaim(entry.name, existing, generated=True)
    template = manifests.templates.get((namespace, entry.resource_claim_template_name))
    if template is None:
        raise _missing(
            "ResourceClaimTemplate", namespace, entry.resource_claim_template_name, where, list(manifests.templates)
        )
    made = _made(pod, entry.name, template.spec.spec)
    existing = manifests.claims.get((namespace, made.metadata.name))
    if existing is not None and existing.metadata.annotations.get(_POD_CLAIM_NAME) == entry.name:
        return PodClaim(entry.name, existing, generated=True)
    return PodClaim(entry.name, made, generated=True)


def _made(pod: Pod, entry: str, spec: ResourceClaimSpec, annotation: str = _POD_CLAIM_NAME) -> ResourceClaim:
    # Without a server the pod may have no uid, and then nothing can refer to it.
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=f"{pod.metadata.name}-{entry}",
            namespace=pod.metadata.namespace,
            annotations={annotation: "true" if annotation == _EXTENDED_CLAIM else entry},
            owner_references=(owner,) if pod.metadata.uid else (),
        ),
        spec=spec,
    )


def _extended(pod: Pod, manifests: Manifests) -> PodClaim | None:
    """The claim that stands for extended resources such as ``nvidia.com/gpu`` (KEP-5004)."""
    requests = [
        DeviceRequest(
            name=extended_request_name(place, number),
            exactly=ExactDeviceRequest(
                device_class_name=device_class.metadata.name, allocation_mode="ExactCount", count=count
            ),
        )
        for place, container in enumerate(containers(pod))
        for number, (_, device_class, count) in enumerate(extended_resources(container, manifests))
    ]
    if not requests:
        return None
    status = pod.status.extended_resource_claim_status
    existing = status and manifests.claims.get((pod.metadata.namespace, status.resource_claim_name))
    if existing:
        return PodClaim(EXTENDED, existing, generated=True)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return PodClaim(EXTENDED, _made(pod, EXTENDED, spec, _EXTENDED_CLAIM), generated=True)


def _class_of(resource: str, manifests: Manifests) -> DeviceClass | None:
    """The class behind an extended resource: the newest that names it, then the first by name; or the implicit one."""
    if resource.startswith(_IMPLICIT):
        return manifests.classes.get(resource.removeprefix(_IMPLICIT))
    named = [each for each in manifests.classes.values() if each.spec.extended_resource_name == resource]
    named.sort(key=lambda each: each.metadata.name)
    named.sort(key=lambda each: str(each.metadata.creation_timestamp or ""), reverse=True)
    return named[0] if named else None


def _missing(kind: str, namespace: str, name: str, where: str, known: list[tuple[str, str]]) -> ManifestError:
    here = sorted(other for space, other in known if space == namespace)
    elsewhere = sorted(space for space, other in known if other == name)
    if elsewhere:
        hint = f"there is one in namespace {', '.join(elsewhere)}; a pod can only name its own namespace's"
    else:
        hint = f"there are {', '.join(here[:8])}" if here else f"add the {kind} to the files"
    return ManifestError(f"there is no {kind} {namespace}/{name}", where=where, hint=hint)
