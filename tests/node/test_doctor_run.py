"""``draht doctor --node`` as a whole: what is asked, what happens when something doesn't answer, and what is shown."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_bench import kubeconfig
from cdi_command import run
from doc_examples import run as run_examples
from draht import cdi
from draht.cli import node_doctor
from draht.driver.database import Database
from draht.host.condition import database_state
from draht.kube import Backoff, Client, Config
from draht.node.doctor import Expectation, NodeDirectories, Report, examine
from fake_apiserver import Fault
from fake_kubelet import FakeKubelet
from fake_node_server import NodeServer
from fake_slice_server import NODE
from toy_driver import ToyDriver, claim, preparer

NOTHING_KNOWN = Expectation()
DOCS = Path(__file__).resolve().parents[2] / "docs"


async def look(
    server: NodeServer | None, root: Path, *, patience: float = 10.0, expected: Expectation = NOTHING_KNOWN
) -> Report:
    """What doctor says of a node below a directory."""
    directories = NodeDirectories(kubelet=root, cdi=root / "cdi", state=root / "state")
    options: dict[str, Any] = {
        "cache": cdi.Cache([directories.cdi]),
        "database": lambda: database_state(directories.state),
        "expected": expected,
        "patience": patience,
        "socket_patience": 0.5,
    }
    if server is None:
        return await examine(NODE, directories, client=None, unreachable="no kubeconfig", **options)
    quick = Backoff(initial=0.01, maximum=0.05)
    async with Client(Config(server.address), backoff=quick) as client:
        return await examine(NODE, directories, client=client, **options)


def kinds(report: Report) -> set[str]:
    """Kinds of what was found, but for the directories of a test, which are unusual."""
    return {finding.kind for finding in report.findings} - {"cdi-directory-unusual"}


def on_node(root: Path, test: Callable[[NodeServer, FakeKubelet], Awaitable[None]]) -> None:
    """Run a test beside a server and a kubelet."""

    async def main() -> None:
        (root / "plugins").mkdir(exist_ok=True)
        async with NodeServer() as server, FakeKubelet(root) as kubelet:
            await test(server, kubelet)

    asyncio.run(main())


def test_a_node_with_nothing_on_it_is_healthy(root: Path) -> None:
    """Everything is asked and answered."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        report = await look(server, root)
        assert kinds(report) == set()
        assert report.versions["kubernetes"] == "v1.37.2"
        assert dict(report.counts) == {"slices": 0, "pods": 0}
        assert not report.broken

    on_node(root, test)


def test_lists_that_are_forbidden_hide_nothing_else(root: Path) -> None:
    """Pods and claims are refused; slices and permissions still speak."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        server.closed = {"pods", "resourceclaims"}
        server.kubelet = None
        server.forbidden = {"create resourceslices"}
        report = await look(server, root, expected=Expectation(offers={"toy.example.com": ToyDriver(root).discover()}))
        found = kinds(report)
        assert found == {"not-looked-at", "permission-missing", "slices-missing", "driver-not-served"}
        told = " ".join(finding.message for finding in report.findings if finding.kind == "not-looked-at")
        for word in ("pods of the node", "ResourceClaims", "the kubelet's configuration"):
            assert word in told

    on_node(root, test)


def test_a_server_that_hangs_ends_the_question_and_not_the_look(root: Path) -> None:
    """The first question goes unanswered; the machine is looked at all the same."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        server.faults.append(Fault("hang", verb="discover"))
        (root / "plugins_registry/dead-reg.sock").touch()
        report = await look(server, root, patience=0.2)
        assert kinds(report) == {"api-server-unseen"}
        assert "no answer within 0 s" in report.findings[0].message

    on_node(root, test)


def test_a_list_that_hangs_is_the_only_thing_unseen(root: Path) -> None:
    """Its place in the report says so."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        server.faults.append(Fault("hang", verb="list"))
        report = await look(server, root, patience=0.5)
        assert kinds(report) == {"not-looked-at"}

    on_node(root, test)


def test_a_server_that_is_gone_and_no_server_at_all_are_told_alike(root: Path) -> None:
    """The rest is looked at."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        await server.stop()
        assert kinds(await look(server, root, patience=3.0)) == {"api-server-unseen"}
        without = await look(None, root)
        assert kinds(without) == {"api-server-unseen"}
        assert "no kubeconfig" in without.findings[0].message

    on_node(root, test)


def test_claims_whose_files_are_gone_and_files_without_a_claim_are_found(root: Path) -> None:
    """As after a reboot that emptied /var/run."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        made = preparer(root)
        made.prepare(claim("c1", "toy-1"))
        made.prepare(claim("c2", "toy-2"))
        (lost,) = (root / "cdi").glob("*claim_c1*")
        lost.unlink()
        with Database(root / "state").transaction() as tx:
            tx.connection.execute("DELETE FROM claims WHERE uid = 'c2'")
        found = kinds(await look(server, root))
        # The plugin doesn't run, and the API server never had these claims.
        assert found == {"claim-files-missing", "claim-spec-stale", "claim-gone", "driver-not-served"}

    on_node(root, test)


def test_a_plugin_that_accepts_and_is_silent_and_a_dead_one_are_told_apart(root: Path) -> None:
    """Neither holds the others up."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(root / "plugins_registry/mute-reg.sock"))
            silent.listen()
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(root / "plugins_registry/dead-reg.sock"))
            report = await look(server, root)
        assert kinds(report) == {"plugin-silent", "plugin-socket-dead"}

    on_node(root, test)


def test_a_directory_full_of_sockets_is_bounded(root: Path) -> None:
    """Some hundreds are looked at, and it is said that there are more."""

    async def test(server: NodeServer, kubelet: FakeKubelet) -> None:
        await kubelet.stop()
        directory = root / "device-plugins"
        for number in range(520):
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(directory / f"{number}.sock"))
        report = await look(server, root)
        (finding,) = (each for each in report.findings if each.kind == "not-looked-at")
        assert "more than 500" in finding.message

    on_node(root, test)


# the command


def test_the_command_ends_with_1_if_something_is_broken(root: Path) -> None:
    """And shows the same as text and as fields."""
    options = ["--node-name", NODE, "--kubelet-root", str(root / "none"), "--state-dir", str(root / "state")]
    environment = {"KUBECONFIG": str(root / "none"), "HOME": str(root)}
    shown = run("doctor", "--node", *options, environment=environment)
    assert shown.status == 1
    assert "broken: the kubelet's root directory isn't there" in shown.stdout
    assert "  fix: name it with --kubelet-root" in shown.stdout
    found = json.loads(run("doctor", "--node", *options, "-o", "json", environment=environment).stdout)
    assert found["broken"] is True
    assert found["node"] == NODE
    assert {"kind", "severity", "message", "fix", "where"} == set(found["findings"][0])
    assert found["findings"][0]["kind"] == "kubelet-directory-missing"


def test_the_command_knows_what_the_agent_should_publish(root: Path) -> None:
    """The profile is the one that the agent is started with; a file that can't be loaded is told."""
    common = ["doctor", "--node", "--kubelet-root", str(root), "--state-dir", str(root / "state"), "-o", "json"]
    environment = {"KUBECONFIG": str(root / "none"), "HOME": str(root), "NODE_NAME": NODE}
    found = json.loads(run(*common, "--profile", "l4-x4", environment=environment).stdout)
    assert found["node"] == NODE
    assert "no plugin of gpu.nvidia.com answers" in " ".join(each["message"] for each in found["findings"])
    broken = json.loads(run(*common, "--driver", str(root / "none.py"), environment=environment).stdout)
    assert "there is no such Python file" in " ".join(each["message"] for each in broken["findings"])


def test_the_command_reads_a_cluster(root: Path) -> None:
    """By a kubeconfig, as any other command."""

    async def test(server: NodeServer, _kubelet: FakeKubelet) -> None:
        file = root / "kubeconfig"
        file.write_text(kubeconfig(server.address), encoding="utf-8")
        options = ["--kubeconfig", str(file), "--node-name", NODE, "--kubelet-root", str(root)]
        command = ["-m", "draht", "doctor", "--node", *options, "--state-dir", str(root / "state"), "-o", "json"]
        environment = {**os.environ, "HOME": str(root)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE, env=environment
        )
        stdout, _ = await process.communicate()
        found = json.loads(stdout)
        assert process.returncode == 0, found
        assert found["versions"]["kubernetes"] == "v1.37.2"
        assert found["seen"] == {"slices": 0, "pods": 0}

    on_node(root, test)


def test_in_a_pod_nothing_is_said_of_files_of_the_host(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod's own root lacks the host's hooks and libraries, which is nobody's fault; a mounted root is looked at."""
    (root / "cdi").mkdir()
    edits = {"hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook-of-the-host"}]}
    spec = {"cdiVersion": "0.5.0", "kind": "vendor.example/gpu", "devices": [{"name": "0", "containerEdits": edits}]}
    (root / "cdi/gpu.json").write_text(json.dumps(spec), encoding="utf-8")
    monkeypatch.setattr(node_doctor, "in_pod", lambda: True)
    words = ["doctor", "--node", "--kubelet-root", str(root), "--cdi-dir", str(root / "cdi"), "-o", "json"]
    environment = {"KUBECONFIG": str(root / "none"), "HOME": str(root), "DRAHT_STATE_DIR": str(root / "state")}

    def found(*more: str) -> dict[str, str]:
        said = json.loads(run(*words, *more, environment=environment).stdout)
        return {each["kind"]: each["message"] for each in said["findings"]}

    assert "cdi-hook-missing" not in found()
    assert "what CDI specs name on the host" in found()["not-looked-at"]
    assert "cdi-hook-missing" in found("--host-root", str(root))


@pytest.mark.parametrize(
    ("host", "account", "expected"), [("10.0.0.1", True, True), ("10.0.0.1", False, False), ("", True, False)]
)
def test_a_pod_has_a_service_and_an_account(
    tmp_path: Path, host: str, account: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both; either alone is somebody's shell."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    assert node_doctor.in_pod(tmp_path if account else tmp_path / "none") is expected


def test_options_of_a_node_without_node_are_refused() -> None:
    """Instead of looking at something else than was meant."""
    refused = run("doctor", "--node-name", NODE)
    assert refused.status == 2
    assert "only `draht doctor --node` takes the options of a node" in refused.stderr


def test_the_examples_of_the_page_work() -> None:
    """Every command prints what the page shows."""
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryDirectory() as directory:
        assert run_examples(DOCS / "doctor.md", Path(directory), environment | {"HOME": directory}) == 2
