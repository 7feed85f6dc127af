"""``draht node`` on the oldest release that is tried: beta APIs of server and kubelet, manifests as they were then."""

from __future__ import annotations

import os

import pytest

import cluster_programs
from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.placing import until
from cluster.pods import pod
from cluster.scene import SEEN, Scene, uses
from requirements import require

pytestmark = [pytest.mark.versions, pytest.mark.usefixtures("cluster_needs"), pytest.mark.timeout(300)]

API = "resource.k8s.io/v1beta1"
DEVICE_CLASS = {
    "apiVersion": API,
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.nvidia.com"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}]},
}
TEMPLATE = {
    "apiVersion": API,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus"},
    # Before v1beta2 there was no `exactly` around it.
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 2}]}}},
}


def test_a_claim_of_the_beta_api_runs_on_kubernetes_1_33() -> None:
    """Slices are published, a pod gets and sees its devices, the claim's status says so, and nothing is left."""
    require(cluster_programs.is_built("1.33"), "Kubernetes 1.33 isn't built (make test-versions builds it)")
    cluster = Cluster.up(f"b{os.getpid()}", nodes=1, version="1.33")
    try:
        scene = Scene(cluster, "default", version="v1beta1")
        agent = Agent(cluster, cluster.node_names[0], "--profile", "l4-x4").start()
        entry = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
        cluster.apply(DEVICE_CLASS)
        scene.run(
            TEMPLATE, pod("old", f"{SEEN}; sleep 3600", container={"resources": uses("gpus")}, resourceClaims=entry)
        )
        devices = scene.devices()
        assert scene.logs("old").split() == sorted(device.replace("-", "_") for device in devices)
        assert len(devices) == len(("one", "two"))

        def ready() -> bool:
            (claim,) = scene.objects("resourceclaims")
            told = claim["status"].get("devices", [])
            return sorted(each["device"] for each in told) == sorted(devices)

        until(ready, lambda: scene.kubectl("get", "resourceclaims", "-o", "yaml"))
        scene.clear()
        until(lambda: agent.left_behind() == [], lambda: f"left: {agent.left_behind()}")
        agent.stop()
    finally:
        cluster.down()
