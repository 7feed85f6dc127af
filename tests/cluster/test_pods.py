"""What becomes of devices when pods come and go, in all the ways that Kubernetes has for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.images import BUSYBOX, BUSYBOX_SIGTERM
from cluster.placing import until
from cluster.pods import pod
from cluster.scene import SEEN, Scene, claim, container, request, template, uses

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

STAYS = f"{SEEN}; sleep 3600"
FROM_TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
METADATA = "/var/run/kubernetes.io/dra-device-attributes"


@pytest.fixture(scope="module")
def agents(dra: Cluster, serve_all: Callable[..., Agent]) -> list[Agent]:
    """Eight GPUs on each node."""
    found = [serve_all(node, "--profile", "dgx-h100", ready=False) for node in dra.node_names]
    for agent in found:
        agent.wait_until_ready()
    return found


@pytest.fixture
def leaks_nothing(agents: list[Agent], scene: Scene) -> Callable[[], None]:
    """A check: no allocation, and on the nodes no prepared claim and no file, is left of the pods."""

    def left() -> list[str]:
        return [found for agent in agents for found in agent.left_behind()] + scene.devices()

    def check() -> None:
        until(lambda: not left(), lambda: f"left behind: {left()}", patience=30)

    return check


@pytest.fixture(autouse=True)
def ends_clean(scene: Scene, leaks_nothing: Callable[[], None]) -> Iterator[None]:
    """After every test its pods leave nothing."""
    yield
    scene.clear()
    leaks_nothing()


def test_init_containers_have_the_devices_too(scene: Scene) -> None:
    """An init container that uses the claim sees the device that the main container sees; one that doesn't, none."""
    init = [
        container("with", SEEN, BUSYBOX, "gpu"),
        container("without", f"{SEEN}; echo none", BUSYBOX),
    ]
    scene.run(
        template("gpu"),
        pod("init", STAYS, container={"resources": uses("gpu")}, initContainers=init, resourceClaims=FROM_TEMPLATE),
    )
    (device,) = scene.devices()
    assert scene.logs("init", "with").split() == [device.replace("-", "_")]
    assert scene.logs("init", "without").split() == ["none"]
    assert scene.logs("init").split() == [device.replace("-", "_")]


def test_containers_see_the_devices_of_what_they_use(scene: Scene) -> None:
    """A claim for all, one request of it for each of two, and a container without any."""
    containers = [
        container("both", STAYS, BUSYBOX, "gpus"),
        container("again", STAYS, BUSYBOX, "gpus"),
        container("first", STAYS, BUSYBOX, "gpus/one"),
        container("second", STAYS, BUSYBOX, "gpus/two"),
        container("none", STAYS, BUSYBOX),
    ]
    entries = [{"name": "gpus", "resourceClaimName": "gpus"}]
    scene.run(
        claim("gpus", request("one"), request("two", count=2)),
        pod("several", "", containers=containers, resourceClaims=entries),
    )
    results = scene.object("resourceclaims", "gpus")["status"]["allocation"]["devices"]["results"]
    of = {
        name: sorted(each["device"].replace("-", "_") for each in results if each["request"] in wanted)
        for name, wanted in {"both": ("one", "two"), "first": ("one",), "second": ("two",)}.items()
    }
    assert len(of["both"]) == len(results) == len(("one", "two", "two"))
    for name, devices in {**of, "again": of["both"], "none": []}.items():
        assert scene.logs("several", name).split() == devices, name


def test_two_pods_share_a_claim(scene: Scene, agents: list[Agent], leaks_nothing: Callable[[], None]) -> None:
    """Both have the same device; it stays prepared until the second one is gone."""
    entries = [{"name": "gpu", "resourceClaimName": "shared"}]
    both = [
        pod(name, STAYS, container={"resources": uses("gpu")}, resourceClaims=entries) for name in ("first", "second")
    ]
    scene.run(claim("shared"), *both)
    first, second = scene.logs("first").split(), scene.logs("second").split()
    assert first == second
    assert len(first) == 1
    scene.delete("first")
    assert scene.seen("second") == second
    assert [found for agent in agents for found in agent.left_behind()]
    scene.delete("second")
    leaks_nothing()


def test_a_forced_deletion_gives_devices_to_nobody_before_they_are_free(scene: Scene, agents: list[Agent]) -> None:
    """The server forgets the pod at once, its container takes its time; who is given the devices meanwhile waits."""
    where = {"kubernetes.io/hostname": agents[0].node.name}
    forced = pod(
        "forced",
        f"trap '' TERM; {SEEN}; sleep 3600",
        image=BUSYBOX_SIGTERM,
        container={"resources": uses("gpu")},
        resourceClaims=FROM_TEMPLATE,
        nodeSelector=where,
        terminationGracePeriodSeconds=8,
    )
    scene.run(template("gpu", request("gpu", count=8)), forced)
    before = scene.seen("forced")
    scene.delete("forced", force=True)
    scene.apply(
        pod("next", STAYS, container={"resources": uses("gpu")}, resourceClaims=FROM_TEMPLATE, nodeSelector=where)
    )
    assert "devices gpu-0, gpu-1, gpu-2, gpu-3 and 4 more are" in scene.told("next", "prepared for claim")
    scene.ready("next")
    assert scene.seen("next") == before


def test_a_namespace_goes_with_running_pods(dra: Cluster, namespace: str, leaks_nothing: Callable[[], None]) -> None:
    """Pods, claims and templates of a namespace are deleted in any order; the node is clean afterwards."""
    scene = Scene(dra, namespace)
    pods = [
        pod(f"p{number}", STAYS, container={"resources": uses("gpu")}, resourceClaims=FROM_TEMPLATE)
        for number in range(4)
    ]
    scene.run(template("gpu"), *pods)
    dra.kubectl("delete", "namespace", namespace, "--timeout=60s", timeout=90)
    leaks_nothing()


def test_a_restarted_container_keeps_its_device(scene: Scene) -> None:
    """The kubelet restarts a container that failed, without a new preparation."""
    script = f"{SEEN}; test -e /seen/once && sleep 3600; touch /seen/once; exit 3"
    seen = {"volumeMounts": [{"name": "seen", "mountPath": "/seen"}], "resources": uses("gpu")}
    scene.apply(
        template("gpu"),
        pod(
            "fails",
            script,
            container=seen,
            resourceClaims=FROM_TEMPLATE,
            volumes=[{"name": "seen", "emptyDir": {}}],
        ),
    )
    until(lambda: scene.object("pods", "fails")["status"].get("containerStatuses", [{}])[0].get("restartCount"), "once")
    scene.ready("fails")
    (device,) = scene.devices()
    assert scene.logs("fails").split() == [device.replace("-", "_")]
    assert scene.logs("fails", "main", "--previous").split() == [device.replace("-", "_")]


def test_a_hundred_pods_leave_nothing(scene: Scene, leaks_nothing: Callable[[], None]) -> None:
    """More pods than devices at a time, in batches: each gets one device, and in the end everything is free."""
    scene.apply(template("gpu"))
    for batch in range(4):
        pods = [
            pod(
                f"b{batch}-{number}",
                SEEN,
                container={"resources": uses("gpu")},
                resourceClaims=FROM_TEMPLATE,
                restartPolicy="Never",
            )
            for number in range(25)
        ]
        scene.apply(*pods)
        names = [each["metadata"]["name"] for each in pods]
        scene.ended(*names, patience=90)
        scene.kubectl("delete", "pod", *names, "--wait=false")  # the next batch comes while they go
    leaks_nothing()


def test_an_extended_resource_is_served_by_claims(scene: Scene) -> None:
    """A pod that asks for ``nvidia.com/gpu: 2`` as for a device plugin gets GPUs that DRA gives it."""
    scene.run(pod("counted", STAYS, container={"resources": {"limits": {"nvidia.com/gpu": "2"}}}))
    status = scene.object("pods", "counted")["status"]["extendedResourceClaimStatus"]
    devices = sorted(device.replace("-", "_") for device in scene.devices(status["resourceClaimName"]))
    assert scene.logs("counted").split() == devices
    assert len(devices) == len(("two", "GPUs"))


def test_a_container_reads_facts_about_its_devices(scene: Scene) -> None:
    """The metadata files of KEP-5304: for a claim by name and for one from a template, read-only."""
    entries = [*FROM_TEMPLATE, {"name": "own", "resourceClaimName": "named"}]
    scene.run(
        template("gpu"),
        claim("named", request("one", count=2)),
        pod("reads", STAYS, container={"resources": uses("gpu", "own")}, resourceClaims=entries),
    )
    for path, count in {"resourceclaimtemplates/gpu/gpu": 1, "resourceclaims/named/one": 2}.items():
        file = f"{METADATA}/{path}/gpu.nvidia.com-metadata.json"
        metadata, _ = json.JSONDecoder().raw_decode(scene.inside("reads", f"cat {file}"))
        assert metadata["kind"] == "DeviceMetadata"
        devices = [device for each in metadata["requests"] for device in each["devices"]]
        assert len(devices) == count
        assert {device["name"].replace("-", "_") for device in devices} <= set(scene.seen("reads"))
        assert "cannot write" in scene.inside("reads", f"(echo x > {file}) 2>/dev/null || echo cannot write")
