"""Other clusters than the usual one: unfinished features, and many simulated nodes."""

from __future__ import annotations

import os
import re

import pytest

from cluster.cluster import Cluster
from cluster.profile import profile
from cluster.simulated import LABEL

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("cluster_needs")]


def test_unfinished_features_are_on(cluster: Cluster) -> None:
    """With ``gates="alpha"`` every gate of the profile is on and its APIs are served; usually they aren't."""
    alpha = profile("1.37", "alpha")
    running = Cluster.up(f"a{os.getpid()}", nodes=1, gates="alpha")
    try:
        served = running.kubectl("api-versions").split()
        assert {api for api in alpha.apis if api not in served} == set()
        metrics = running.kubectl("get", "--raw=/metrics")
        on = set(re.findall(r'kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} 1', metrics))
        assert set(alpha.gates) - on == set()
    finally:
        running.down()
    usual = cluster.kubectl("api-versions").split()
    assert {api for api in profile("1.37", "default").apis if api not in usual} == set()
    assert "resource.k8s.io/v1alpha3" not in usual


def test_simulated_nodes_are_ready_and_pods_seem_to_run_on_them() -> None:
    """Fifty simulated nodes are there at once; pods on them run, end when they say, and go when deleted."""
    running = Cluster.up(f"s{os.getpid()}", nodes=0, simulated_nodes=50)
    try:
        assert len(running.simulated_node_names) == 50
        listed = running.kubectl("get", "nodes", f"--selector={LABEL}=true", "--no-headers").splitlines()
        assert [line.split()[1] for line in listed] == ["Ready"] * 50
        container = {"containers": [{"name": "main", "image": "none"}]}
        running.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stays"}, "spec": container},
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "ends", "annotations": {"draht.dev/simulated-runtime": "1s"}},
                "spec": container,
            },
        )
        running.kubectl("wait", "pod/stays", "--for=condition=Ready", "--timeout=30s")
        running.kubectl("wait", "pod/ends", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s")
        running.kubectl("delete", "pods", "--all", "--timeout=30s")
    finally:
        running.down()
