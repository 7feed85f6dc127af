"""draht chooses the devices, the stock kube-scheduler binds: the whole way, with its traps.

What is shown here is what `draht.controller.decision` relies on; the components are upstream's, unchanged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.placing import claiming_pod, get, template, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

PLACEMENT = Path(__file__).resolve().parents[2] / "deploy/placement"


@pytest.fixture(scope="module")
def placement(dra: Cluster, serve_all: Callable[..., Agent]) -> Iterator[None]:
    """A machine with four GPUs on each node, which draht gives out."""
    for node in dra.node_names:
        serve_all(node, "--profile", "l4-x4", ready=node == dra.node_names[-1])
    dra.kubectl("apply", "-k", str(PLACEMENT))
    yield
    dra.kubectl("delete", "-k", str(PLACEMENT), "--timeout=30s")


@pytest.fixture
def managed(dra: Cluster, placement: None, namespace: str) -> str:
    """A namespace whose pods wait at draht's gate."""
    dra.kubectl("label", "namespace", namespace, "draht.dev/placement=enabled")
    probe = json.dumps(claiming_pod("probe", "gpu"))

    def works() -> bool:
        # Admission policies take effect a moment after they are there.
        made = dra.kubectl("create", "-n", namespace, "--dry-run=server", "-o", "json", "-f", "-", input=probe)
        return "draht.dev/placement" in made

    until(works, "the gate policy doesn't take effect")
    return namespace


def run(cluster: Cluster, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """``draht …`` against the cluster."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig or cluster.kubeconfig)}
    command = [sys.executable, "-m", "draht", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def apply(cluster: Cluster, namespace: str, *objects: dict[str, Any]) -> None:
    """Create objects in a namespace."""
    cluster.apply(*({**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in objects))


def scheduled(cluster: Cluster, namespace: str, name: str) -> str:
    """What the scheduler says of a pod, with the node if it has one."""
    pod = get(cluster, namespace, "pods", name)
    if node := pod["spec"].get("nodeName"):
        return str(node)
    conditions = pod["status"].get("conditions", [])
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


def running(cluster: Cluster, namespace: str, name: str) -> bool:
    """Whether a pod runs."""
    return bool(get(cluster, namespace, "pods", name)["status"]["phase"] == "Running")


def claims(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    """The claims of a namespace."""
    found: list[dict[str, Any]] = get(cluster, namespace, "resourceclaims")["items"]
    return found


def test_a_gated_pod_is_allocated_pinned_and_bound(dra: Cluster, managed: str) -> None:
    """Gate and finalizer come by policy, the allocation by one command, the binding from the stock scheduler."""
    apply(dra, managed, template("gpu", count=2), claiming_pod("gated", "gpu"))
    (claim,) = until(lambda: claims(dra, managed), "the controller makes no claim for a gated pod")
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert "scheduling gates" in until(lambda: scheduled(dra, managed, "gated"), "no condition")

    said = run(dra, "explain", "pod/gated", "-n", managed)
    assert said.returncode == 0, said.stderr
    assert "would get its devices on node" in said.stdout

    done = run(dra, "allocate", "--apply", "-n", managed)
    assert done.returncode == 0, done.stderr
    until(lambda: running(dra, managed, "gated"), lambda: dra.kubectl("describe", "pods", "-n", managed))
    pod = get(dra, managed, "pods", "gated")
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": pod["spec"]["nodeName"]}
    assert "schedulingGates" not in pod["spec"]
    (claim,) = claims(dra, managed)
    status = claim["status"]
    assert status["allocation"]["allocationTimestamp"]
    assert [user["name"] for user in status["reservedFor"]] == ["gated"]

    again = run(dra, "allocate", "--apply", "-n", managed)
    assert "no pod waits at the gate" in again.stderr


def test_the_stock_allocator_leaves_managed_devices_alone(dra: Cluster, managed: str) -> None:
    """A pod outside the managed namespaces stays pending, and the answer names the taint; without the rule it runs."""
    dra.kubectl("label", "namespace", managed, "draht.dev/placement-")
    apply(dra, managed, template("gpu"), claiming_pod("plain", "gpu"))
    until(lambda: "cannot allocate all claims" in scheduled(dra, managed, "plain"), "the scheduler allocates")
    said = run(dra, "explain", "pod/plain", "-n", managed)
    assert said.returncode == 1
    assert "draht.dev/managed" in said.stdout
    assert "next: " in said.stdout
    dra.kubectl("delete", "devicetaintrule", "draht-managed")
    try:
        until(lambda: running(dra, managed, "plain"), lambda: dra.kubectl("describe", "pods", "-n", managed))
    finally:
        dra.kubectl("apply", "-k", str(PLACEMENT))


def test_a_pod_without_the_gate_is_served_when_it_is_named(dra: Cluster, managed: str) -> None:
    """Writing the allocation is enough: the scheduler sees the claim change."""
    dra.kubectl("label", "namespace", managed, "draht.dev/placement-")
    apply(dra, managed, template("gpu"), claiming_pod("plain", "gpu"))
    until(lambda: "cannot allocate all claims" in scheduled(dra, managed, "plain"), "the scheduler allocates")
    done = run(dra, "allocate", "--apply", "--pod", f"{managed}/plain")
    assert done.returncode == 0, done.stderr
    until(lambda: running(dra, managed, "plain"), lambda: dra.kubectl("describe", "pods", "-n", managed))


def test_an_allocation_without_its_time_is_a_trap(dra: Cluster, managed: str) -> None:
    """With it missing the scheduler tries to fill it in while it reserves, which the API server refuses for ever."""
    apply(dra, managed, template("gpu"), claiming_pod("gated", "gpu"))
    (claim,) = until(lambda: claims(dra, managed), "no claim")
    node = dra.node_names[0]
    selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": "gpu-0"}
    allocation = {"devices": {"results": [result]}, "nodeSelector": selector}
    patch = {"status": {"allocation": allocation}}
    name = str(claim["metadata"]["name"])
    dra.kubectl(
        "patch", "resourceclaim", name, "-n", managed, "--subresource=status", "--type=merge", "-p", json.dumps(patch)
    )
    gate = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    dra.kubectl("patch", "pod", "gated", "-n", managed, "--type=json", "-p", json.dumps(gate))
    refusal = "field cannot be modified once set"

    def told() -> bool:
        events = get(dra, managed, "events")["items"]
        return any(refusal in event.get("message", "") for event in events)

    until(told, lambda: dra.kubectl("describe", "pods", "-n", managed))


def test_a_pinned_pod_keeps_its_devices_when_its_node_fails_another_filter(dra: Cluster, managed: str) -> None:
    """The pod stays pending with what was decided; nothing is decided anew behind draht's back."""
    too_much = {"resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "1000"}}}
    apply(dra, managed, template("gpu"), claiming_pod("large", "gpu", container=too_much))
    until(lambda: claims(dra, managed), "no claim")
    done = run(dra, "allocate", "--apply", "-n", managed)
    assert done.returncode == 0, done.stderr
    until(lambda: "cpu" in scheduled(dra, managed, "large").lower(), "the scheduler says nothing of CPU")
    pod = get(dra, managed, "pods", "large")
    assert list(pod["spec"]["nodeSelector"]) == ["kubernetes.io/hostname"]
    said = run(dra, "explain", "pod/large", "-n", managed)
    assert "kube-scheduler said last" in said.stdout


def test_what_cannot_be_allocated_is_explained(dra: Cluster, managed: str) -> None:
    """More GPUs than any node has: cause, numbers and next step, for the pod and for its claim, in text and JSON."""
    apply(dra, managed, template("gpu", count=5), claiming_pod("many", "gpu"))
    (claim,) = until(lambda: claims(dra, managed), "no claim")
    said = run(dra, "explain", "pod/many", "-n", managed)
    assert said.returncode == 1
    assert "doesn't fit" in said.stdout
    assert "4" in said.stdout
    name = claim["metadata"]["name"]
    plain = json.loads(run(dra, "explain", f"claim/{name}", "-n", managed, "-o", "json").stdout)
    assert plain["fits"] is False
    assert plain["nextSteps"]
    refused = run(dra, "allocate", "--apply", "-n", managed)
    assert refused.returncode == 1
    assert "doesn't fit" in refused.stderr
    assert scheduled(dra, managed, "many") not in dra.node_names


def test_an_identity_that_may_not_write_allocations_changes_nothing(dra: Cluster, managed: str) -> None:
    """Who may read only is told what is missing, and the pod keeps its gate."""
    apply(dra, managed, template("gpu"), claiming_pod("gated", "gpu"))
    until(lambda: claims(dra, managed), "no claim")
    dra.kubectl("create", "clusterrolebinding", f"{managed}-view", "--clusterrole=view", f"--user={managed}")
    rules = "resourceslices,deviceclasses,devicetaintrules,resourceclaims,resourceclaimtemplates,nodes,pods"
    dra.kubectl("create", "clusterrole", f"{managed}-read", "--verb=get,list,watch", f"--resource={rules}")
    dra.kubectl("create", "clusterrolebinding", f"{managed}-read", f"--clusterrole={managed}-read", f"--user={managed}")
    try:
        done = run(dra, "allocate", "--apply", "-n", managed, kubeconfig=dra.kubeconfig_for(managed))
        assert done.returncode == 1
        assert "forbidden" in done.stderr.lower()
        assert get(dra, managed, "pods", "gated")["spec"]["schedulingGates"]
        assert "allocation" not in claims(dra, managed)[0].get("status", {})
    finally:
        dra.kubectl("delete", "clusterrolebinding", f"{managed}-view", f"{managed}-read")
        dra.kubectl("delete", "clusterrole", f"{managed}-read")
