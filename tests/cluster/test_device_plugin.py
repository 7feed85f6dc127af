"""GPUs by number beside GPUs of claims on one node: who gives which, and what the scheduler makes of both."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.placing import until
from cluster.pods import pod
from cluster.scene import Scene, template, uses

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

RESOURCE = "nvidia.com/gpu"
COUNTED = ["gpu_0", "gpu_1"]


@pytest.fixture(scope="module")
def agent(dra: Cluster, serve_all: Callable[..., Agent]) -> Agent:
    """Of eight GPUs, the first two are given away by number."""
    return serve_all(dra.node_names[1], "--profile", "dgx-h100", "--device-plugin", "0,1")


def by_number(name: str, agent: Agent, count: int = 1, **more: Any) -> dict[str, Any]:
    """A pod on the agent's node that asks for GPUs by number."""
    where = {"kubernetes.io/hostname": agent.node.name}
    resources = {"limits": {RESOURCE: str(count)}}
    return pod(name, "sleep 3600", container={"resources": resources}, nodeSelector=where, **more)


def amounts(scene: Scene, agent: Agent) -> tuple[str | None, str | None]:
    """What the node has and gives of the resource."""
    status = scene.object("nodes", agent.node.name)["status"]
    return status["capacity"].get(RESOURCE), status["allocatable"].get(RESOURCE)


def registrations(agent: Agent) -> int:
    """How often the kubelet took the device plugin."""
    return sum(record.get("driver") == RESOURCE and "registered" in record["message"] for record in agent.records())


def shown(cluster: Cluster) -> str:
    """What ``draht devices --cluster`` shows."""
    command = [sys.executable, "-m", "draht", "devices", "--cluster"]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_gpu_is_given_by_number_or_by_claim(scene: Scene, agent: Agent) -> None:
    """The node has two by number, the slices have the other six, and one command shows both."""
    until(lambda: amounts(scene, agent) == ("2", "2"), lambda: f"{amounts(scene, agent)}")
    devices = [device["name"] for each in scene.objects("resourceslices") for device in each["spec"].get("devices", [])]
    assert sorted(devices) == [f"gpu-{number}" for number in range(2, 8)]
    lines = shown(scene.cluster).splitlines()
    assert sum("gpu.nvidia.com" in line for line in lines) == len(devices)
    (counted,) = [line.split() for line in lines if RESOURCE in line]
    assert counted == [agent.node.name, RESOURCE, "2", "2"]


def test_a_container_has_the_gpus_that_the_device_plugin_chose(scene: Scene, agent: Agent) -> None:
    """Through CDI, with device nodes and variables; a pod with a claim beside it has another GPU."""
    entry = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    scene.run(
        by_number("counted", agent),
        template("gpu"),
        pod("claims", "sleep 3600", container={"resources": uses("gpu")}, resourceClaims=entry),
    )
    (gpu,) = scene.seen("counted")
    assert gpu in COUNTED
    assert scene.inside("counted", "ls /dev/nvidia[0-9]*").split() == [f"/dev/nvidia{gpu[-1]}"]
    assert scene.inside("counted", "nvidia-smi -L").count("GPU-") == 1
    assert not set(scene.seen("claims")) & set(COUNTED)


def test_claims_do_not_serve_a_number_where_a_device_plugin_does(scene: Scene, agent: Agent) -> None:
    """DRA stands in only on nodes whose device plugin has none of the resource: a third GPU isn't to be had."""
    scene.run(by_number("two", agent, 2))
    assert scene.seen("two") == COUNTED
    scene.apply(by_number("third", agent))
    scene.told("third", f"Insufficient {RESOURCE}")
    assert scene.objects("resourceclaims") == []
    scene.delete("two")
    scene.ready("third")


def test_the_device_plugin_is_back_after_a_restart_of_the_kubelet(scene: Scene, agent: Agent) -> None:
    """The kubelet empties its directory and gives none of the resource until draht has registered again."""
    scene.run(by_number("before", agent))
    before, started = scene.seen("before"), scene.started("before")
    registered = registrations(agent)
    agent.node.restart_kubelet()
    until(lambda: registrations(agent) > registered, lambda: agent.component.log_tail())
    until(lambda: amounts(scene, agent) == ("2", "2"), lambda: f"{amounts(scene, agent)}")
    scene.run(by_number("after", agent))
    assert sorted([*before, *scene.seen("after")]) == COUNTED
    assert scene.started("before") == started


def test_claims_serve_the_number_once_the_device_plugin_has_gone(
    scene: Scene, agent: Agent, serve: Callable[..., Agent]
) -> None:
    """The way from one to the other: without ``--device-plugin`` the same pod gets its GPU by DRA."""
    agent.stop()
    try:
        serve(agent.node.name, "--profile", "dgx-h100", name="without")
        until(lambda: amounts(scene, agent)[1] == "0", lambda: f"{amounts(scene, agent)}")
        scene.run(by_number("counted", agent))
        (entry,) = scene.object("pods", "counted")["status"]["extendedResourceClaimStatus"]["requestMappings"]
        assert entry["resourceName"] == RESOURCE
        assert scene.seen("counted") == [device.replace("-", "_") for device in scene.devices()]
        scene.clear()
    finally:
        agent.start(ready=False)
