"""An older Kubernetes comes up too: the oldest whose dynamic resource allocation draht speaks to."""

from __future__ import annotations

import os

import pytest

import cluster_programs
from cluster.cluster import Cluster
from cluster.pods import pod
from requirements import require

pytestmark = [pytest.mark.versions, pytest.mark.usefixtures("cluster_needs")]


def test_kubernetes_1_33_runs_pods_and_serves_its_beta_apis() -> None:
    """Control plane and kubelet of 1.33 run; dynamic resource allocation is served as beta and not yet as v1."""
    require(cluster_programs.is_built("1.33"), "Kubernetes 1.33 isn't built (make test-versions builds it)")
    running = Cluster.up(f"o{os.getpid()}", nodes=1, version="1.33")
    try:
        assert "v1.33." in running.kubectl("get", "nodes")
        served = running.kubectl("api-versions").split()
        assert {"resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2"} <= set(served)
        assert "resource.k8s.io/v1" not in served
        running.apply(pod("hello", "echo hello; while :; do sleep 1; done"))
        running.kubectl("wait", "pod/hello", "--for=condition=Ready", "--timeout=30s")
        assert running.kubectl("logs", "hello") == "hello\n"
    finally:
        running.down()
