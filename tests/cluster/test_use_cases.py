"""The twelve use cases on a real Kubernetes: their manifests, applied unchanged, with the stock scheduler and kubelet.

What is expected beyond that (driver, simulated parts, refusals) is in ``cases.yaml`` and the table of the page.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.placing import until
from cluster.reader import Reader
from draht.host.use_cases import UseCase, use_cases

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

CASES = use_cases()
CLIQUE = "3c1a7b52-0f7e-4b9f-9d0e-6d1e0f3a2b11.0"


def arguments(case: UseCase) -> list[str]:
    """How the agent is started for a case."""
    root = Path(case.directory).parent
    profile = root / case.profile if "/" in case.profile else case.profile
    found = ["--profile", str(profile), "--driver", "gpu.nvidia.com"]
    found += ["--driver", "dra.net"] if "network function" in case.simulated else []
    found += ["--partitions"] if case.publish.partitions else []
    found += ["--shares"] if case.publish.shares else []
    for file in case.files:
        found += ["--slices", str(Path(case.directory) / file)]
    return found


PATHS = {
    "pods": "/api/v1/pods",
    "events": "/api/v1/events",
    "resourceclaims": "/apis/resource.k8s.io/v1/resourceclaims",
    "resourceslices": "/apis/resource.k8s.io/v1/resourceslices",
}


def listed(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    """All objects of a kind in all namespaces."""
    found: list[dict[str, Any]] = Reader(cluster.kubeconfig)(PATHS[kind])["items"]
    return found


def pods_of(cluster: Cluster, case: UseCase) -> dict[str, dict[str, Any]]:
    """Name → pod, of the case's pods."""
    return {pod["metadata"]["name"]: pod for pod in listed(cluster, "pods") if pod["metadata"]["name"] in case.devices}


def given(cluster: Cluster, case: UseCase, claims: list[dict[str, Any]]) -> dict[str, dict[str, set[str]]]:
    """Pod → container → devices, as the claims' allocations said."""
    found: dict[str, dict[str, set[str]]] = {}
    for name, pod in pods_of(cluster, case).items():
        own = {entry["name"]: {("", entry.get("resourceClaimName"))} for entry in pod["spec"]["resourceClaims"]}
        for entry, keys in own.items():
            keys.add((name, entry))  # made from a template, by its owner: the name is of no use once the pod has ended
        for container in pod["spec"]["containers"]:
            found.setdefault(name, {})[container["name"]] = {
                result["device"]
                for used in container["resources"].get("claims", [])
                for claim in claims
                if claim["metadata"]["namespace"] == pod["metadata"]["namespace"] and key_of(claim) in own[used["name"]]
                for result in claim["status"]["allocation"]["devices"]["results"]
                if used.get("request") in {None, result["request"].partition("/")[0]}
            }
    return found


def key_of(claim: dict[str, Any]) -> tuple[str, str]:
    """Owner and entry of a claim that was made from a template; its name otherwise."""
    metadata = claim["metadata"]
    entry = metadata.get("annotations", {}).get("resource.kubernetes.io/pod-claim-name")
    return (metadata["ownerReferences"][0]["name"], entry) if entry else ("", metadata["name"])


@contextmanager
def watched_claims(cluster: Cluster) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Every claim that gets an allocation, as it last was with one: those of pods that have ended are gone by then."""
    command = [str(cluster.kubectl.program), "get", "resourceclaims", "-A", "--watch", "-o", "json"]
    command += [f"--kubeconfig={cluster.kubeconfig}", f"--cache-dir={cluster.directory / 'kubectl-cache'}"]
    with tempfile.TemporaryFile("w+") as written:
        watching = subprocess.Popen(command, stdout=written)

        def allocated() -> list[dict[str, Any]]:
            written.seek(0)
            text, at, found = written.read(), 0, {}
            while text[at:].strip():
                claim, length = json.JSONDecoder().raw_decode(text[at:].lstrip())
                at += len(text[at:]) - len(text[at:].lstrip()) + length
                if claim.get("status", {}).get("allocation"):
                    found[claim["metadata"]["uid"]] = claim
            return list(found.values())

        try:
            yield allocated
        finally:
            watching.kill()
            watching.wait()


@pytest.mark.parametrize("case", CASES, ids=lambda case: Path(case.directory).name)
def test_a_use_case_runs(dra: Cluster, serve: Callable[..., Any], case: UseCase) -> None:
    """Its pods get the devices it names and see them; after they are deleted nothing is left."""
    node = dra.node_names[0]
    if case.number == "11":
        dra.kubectl("label", "node", node, f"nvidia.com/gpu.clique={CLIQUE}")
    serve(node, *arguments(case))
    manifests = str(Path(case.directory) / "manifests.yaml")
    try:
        with watched_claims(dra) as claims:
            dra.kubectl("apply", "-f", manifests)
            if case.refused:
                refused(dra, case)
            else:
                run(dra, case, claims)
    finally:
        dra.kubectl("delete", "-f", manifests, "--ignore-not-found", "--timeout=60s")
        dra.kubectl("label", "node", node, "nvidia.com/gpu.clique-")
    until(lambda: not listed(dra, "resourceclaims"), lambda: "claims are left")


def run(cluster: Cluster, case: UseCase, claims: Callable[[], list[dict[str, Any]]]) -> None:
    """All pods run to their end, with the devices that the case names."""

    def ended() -> bool:
        return {pod["status"]["phase"] for pod in pods_of(cluster, case).values()} == {"Succeeded"}

    until(ended, lambda: "the pods didn't run: " + cluster.kubectl("describe", "pods", "-A"))
    for pod, containers in case.devices.items():
        namespace = pods_of(cluster, case)[pod]["metadata"]["namespace"]
        for container in containers:
            assert "simulated by draht" in cluster.kubectl("logs", pod, "-c", container, "-n", namespace)
    expected = {pod: {name: set(devices) for name, devices in own.items()} for pod, own in case.devices.items()}
    products = products_of(cluster)
    assert shape(given(cluster, case, claims()), products) == shape(expected, products)


def products_of(cluster: Cluster) -> dict[str, str]:
    """Name of a device → what it is, without what makes it this one."""
    found = {}
    for slice_ in listed(cluster, "resourceslices"):
        for device in slice_["spec"].get("devices", []):
            attributes = device.get("attributes", {})
            facts = [attributes.get(name, {}).get("string", "") for name in ("type", "productName", "profile")]
            found[device["name"]] = "/".join([slice_["spec"]["driver"], *facts])
    return found


def shape(devices: dict[str, dict[str, set[str]]], products: dict[str, str]) -> Counter[tuple[str, frozenset[str]]]:
    """What each device is and who has it. Which of two like devices it is depends on which pod was scheduled first."""
    users: dict[str, set[str]] = {}
    for pod, containers in devices.items():
        for container, names in containers.items():
            for name in names:
                users.setdefault(name, set()).add(f"{pod}/{container}")
    return Counter((products[name], frozenset(who)) for name, who in users.items())


def refused(cluster: Cluster, case: UseCase) -> None:
    """No pod starts, and its events say why."""

    def told() -> bool:
        events = listed(cluster, "events")
        return any(case.refused in event.get("message", "") for event in events)

    until(told, lambda: "no event says why: " + cluster.kubectl("get", "events", "-A"))
    assert {pod["status"]["phase"] for pod in pods_of(cluster, case).values()} == {"Pending"}
