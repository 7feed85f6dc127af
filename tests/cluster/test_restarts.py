"""Kubelet, container runtime, API server and agent restart in turn: running pods don't notice, new ones run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.placing import until
from cluster.scene import Scene
from cluster.steering import CLASS, DRIVER, Steering, steered_pod

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

OLD, NEW = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
WIPE_SECONDS = 30
"""After which a kubelet deletes the slices of a driver that is gone."""


@pytest.fixture(scope="module")
def steering(dra: Cluster) -> Steering:
    """What makes a preparation last."""
    dra.apply(CLASS)
    return Steering(dra.node(dra.node_names[0]).directory / "steered")


@pytest.fixture(scope="module")
def agent(dra: Cluster, serve_all: Callable[..., Agent], steering: Steering) -> Agent:
    """The agent of the node."""
    return serve_all(dra.node_names[0], "--driver", DRIVER, environment=steering.environment)


@pytest.fixture
def running(scene: Scene, agent: Agent, steering: Steering) -> Iterator[Scene]:
    """A pod with a device; after the test it is still the same one, another one runs, and both leave nothing."""
    agent.start()
    scene.run(*steered_pod("before"))
    started = scene.started("before")
    yield scene
    assert scene.started("before") == started
    scene.run(*steered_pod("after"))
    devices = scene.devices()
    assert len(set(devices)) == len(devices) >= len(("before", "after"))
    scene.clear()
    until(lambda: agent.left_behind() == [] and steering.effects == [], lambda: f"left: {agent.left_behind()}")


def slices(scene: Scene) -> list[str]:
    """The UID of every slice."""
    return [each["metadata"]["uid"] for each in scene.objects("resourceslices")]


def test_pods_outlive_a_restart_of_the_kubelet(running: Scene, agent: Agent) -> None:
    """A starting kubelet deletes all slices of its node; the agent publishes them again and is registered again."""
    before = slices(running)
    agent.node.restart_kubelet(kill=True)
    until(lambda: slices(running) not in ([], before), lambda: f"still {slices(running)}")
    agent.wait_until_ready()


def test_pods_outlive_a_restart_of_the_container_runtime(running: Scene, agent: Agent) -> None:
    """The runtime reads the specs anew; nothing of them changes."""
    agent.node.restart_containerd(kill=True)
    running.cluster.wait_until_nodes_are_ready()


@pytest.mark.parametrize("kill", [False, True], ids=["asked to end", "killed"])
def test_pods_and_slices_outlive_a_restart_of_the_agent(running: Scene, agent: Agent, kill: bool) -> None:
    """Whether it could clean up or not: the same slices stay, without a write."""
    before = slices(running)
    agent.stop(kill=kill)
    assert slices(running) == before
    agent.start()
    assert slices(running) == before


def test_a_pod_runs_although_the_agent_restarts_while_it_prepares(
    running: Scene, agent: Agent, steering: Steering
) -> None:
    """Asked to end, the agent doesn't wait for a slow device for ever; the next one prepares the claim."""
    gate = steering.wish("wait-in-prepare")
    running.apply(*steered_pod("slow"))
    until(lambda: len(steering.effects) == len(("before", "slow")), "the kubelet doesn't ask")
    agent.stop()
    gate.unlink()
    agent.start()
    running.ready("slow")


def test_a_driver_may_come_back_after_its_slices_were_wiped(running: Scene, agent: Agent, steering: Steering) -> None:
    """A pod that came while it was away runs by itself, one that ended is unprepared, and health is known again."""

    def state() -> str:
        return running.health("before")[0][0]

    until(lambda: running.health("before"), "no health")
    running.run(*steered_pod("ends"))
    agent.stop(kill=True)
    stopped = time.monotonic()
    running.kubectl("delete", "pod", "ends", "--wait=false")
    running.apply(*steered_pod("meanwhile"))
    running.told("meanwhile", "steered.example.com")
    until(lambda: slices(running) == [], "the slices stay", patience=WIPE_SECONDS + 40)
    assert time.monotonic() - stopped > WIPE_SECONDS / 2
    until(lambda: state() == "Unknown", lambda: f"{state()}")
    assert running.object("pods", "ends")["metadata"]["deletionTimestamp"]
    agent.start()
    running.ready("meanwhile")
    until(lambda: state() == "Healthy", lambda: f"{state()}")
    running.kubectl("wait", "--for=delete", "pod/ends", "--timeout=60s", timeout=90)
    assert len(steering.effects) == len(("before", "meanwhile"))


def test_pods_outlive_a_restart_of_the_api_server(running: Scene, agent: Agent) -> None:
    """Without an API server nothing starts and nothing ends; with it, the agent goes on where it was."""
    before = slices(running)
    running.cluster.stop_apiserver(kill=True)
    assert agent.component.pid is not None
    running.cluster.start_apiserver()
    assert slices(running) == before
    agent.wait_until_ready()


def test_an_agent_that_starts_without_api_server_serves_when_it_comes(running: Scene, agent: Agent) -> None:
    """Nodes of a cluster that was switched off start in any order."""
    running.cluster.stop_apiserver(kill=True)
    try:
        agent.stop(kill=True)
        agent.start(ready=False)

        def waits_for_the_server_only() -> bool:
            reasons = agent.get("/readyz")[1].splitlines()
            return len(reasons) == 1 and "no connection" in reasons[0]

        until(waits_for_the_server_only, lambda: f"{agent.get('/readyz')}")
    finally:
        running.cluster.start_apiserver()
    agent.wait_until_ready()


def test_a_new_instance_takes_over_while_the_old_one_serves(
    running: Scene, agent: Agent, dra: Cluster, steering: Steering
) -> None:
    """A rolling update with two pods of the agent: the claims of the old one are unprepared by the new one."""
    agent.stop()
    old, new = (
        Agent(
            dra, agent.node.name, "--driver", DRIVER, "--pod-uid", uid, environment=steering.environment, name=uid[:3]
        )
        for uid in (OLD, NEW)
    )
    try:
        old.start()
        running.run(*steered_pod("of-old"))
        new.start()
        running.run(*steered_pod("of-both"))
        old.stop()
        until(lambda: new.get("/readyz")[0] == 200, lambda: new.get("/readyz")[1])
        running.run(*steered_pod("of-new"))
        running.delete("of-old", "of-both", "of-new")
        until(lambda: len(steering.effects) == len(("before",)), lambda: f"{steering.effects}")
        assert {record["claim"].split("/")[1].rpartition("-")[0] for record in unprepared(new)} >= {
            "of-old-device",
            "of-both-device",
            "of-new-device",
        }
        assert unprepared(old) == []
    finally:
        old.stop()
        new.stop()
    assert list(agent.node.kubelet_root.glob("plugins/steered.example.com/*.sock")) == []
    agent.start()


def unprepared(agent: Agent) -> list[dict[str, str]]:
    """What an agent logged about claims that it has unprepared."""
    return [record for record in agent.records() if record["message"] == "unprepared"]
