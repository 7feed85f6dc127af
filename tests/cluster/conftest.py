"""Fixtures of the tests that run draht on the nodes of a real Kubernetes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.scene import Scene
from draht.driver.vendors.classes import device_classes

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
    dra.kubectl("delete", "namespace", name, "--ignore-not-found", "--timeout=60s")


@pytest.fixture(scope="module")
def stage(dra: Cluster) -> Iterator[Scene]:
    """A namespace of the module's own. One for each test would cost most of the time that a test has."""
    name = f"stage-{next(_numbers)}"
    dra.kubectl("create", "namespace", name)
    yield Scene(dra, name)
    dra.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def scene(stage: Scene) -> Iterator[Scene]:
    """The module's namespace, empty again after the test."""
    yield stage
    stage.clear()


@pytest.fixture
def serve(dra: Cluster) -> Iterator[Serve]:
    """Start an agent: ``serve(node name, *arguments)``; afterwards nothing of it is on the node or the server."""
    with serving(dra) as start:
        yield start


@contextmanager
def serving(cluster: Cluster) -> Iterator[Serve]:
    """As the fixture `serve`, for fixtures that live longer than a test."""
    agents: list[Agent] = []

    def start(node: str, *arguments: str, ready: bool = True, **options: object) -> Agent:
        agent = Agent(cluster, node, *arguments, **options)  # type: ignore[arg-type]  # passed on as they are
        agents.append(agent)
        return agent.start(ready=ready)

    yield start
    for agent in agents:
        agent.stop()
    for agent in agents:
        assert agent.left_behind() == []
    # The kubelet does so too, half a minute after a driver is gone.
    cluster.kubectl("delete", "resourceslices", "--all", "--timeout=30s")


@pytest.fixture(scope="module")
def serve_all(dra: Cluster) -> Iterator[Serve]:
    """As `serve`, for all tests of a module."""
    with serving(dra) as start:
        yield start
