"""Fixtures of the tests that run draht on the nodes of a real Kubernetes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import msgspec
import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from draht.driver.classes import device_classes

Serve = Callable[..., Agent]
_numbers = itertools.count()


@pytest.fixture(scope="session")
def dra(cluster: Cluster) -> Cluster:
    """The cluster, with the DeviceClasses that claims name."""
    cluster.apply(*(msgspec.to_builtins(each) for each in device_classes()))
    return cluster


@pytest.fixture
def namespace(dra: Cluster) -> Iterator[str]:
    """A namespace of the test's own; everything in it is gone afterwards, before the agents are."""
    name = f"test-{next(_numbers)}"
    dra.kubectl("create", "namespace", name)
    yield name
    dra.kubectl("delete", "namespace", name, "--timeout=60s")


@pytest.fixture
def serve(dra: Cluster) -> Iterator[Serve]:
    """Start an agent: ``serve(node name, *arguments)``; afterwards nothing of it is on the node or the server."""
    agents: list[Agent] = []

    def start(node: str, *arguments: str, ready: bool = True, **options: object) -> Agent:
        agent = Agent(dra, node, *arguments, **options)  # type: ignore[arg-type]  # passed on as they are
        agents.append(agent)
        return agent.start(ready=ready)

    yield start
    for agent in agents:
        agent.stop()
    for agent in agents:
        assert agent.left_behind() == []
    # The kubelet does so too, half a minute after a driver is gone.
    dra.kubectl("delete", "resourceslices", "--all", "--timeout=30s")
