"""A cluster comes and goes as a whole: nothing of it stays, however it ends, and others aren't touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import doc_examples
import leftovers as machine
from cluster import leftovers, place
from cluster.cluster import Cluster
from cluster.component import MARK
from cluster.errors import ClusterError
from cluster.network import bridge_of
from cluster.pods import pod
from cluster.space import groups_of

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("cluster_needs")]

ROOT = Path(__file__).resolve().parents[2]
STARTED_AND_KILLED = """
import os, signal
from cluster.cluster import Cluster
from cluster.pods import pod
cluster = Cluster.up({name!r}, nodes=1)
cluster.apply(pod("left", "while :; do sleep 1; done"))
cluster.kubectl("wait", "pod/left", "--for=condition=Ready", "--timeout=30s")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def name() -> Iterator[str]:
    """A name for a cluster of this test, of which nothing is there afterwards."""
    chosen = f"l{os.getpid()}"
    yield chosen
    leftovers.remove(place.directory_of(chosen))


def traces(name: str) -> dict[str, list[str]]:
    """What there is of a cluster on this machine, by sort."""
    directory = place.directory_of(name)
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment, root = (entry / "environ").read_bytes(), machine.root_mount(entry / "mountinfo")
        except OSError:
            continue
        if f"{MARK}={directory}".encode() in environment.split(b"\0") or f"/{name}/".encode() in root:
            processes.append(f"{entry.name} {(entry / 'cmdline').read_bytes()[:60]!r}")
    bridge = Path("/sys/class/net", bridge_of(directory))
    ports = [path.name for path in bridge.glob("brif/*")]
    return {
        "processes": processes,
        "mounts": machine.mounts_below(directory),
        "interfaces": [bridge.name, *ports] if bridge.exists() else [],
        "control groups": [str(path) for path in groups_of(directory)],
        "files": [str(directory)] if directory.exists() else [],
    }


def test_nothing_stays_of_a_cluster(cluster: Cluster, name: str) -> None:
    """While a cluster runs there is something of each sort; after its end, exactly what was there before."""
    before = traces(name)
    running = Cluster.up(name, nodes=1)
    running.apply(pod("there", "while :; do sleep 1; done"))
    running.kubectl("wait", "pod/there", "--for=condition=Ready", "--timeout=30s")
    during = traces(name)
    assert all(during[sort] for sort in during if sort != "mounts"), during
    assert during["mounts"] == []  # a node's mounts are seen inside it only
    running.down()
    assert traces(name) == before
    assert before["processes"] == before["files"] == []
    cluster.wait_until_nodes_are_ready()  # the other cluster goes on


def test_what_a_killed_run_left_is_removed(name: str) -> None:
    """A cluster whose run was killed is removed by the next start of any; before that, it is still there."""
    before = traces(name)
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "tools")])
    killed = subprocess.run(
        [sys.executable, "-c", STARTED_AND_KILLED.format(name=name)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(traces(name)["processes"]) > len(("etcd", "API server", "pod")), traces(name)
    assert leftovers.remove_abandoned() == [name]
    assert traces(name) == before


def test_a_cluster_replaces_one_of_its_name(name: str) -> None:
    """Starting a cluster removes a broken one of that name first."""
    first = Cluster.up(name, nodes=0)
    first.kubectl("create", "namespace", "old")
    first.stop_apiserver(kill=True)
    second = Cluster.up(name, nodes=0)
    assert "old" not in second.kubectl("get", "namespaces", "--output=name")
    second.down()


def test_a_cluster_that_outlives_its_run_can_be_opened_by_name(name: str) -> None:
    """What one process started, another uses and ends; a start of other clusters doesn't remove it."""
    first = Cluster.up(name, nodes=0, outlives=True)
    assert name not in leftovers.remove_abandoned()
    opened = Cluster.open(name)
    assert (opened.server, opened.kubeconfig) == (first.server, first.kubeconfig)
    opened.restart_apiserver()
    assert "default" in opened.kubectl("get", "namespaces")
    opened.down()
    with pytest.raises(ClusterError, match="no cluster"):
        Cluster.open(name)


def test_somebody_who_only_looks_at_a_cluster_goes_on(name: str) -> None:
    """A process that has the kubeconfig in its environment or arguments isn't ended with the cluster."""
    running = Cluster.up(name, nodes=0)
    environment = {**os.environ, "KUBECONFIG": str(running.kubeconfig)}
    looking = subprocess.Popen(["tail", "-f", running.kubeconfig], env=environment, stdout=subprocess.DEVNULL)
    running.down()
    assert looking.poll() is None
    looking.kill()
    looking.wait()


def test_a_component_that_fails_shows_its_log(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that fails says which component ended and the end of its log, and leaves nothing."""
    monkeypatch.setattr("cluster.control_plane.ISSUER", "not a URL: \x7f")
    with pytest.raises(ClusterError, match=r"(?s)kube-apiserver ended with status 1\n.*service-account-issuer"):
        Cluster.up(name, nodes=0)
    assert traces(name)["processes"] == traces(name)["files"] == []


def test_the_page_about_the_cluster_is_true(tmp_path: Path) -> None:
    """What ``docs/cluster.md`` shows for tests works."""
    leftovers.remove(place.directory_of("mine"))
    doc_examples.run(ROOT / "docs" / "cluster.md", tmp_path, {})
    assert "mine" not in place.names()
