from __future__ import annotations

from pathlib import Path

import pytest

from draht.api.core import Pod
from draht.api.reader import read_files, read_text
from draht.driver.vendors.classes import device_classes
from draht.manifests import ManifestError, Manifests, PodClaim, container_requests, pod_claims

ROOT = Path(__file__).parents[2]
USE_CASES = sorted(path.name for path in (ROOT / "examples/use-cases").glob("[0-9]*"))

CLAIMS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec:
  devices:
    requests:
      - {name: a, exactly: {deviceClassName: gpu.nvidia.com}}
      - name: b
        firstAvailable:
          - {name: big, deviceClassName: gpu.nvidia.com, allocationMode: All}
          - {name: two, deviceClassName: gpu.nvidia.com, count: 2, tolerations: [{key: x}]}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: own, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.nvidia.com}]}}}
"""


def manifests(text: str) -> Manifests:
    """The objects of a text, with the classes of the shipped drivers."""
    result = read_text(text)
    assert not result.errors, result.errors
    return Manifests.of((each.object for each in result.objects), classes=device_classes())


def pod(claims: str = "", container: str = "", name: str = "p") -> str:
    """A pod with these entries and this container's resources."""
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, uid: u1}}
spec:
  resourceClaims: [{claims}]
  initContainers: [{{name: init, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
  containers: [{{name: main, resources: {{{container}}}}}, {{name: idle}}]
"""


def claims(text: str) -> tuple[PodClaim, ...]:
    """The claims of the only pod."""
    found = manifests(text)
    return pod_claims(the_pod(found), found)


def the_pod(found: Manifests) -> Pod:
    """The only pod."""
    (only,) = found.pods.values()
    return only


def test_requests_get_the_servers_defaults() -> None:
    """One device each, counted exactly, unless something else is asked for; tolerations compare for equality."""
    claim = manifests(CLAIMS).claims["default", "shared"]
    first, second = claim.spec.devices.requests
    assert first.exactly is not None
    assert (first.exactly.allocation_mode, first.exactly.count) == ("ExactCount", 1)
    assert [(each.allocation_mode, each.count) for each in second.first_available] == [("All", 0), ("ExactCount", 2)]
    assert second.first_available[1].tolerations[0].operator == "Equal"


def test_a_pods_claims_are_those_it_names_those_made_from_templates_and_its_extended_resources() -> None:
    """In the order of the entries; the generated ones belong to the pod; older versions are read as v1."""
    entries = "{name: x, resourceClaimName: shared}, {name: second, resourceClaimTemplateName: own}"
    found = manifests(CLAIMS + pod(entries, "limits: {nvidia.com/gpu: 2}"))
    named, made, extended = pod_claims(the_pod(found), found)
    assert (named.claim.metadata.name, named.generated) == ("shared", False)
    assert (made.claim.metadata.name, made.generated) == ("p-second", True)
    assert made.claim.metadata.owner_references[0].name == "p"
    assert made.claim.spec.devices.requests[0].exactly is not None
    assert made.claim.spec.devices.requests[0].exactly.count == 1
    counts = {request.name: request.exactly for request in extended.claim.spec.devices.requests}
    assert {name: exactly.count for name, exactly in counts.items() if exactly} == {
        "container-0-request-0": 1,
        "container-1-request-0": 2,
    }


def test_a_container_gets_what_it_names_narrowed_to_a_request_and_its_own_extended_resources() -> None:
    """A prioritised list is named by its request; a container that names nothing gets nothing."""
    uses = "claims: [{name: x, request: b}, {name: second}], limits: {nvidia.com/gpu: 1}"
    entries = "{name: x, resourceClaimName: shared}, {name: second, resourceClaimTemplateName: own}"
    found = manifests(CLAIMS + pod(entries, uses))
    its = pod_claims(the_pod(found), found)
    got = container_requests(the_pod(found), "main", its, found)
    assert [(each.entry, request) for each, request in got] == [
        ("x", "b"),
        ("second", None),
        ("extended-resources", "container-1-request-0"),
    ]
    assert container_requests(the_pod(found), "idle", its, found) == ()


def test_the_implicit_extended_resource_names_a_class() -> None:
    """``deviceclass.resource.kubernetes.io/<class>`` needs no field in the class."""
    found = manifests(pod("", "limits: {deviceclass.resource.kubernetes.io/mig.nvidia.com: 3}"))
    (extended,) = pod_claims(the_pod(found), found)
    exactly = extended.claim.spec.devices.requests[1].exactly
    assert exactly is not None
    assert (exactly.device_class_name, exactly.count) == ("mig.nvidia.com", 3)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        (pod("", "limits: {nvidia.com/gpu: 1500m}"), "asks for 1500m of nvidia.com/gpu", "whole number"),
        (pod("{name: x, resourceClaimName: nope}"), "there is no ResourceClaim default/nope", "there are shared"),
        (pod("{name: x, resourceClaimTemplateName: nope}"), "no ResourceClaimTemplate", "there are own"),
        (pod("{name: x}"), "exactly one of", None),
        ("---" + CLAIMS + pod(), "ResourceClaim default/shared is there twice", "rename"),
    ],
)
def test_what_leads_nowhere_is_said(text: str, says: str, hint: str | None) -> None:
    """The reference, where it stands, and what there is instead."""
    with pytest.raises(ManifestError) as caught:
        claims(CLAIMS + text)
    assert says in str(caught.value)
    assert (hint or "") in (caught.value.hint or "")


@pytest.mark.parametrize("case", USE_CASES)
def test_every_reference_of_the_use_cases_leads_somewhere(case: str) -> None:
    """The manifests in plain Kubernetes form are complete, given the classes that drivers bring."""
    result = read_files(sorted((ROOT / "examples/use-cases" / case).glob("*.yaml")))
    assert not result.problems
    found = Manifests.of((each.object for each in result.objects), classes=device_classes())
    for each in found.pods.values():
        its = pod_claims(each, found)
        for container in each.spec.containers:
            assert container_requests(each, container.name, its, found)


def test_a_generated_name_is_one_that_nobody_has() -> None:
    """Neither one that is written, wherever it stands, nor one that was made before; namespaces are apart."""
    names = ["generateName: p-", "name: p-0", "generateName: p-", "generateName: p-, namespace: other"]
    text = "---".join(
        f"\napiVersion: v1\nkind: Pod\nmetadata: {{{name}}}\nspec: {{containers: []}}\n" for name in names
    )
    assert list(manifests(text).pods) == [("default", "p-1"), ("default", "p-0"), ("default", "p-2"), ("other", "p-0")]
