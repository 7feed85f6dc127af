"""Commands on a live cluster: what is read, what may not be, and what is said when there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdi_command import Outcome, run
from cli_cluster import CLAIM, CLASS, HOLDER, NODE_1, PODS, RULE, SLICES
from fake_apiserver import Fault
from fake_node_server import NodeServer
from live_server import LiveServer, live

NODES = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {capacity: {nvidia.com/gpu: "8", cpu: "4"}, allocatable: {nvidia.com/gpu: "6"}}
---
apiVersion: v1
kind: Node
metadata: {name: node-2}
"""


@pytest.fixture
def cluster() -> Iterator[LiveServer[NodeServer]]:
    """Two nodes with three devices, and a class."""
    with live(NodeServer) as made:
        made.do(lambda server: server.remove("nodes", "node-1"))
        made.apply(SLICES, NODES)
        yield made


def ask(cluster: LiveServer[NodeServer], directory: Path, *words: str, stdin: bytes = b"") -> Outcome:
    """A command with the cluster's kubeconfig."""
    return run(*words, "--kubeconfig", cluster.kubeconfig(directory), stdin=stdin)


def waiting_pod(text: str = PODS) -> str:
    """The first of the two pods, with the claim that the controller has made for it."""
    template, first, _ = text.split("---")
    claim = CLAIM.replace("{name: pair}", "{name: first-gpus-x7k2p}")
    status = "status: {phase: Pending, resourceClaimStatuses: [{name: gpus, resourceClaimName: first-gpus-x7k2p}]}"
    return f"{template}---{first}\n{status}\n---{claim}"


def test_explain_says_where_a_pod_of_the_cluster_would_go(cluster: LiveServer[NodeServer], tmp_path: Path) -> None:
    """And what the scheduler said last, which knows more than devices."""
    cluster.apply(waiting_pod())
    said = ask(cluster, tmp_path, "explain", "pod/first")
    assert (said.status, said.lines) == (0, ["Pod default/first would get its devices on node node-2"])


def test_explain_names_who_holds_what_would_do(cluster: LiveServer[NodeServer], tmp_path: Path) -> None:
    """A claim of another namespace, with the name that the controller gave the pod's own."""
    cluster.apply(waiting_pod(), HOLDER)
    said = ask(cluster, tmp_path, "explain", "first")
    assert said.status == 1
    assert said.lines[0] == "Pod default/first doesn't fit: what would do is held by others"
    assert "about: claim default/first-gpus-x7k2p, request gpu" in said.stdout
    assert "next: wait for claim team-a/holder to end" in said.stdout


def test_a_pod_that_waits_for_nothing_is_told_as_such(cluster: LiveServer[NodeServer], tmp_path: Path) -> None:
    """It runs already; its devices are no question."""
    running = waiting_pod().replace("spec: {resourceClaims", "spec: {nodeName: node-2, resourceClaims")
    cluster.apply(running)
    said = ask(cluster, tmp_path, "explain", "first")
    assert "waits for no devices: it is on node node-2" in said.stdout + said.stderr


def test_a_name_that_isnt_there_is_looked_for_in_the_contexts_namespace(
    cluster: LiveServer[NodeServer], tmp_path: Path
) -> None:
    """With what there is instead."""
    cluster.apply(waiting_pod())
    said = run("explain", "pod/first", "--kubeconfig", cluster.kubeconfig(tmp_path, namespace="team-a"))
    assert said.status == 2
    assert "there is no Pod team-a/first in the cluster" in said.stderr
    elsewhere = ask(cluster, tmp_path, "explain", "pod/frist")
    assert "there are pod/first" in elsewhere.stderr


def test_files_stand_beside_a_cluster(cluster: LiveServer[NodeServer], tmp_path: Path) -> None:
    """Two pods of a file are placed with what the cluster has left; nothing is written."""
    before = cluster.do(lambda server: server.version)
    said = ask(cluster, tmp_path, "allocate", "-f", "-", stdin=PODS.encode())
    assert said.status == 1
    rows = [line.split() for line in said.lines[1:]]
    assert [(row[1], row[2], row[6]) for row in rows[:2]] == [
        ("default/first", "node-2", "big-0"),
        ("default/first", "node-2", "big-1"),
    ]
    assert "Pod default/second: it doesn't fit" in said.stderr
    assert cluster.do(lambda server: server.version) == before
    assert {request.method for request in cluster.do(lambda server: list(server.requests))} == {"GET"}


def test_a_file_takes_the_place_of_the_clusters_object(cluster: LiveServer[NodeServer], tmp_path: Path) -> None:
    """What would be if node-1 had the devices of the file."""
    file = tmp_path / "slice.yaml"
    file.write_text(NODE_1.replace("A2", "A100").replace("16Gi", "80Gi"), encoding="utf-8")
    cluster.apply(CLAIM.replace("count: 2", "count: 1"))
    without = ask(cluster, tmp_path, "allocate", "--node", "node-1")
    assert without.status == 1
    said = ask(cluster, tmp_path, "allocate", "--node", "node-1", "-f", str(file))
    assert (said.status, "small" in said.stdout) == (0, True)


def test_claims_by_themselves_are_decided_unless_they_are_settled(
    cluster: LiveServer[NodeServer], tmp_path: Path
) -> None:
    """Not those that are allocated, nor those of a pod that waits for somebody else's gate."""
    other = PODS.split("---")[1].replace("spec: {", "spec: {schedulingGates: [{name: example.com/quota}], ")
    status = "status: {phase: Pending, resourceClaimStatuses: [{name: gpus, resourceClaimName: gated}]}"
    one = CLAIM.replace("count: 2", "count: 1")
    cluster.apply(HOLDER, one, one.replace("pair", "gated"), f"{other}\n{status}")
    said = ask(cluster, tmp_path, "allocate")
    assert said.status == 0
    assert [line.split()[:2] for line in said.lines[1:]] == [["ResourceClaim", "default/pair"]]


def test_devices_shows_holders_taints_rules_and_numbers(cluster: LiveServer[NodeServer], tmp_path: Path) -> None:
    """Both views of a node stand together: by claim and by number."""
    cluster.apply(HOLDER, RULE)
    said = ask(cluster, tmp_path, "devices")
    assert said.status == 0
    by_device = {line.split()[3]: line for line in said.lines if line.startswith("node-") and "gpu.example.com" in line}
    assert sorted(by_device) == ["big-0", "big-1", "small"]
    assert "team-a/holder" in by_device["big-0"]
    assert "broken: example.com/broken:NoSchedule (rule)" in by_device["big-1"]
    assert "rule" not in by_device["small"]
    assert said.lines[-1].split() == ["node-1", "nvidia.com/gpu", "6", "8"]
    found = json.loads(ask(cluster, tmp_path, "devices", "-o", "json").stdout)
    assert {each["device"]: each["claims"] for each in found["devices"]}["big-0"] == ["team-a/holder"]
    assert found["counted"] == [{"node": "node-1", "resource": "nvidia.com/gpu", "allocatable": "6", "capacity": "8"}]


def test_devices_of_an_empty_cluster_names_the_next_step(tmp_path: Path) -> None:
    """Nothing is published yet."""
    with live(NodeServer) as empty:
        said = ask(empty, tmp_path, "devices")
    assert "no node publishes devices" in said.stderr
    assert "draht node" in said.stderr


@pytest.mark.parametrize("plural", ["pods", "nodes", "resourceclaimtemplates", "devicetaintrules", "deviceclasses"])
def test_what_may_not_be_listed_is_told_and_hides_nothing_else(
    cluster: LiveServer[NodeServer], tmp_path: Path, plural: str
) -> None:
    """The status says that the answer isn't whole."""
    cluster.apply(CLAIM)
    cluster.do(lambda server: server.closed.add(plural))
    said = ask(cluster, tmp_path, "explain", "claim/pair")
    assert f"warning: {plural} can't be listed and play no part: {plural} is forbidden" in said.stderr
    assert said.stdout
    if plural != "deviceclasses":
        assert said.lines == ["ResourceClaim default/pair would get its devices on node node-2"] or said.lines == [
            "ResourceClaim default/pair fits on node node-2"
        ]
    assert said.status == 2


def test_a_cluster_without_taint_rules_is_read_all_the_same(tmp_path: Path) -> None:
    """Kubernetes before 1.33 has no such kind."""

    def older() -> NodeServer:
        server = NodeServer()
        server.versions = {"v1beta1": ("resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses")}
        return server

    with live(older) as cluster:
        said = ask(cluster, tmp_path, "devices")
    assert said.status == 0
    assert "no node publishes devices" in said.stderr


def test_a_server_without_claims_is_an_error(tmp_path: Path) -> None:
    """Not an empty answer: DRA isn't there at all."""

    def without() -> NodeServer:
        server = NodeServer()
        server.versions = {}
        return server

    with live(without) as cluster:
        said = ask(cluster, tmp_path, "devices")
    assert said.status == 1
    assert "it serves nothing of resource.k8s.io" in said.stderr
    assert "hint: DRA needs Kubernetes 1.34" in said.stderr


def test_a_server_that_isnt_there_is_a_sentence(tmp_path: Path) -> None:
    """With its address, and without a traceback."""
    with live(NodeServer) as gone:
        config = gone.kubeconfig(tmp_path)
    said = run("devices", "--kubeconfig", config)
    assert said.status == 1
    assert said.stderr.startswith("error: http://localhost:")
    assert "Traceback" not in said.stderr


def test_a_server_that_fails_is_asked_again(cluster: LiveServer[NodeServer], tmp_path: Path) -> None:
    """One broken answer is nothing that a person has to know of."""
    cluster.do(lambda server: server.faults.append(Fault("status", code=503)))
    assert ask(cluster, tmp_path, "devices").status == 0


@pytest.mark.parametrize("words", [("explain", "pod/x"), ("allocate",)])
def test_without_files_and_without_a_cluster_both_are_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The next step is a file or a cluster."""
    environment = {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": ""}
    said = run(*words, environment=environment)
    assert said.status == 2
    assert "no cluster is configured" in said.stderr
    assert "-f" in said.stderr


@pytest.mark.parametrize("words", [("--cluster",), ("--context", "other"), ("--kubeconfig", "none")])
def test_a_cluster_that_is_asked_for_must_be_there(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files beside it don't make up for it."""
    monkeypatch.chdir(tmp_path)
    environment = {"KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": ""}
    said = run("explain", "claim/pair", "-f", "-", *words, stdin=CLASS.encode(), environment=environment)
    assert said.status == 2
    assert said.stderr.startswith("error: ")
    assert "hint: " in said.stderr
