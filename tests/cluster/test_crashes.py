"""The agent is killed between two steps of a claim, or the node rebooted: pods run, and nothing is lost or left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator

import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.placing import until
from cluster.scene import Scene
from cluster.steering import CLASS, DRIVER, Steering, died, steered_pod

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]


@pytest.fixture(scope="module")
def steering(dra: Cluster) -> Iterator[Steering]:
    """What steers the agent of this module."""
    dra.apply(CLASS)
    yield Steering(dra.node(dra.node_names[1]).directory / "steered")
    dra.kubectl("delete", "deviceclass", str(CLASS["metadata"]["name"]))  # type: ignore[index]  # it is a dict


@pytest.fixture(scope="module")
def agent(dra: Cluster, serve_all: Callable[..., Agent], steering: Steering) -> Agent:
    """An agent that can be killed at a step."""
    return serve_all(dra.node_names[1], "--driver", DRIVER, environment=steering.environment)


@pytest.fixture
def clean(scene: Scene, agent: Agent, steering: Steering) -> Iterator[Scene]:
    """The scene; after the test the agent runs, and neither files nor rows nor effects are left."""
    yield scene
    agent.start()
    scene.clear()
    until(lambda: agent.left_behind() == [] and steering.effects == [], lambda: f"left: {agent.left_behind()}")


@pytest.mark.parametrize("step", ["effects-done", "spec-written", "prepared"])
def test_a_pod_runs_although_the_agent_dies_while_it_prepares(
    clean: Scene, agent: Agent, steering: Steering, step: str
) -> None:
    """At its next start the agent undoes what is half done; the kubelet's next try prepares it."""
    steering.wish(f"die-at-{step}")
    clean.apply(*steered_pod(step))
    died(agent)
    agent.start()
    clean.ready(step)
    (device,) = clean.devices()
    assert clean.logs(step) == f"{device}\n"
    assert len(steering.effects) == 1


@pytest.mark.parametrize("step", ["spec-removed", "effects-undone"])
def test_nothing_is_left_when_the_agent_dies_while_it_unprepares(
    clean: Scene, agent: Agent, steering: Steering, step: str
) -> None:
    """At its next start the agent goes on; the kubelet, which asks again, is told that it is done."""
    clean.run(*steered_pod(step))
    steering.wish(f"die-at-{step}")
    clean.kubectl("delete", "pod", step, "--wait=false")
    died(agent)
    agent.start()
    assert agent.left_behind() == []
    assert steering.effects == []
    clean.kubectl("wait", "--for=delete", f"pod/{step}", "--timeout=60s")


def test_the_files_of_running_pods_are_made_again_after_a_reboot(
    clean: Scene, agent: Agent, steering: Steering
) -> None:
    """What lay in ``/var/run`` is gone, and so are the effects: without a word of the kubelet all is made again."""
    clean.run(*steered_pod("reboot"))
    before, device = agent.left_behind(), clean.devices()
    (spec,) = agent.node.cdi_directory.glob("*claim*")
    content = json.loads(spec.read_text())
    agent.stop()
    spec.unlink()
    shutil.rmtree(agent.metadata_directory)
    shutil.rmtree(steering.root / "effects")
    boot = steering.wish("boot", "another-boot")
    agent.start()
    assert sorted(agent.left_behind()) == sorted(before)
    assert json.loads(spec.read_text()) == content
    assert len(steering.effects) == 1
    # What a reboot does to containers: the runtime needs the spec to make them again.
    clean.inside("reboot", "touch /end")
    until(lambda: clean.started("reboot")[0][0] == 1, lambda: clean.kubectl("describe", "pod", "reboot"))
    clean.ready("reboot")
    assert clean.logs("reboot").split() == clean.devices() == device
    boot.unlink()


def test_a_device_node_that_is_missing_is_named_and_waited_for(clean: Scene, agent: Agent, steering: Steering) -> None:
    """The pod's event names the file; once it is there, the pod starts by itself."""
    clean.apply(*steered_pod("node", "node"))
    path = steering.root / "node"
    assert "steered" in clean.told("node", str(path))
    assert agent.left_behind() == []
    path.touch()
    clean.ready("node")
    path.unlink()
