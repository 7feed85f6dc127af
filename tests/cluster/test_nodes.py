"""The nodes of the test cluster are real ones: their pods run, talk and end, and a crash of a component is survived."""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.cluster import Cluster
from cluster.images import BUSYBOX, BUSYBOX_SIGTERM
from cluster.pods import pod

pytestmark = pytest.mark.cluster

FOREVER = "while :; do sleep 1; done"


@pytest.fixture
def kubectl(cluster: Cluster) -> Iterator[Callable[..., str]]:
    """The kubectl command; pods that a test made are gone after it."""
    yield cluster.kubectl
    cluster.kubectl("delete", "pods", "--all", "--grace-period=1", "--timeout=30s")


def until_ready(cluster: Cluster, *names: str) -> None:
    """Wait for pods."""
    cluster.kubectl("wait", *(f"pod/{name}" for name in names), "--for=condition=Ready", "--timeout=30s")


def test_each_node_runs_pods(cluster: Cluster, kubectl: Callable[..., str]) -> None:
    """A pod on every node starts, its log is read and a command runs in it."""
    cluster.apply(*(pod(f"on-{node}", f"echo hello from {node}; {FOREVER}", node=node) for node in cluster.node_names))
    until_ready(cluster, *(f"on-{node}" for node in cluster.node_names))
    for node in cluster.node_names:
        assert kubectl("logs", f"on-{node}") == f"hello from {node}\n"
        assert kubectl("exec", f"on-{node}", "--", "hostname") == f"on-{node}\n"


def test_pods_of_different_nodes_reach_each_other(cluster: Cluster, kubectl: Callable[..., str]) -> None:
    """A pod on one node reads what a pod on the other serves, by its address."""
    first, second = cluster.node_names
    cluster.apply(
        pod("server", "echo it works >/tmp/answer; exec httpd -f -h /tmp", node=first),
        pod("client", FOREVER, node=second),
    )
    until_ready(cluster, "server", "client")
    address = kubectl("get", "pod", "server", "--output=jsonpath={.status.podIP}")
    assert kubectl("exec", "client", "--", "wget", "-qO-", f"http://{address}/answer") == "it works\n"


def test_pods_reach_the_api_server(cluster: Cluster, kubectl: Callable[..., str]) -> None:
    """The address that pods are told for the API server leads to it, and it has the certificate for that."""
    cluster.apply(pod("asks", FOREVER))
    until_ready(cluster, "asks")
    connect = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo reached"
    assert kubectl("exec", "asks", "--", "sh", "-c", connect) == "reached\n"
    address = kubectl("get", "service", "kubernetes", "--output=jsonpath={.spec.clusterIP}")
    assert kubectl(f"--server=https://{address}", "get", "--raw=/readyz") == "ok"


def test_limits_of_a_pod_are_in_its_control_group(cluster: Cluster, kubectl: Callable[..., str]) -> None:
    """A container that takes more memory than its limit is killed for it."""
    limited = {"resources": {"limits": {"memory": "32Mi"}}}
    cluster.apply(pod("greedy", "tail -c 200m /dev/zero", container=limited, restartPolicy="Never"))
    kubectl("wait", "pod/greedy", "--for=jsonpath={.status.phase}=Failed", "--timeout=30s")
    reason = "{.status.containerStatuses[0].state.terminated.reason}"
    assert kubectl("get", "pod", "greedy", f"--output=jsonpath={reason}") == "OOMKilled"


def test_the_runtime_class_of_nvidia_has_a_handler(cluster: Cluster, kubectl: Callable[..., str]) -> None:
    """Pods that name the RuntimeClass ``nvidia`` run, once that object exists."""
    cluster.apply(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"}
    )
    cluster.apply(pod("classy", FOREVER, runtimeClassName="nvidia"))
    until_ready(cluster, "classy")


@pytest.mark.parametrize(("image", "left"), [(BUSYBOX, ""), (BUSYBOX_SIGTERM, "asked\n")])
def test_images_differ_in_how_their_containers_end(
    cluster: Cluster, kubectl: Callable[..., str], tmp_path: Path, image: str, left: str
) -> None:
    """Containers of the usual image are killed, those of the other are asked first."""
    tmp_path.chmod(0o777)
    script = f"trap 'echo asked >/host/left; exit' TERM; touch /host/left; {FOREVER}"
    mount = {"volumeMounts": [{"name": "host", "mountPath": "/host"}]}
    host = [{"name": "host", "hostPath": {"path": str(tmp_path)}}]
    ready = {"readinessProbe": {"exec": {"command": ["test", "-f", "/host/left"]}, "periodSeconds": 1}}
    cluster.apply(pod("ends", script, image=image, container=mount | ready, volumes=host))
    until_ready(cluster, "ends")
    kubectl("delete", "pod", "ends", "--timeout=30s")
    assert (tmp_path / "left").read_text() == left


def test_each_node_has_sockets_of_its_own(cluster: Cluster) -> None:
    """The sockets that plugins use are below each kubelet's own root, and a connection reaches it from outside."""
    for node in map(cluster.node, cluster.node_names):
        path = node.kubelet_root / "device-plugins" / "kubelet.sock"
        assert stat.S_ISSOCK(path.stat().st_mode)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
        assert (node.kubelet_root / "pod-resources" / "kubelet.sock").exists()
        assert node.cdi_directory.is_dir()
    assert not list(Path("/var/lib/kubelet").glob("device-plugins/*"))


def test_pods_survive_crashes(cluster: Cluster, kubectl: Callable[..., str]) -> None:
    """When kubelet, containerd and the API server are killed and started again, a container just goes on."""
    name = cluster.node_names[0]
    node = cluster.node(name)
    cluster.apply(pod("lasting", FOREVER, node=name))
    until_ready(cluster, "lasting")
    identity = (
        "--output=jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}"
    )
    before = kubectl("get", "pod", "lasting", identity)

    node.restart_kubelet(kill=True)
    node.restart_containerd(kill=True)
    cluster.restart_apiserver(kill=True)
    cluster.wait_until_nodes_are_ready()

    until = time.monotonic() + 60
    while kubectl("exec", "lasting", "--", "echo", "still here", check=False) != "still here\n":
        assert time.monotonic() < until, node.log_tail()
        time.sleep(0.2)
    assert kubectl("get", "pod", "lasting", identity) == before
