"""Several drivers of one agent: a vendor's and those of the examples, together in one claim, and their health."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_sysfs
from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.placing import until
from cluster.pods import pod
from cluster.scene import Scene, request, template, uses
from draht.hardware import profiles

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/drivers"
TOY, NIC = "toy.example.com", "nic.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
ENTRY = [{"name": "devices", "resourceClaimTemplateName": "devices"}]


@pytest.fixture(scope="module")
def agent(dra: Cluster, serve_all: Callable[..., Agent], tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """GPUs of a profile, network functions of the same machine's sysfs, and toys."""
    sysfs = tmp_path_factory.mktemp("sysfs")
    fake_sysfs.build(profiles.load("dgx-h100"), sysfs)
    dra.apply(*(device_class(name) for name in (TOY, NIC)))
    files = [argument for name in ("toy.py", "nic.py") for argument in ("--driver", str(EXAMPLES / name))]
    arguments = ("--profile", "dgx-h100", "--driver", "gpu.nvidia.com", *files)
    return serve_all(dra.node_names[0], *arguments, environment={"SYSFS_ROOT": str(sysfs)})


def device_class(driver: str) -> dict[str, Any]:
    """The class of a driver's devices."""
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    metadata = {"name": driver}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": metadata,
        "spec": {"selectors": [selector]},
    }


def shown(cluster: Cluster, *arguments: str) -> str:
    """What ``draht devices --cluster`` shows."""
    command = [sys.executable, "-m", "draht", "devices", "--cluster", *arguments]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout


def published(scene: Scene, driver: str) -> dict[str, dict[str, Any]]:
    """Name → device, as the slices of a driver have it."""
    specs = [each["spec"] for each in scene.objects("resourceslices")]
    return {device["name"]: device for spec in specs if spec["driver"] == driver for device in spec.get("devices", [])}


def test_a_gpu_and_a_nic_of_two_drivers_share_a_root(scene: Scene, agent: Agent) -> None:
    """One claim, two drivers, one attribute that both publish; the container has what both prepared."""
    together = [{"requests": ["gpu", "nic"], "matchAttribute": ROOT}]
    both = template("devices", request("gpu"), request("nic", NIC), constraints=together)
    scene.run(both, pod("both", "sleep 3600", container={"resources": uses("devices")}, resourceClaims=ENTRY))
    gpu, nic = scene.devices()
    roots = [
        published(scene, driver)[name]["attributes"][ROOT]["string"]
        for driver, name in (("gpu.nvidia.com", gpu), (NIC, nic))
    ]
    assert roots[0] == roots[1]
    assert scene.seen("both") == [gpu.replace("-", "_")]
    address = "{}:{}:{}.{}".format(*nic.split("-")[1:])
    assert scene.inside("both", "env | grep ^NIC_") == f"NIC_{nic.replace('-', '_')}={address}\n"
    assert len(agent.left_behind()) > len(("gpu", "nic"))


def test_devices_of_a_driver_file_are_mounted(scene: Scene, agent: Agent) -> None:
    """What a container writes into its device is what the driver has on the host."""
    scene.run(
        template("devices", request("toys", TOY, count=2, selector=f'device.attributes["{TOY}"].color == "red"')),
        pod("toys", "sleep 3600", container={"resources": uses("devices")}, resourceClaims=ENTRY),
    )
    assert scene.inside("toys", "echo $TOYS; ls /toys").split() == ["/toys", *sorted(scene.devices())]
    scene.inside("toys", "echo played > /toys/toy-1/trace")
    assert (agent.state_directory / "files" / TOY / "toy-1/trace").read_text() == "played\n"


def test_an_ill_device_is_told_tainted_and_avoided_until_it_recovers(scene: Scene, agent: Agent) -> None:
    """The pod that has it goes on and shows it in its status; nobody new is given it; then all is as before."""
    blue = f'device.attributes["{TOY}"].color == "blue"'
    scene.run(
        template("devices", request("toy", TOY, selector=blue)),
        pod("has", "sleep 3600", container={"resources": uses("devices")}, resourceClaims=ENTRY),
    )
    (ill,) = scene.devices()
    other = {"toy-0": "toy-2", "toy-2": "toy-0"}[ill]
    for device in (ill, other):
        (agent.state_directory / "files" / TOY / device).mkdir(exist_ok=True)
        (agent.state_directory / "files" / TOY / device / "broken").touch()

    until(lambda: scene.health("has") == [("Unhealthy", "it has a file `broken`")], lambda: f"{scene.health('has')}")
    until(lambda: "taints" in published(scene, TOY)[other], "no taint in the slice")
    (taint,) = published(scene, TOY)[other]["taints"]
    assert (taint["key"], taint["effect"]) == (f"{TOY}/broken", "NoSchedule")
    line = next(line for line in shown(scene.cluster).splitlines() if f" {ill} " in line)
    assert f"{TOY}/broken:NoSchedule" in line
    assert scene.object("pods", "has")["status"]["phase"] == "Running"

    scene.apply(pod("wants", "sleep 3600", container={"resources": uses("devices")}, resourceClaims=ENTRY))
    scene.told("wants", "cannot allocate all claims")
    for device in (ill, other):
        (agent.state_directory / "files" / TOY / device / "broken").unlink()
    scene.ready("wants")
    until(lambda: scene.health("has") == [("Healthy", "")], lambda: f"{scene.health('has')}")
    assert not any("taints" in device for device in published(scene, TOY).values())
