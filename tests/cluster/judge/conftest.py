"""The two judges: an API server as it comes, and one with the unfinished features on."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import cluster_programs
import gotoolchain
from cluster.cluster import Cluster
from cluster.judge.server import Server
from cluster.profile import Gates
from requirements import require

_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
_FEATURES = {"status": {"declaredFeatures": ["DRANodeAllocatableResources"]}}
_ADMIN = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
_MERGE = "application/merge-patch+json"


def _judge(gates: Gates) -> Iterator[Server]:
    """A control plane alone; its default namespace allows admin access, its one node has every feature."""
    try:
        cluster_programs.ensure()
    except gotoolchain.GoMissingError as missing:
        require(False, str(missing))
    running = Cluster.up(f"judge-{gates[0]}-{os.getpid()}", nodes=0, gates=gates)
    try:
        # Its controllers would go on changing what is judged: owners and users that don't exist are cleaned up.
        running._plane.components["kube-controller-manager"].stop(kill=True, patience=2)
        server = Server(running)
        for answer in (
            server.ask("PATCH", "/api/v1/namespaces/default", _ADMIN, content_type=_MERGE),
            server.create(_NODE, dry=False),
            server.ask("PATCH", "/api/v1/nodes/node-1/status", _FEATURES, content_type=_MERGE),
        ):
            assert answer.accepted, answer
        yield server
        server.close()
    finally:
        running.down()


@pytest.fixture(scope="session")
def default_judge() -> Iterator[Server]:
    """Kubernetes as it comes."""
    yield from _judge("default")


@pytest.fixture(scope="session")
def alpha_judge() -> Iterator[Server]:
    """Kubernetes with its unfinished features on."""
    yield from _judge("alpha")
