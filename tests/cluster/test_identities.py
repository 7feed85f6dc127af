"""Whom the API server takes the clients for that a test makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.cluster import Cluster
from cluster.errors import CommandError
from cluster.pods import pod

pytestmark = pytest.mark.cluster


def user(cluster: Cluster, **identity: Any) -> dict[str, Any]:
    """Who the bearer of an identity is, as the API server says."""
    said = cluster.kubectl("auth", "whoami", "--output=json", kubeconfig=cluster.kubeconfig_for(**identity))
    answer: dict[str, Any] = json.loads(said)["status"]["userInfo"]
    return answer


def test_a_certificate_names_user_and_groups(cluster: Cluster) -> None:
    """A client has the name and the groups it was made with, also unusual ones, and may do nothing by itself."""
    seen = user(cluster, user="jane/doe, team=a", groups=["devs", "gpu users"])
    assert seen["username"] == "jane/doe, team=a"
    assert set(seen["groups"]) == {"devs", "gpu users", "system:authenticated"}
    with pytest.raises(CommandError, match="Forbidden"):
        cluster.kubectl("get", "secrets", kubeconfig=cluster.kubeconfig_for("jane"))


def test_a_token_that_is_bound_carries_the_node(cluster: Cluster) -> None:
    """A token of a pod or of a node tells the API server the node, as a policy about nodes needs it."""
    node = cluster.node_names[1]
    cluster.apply(pod("bound", "sleep 1000", node=node))
    for bound in ({"node": node}, {"pod": "bound"}):
        seen = user(cluster, token=cluster.service_account_token("default", "default", **bound))
        assert seen["username"] == "system:serviceaccount:default:default"
        assert seen["extra"]["authentication.kubernetes.io/node-name"] == [node]
    cluster.kubectl("delete", "pod", "bound", "--timeout=30s")
