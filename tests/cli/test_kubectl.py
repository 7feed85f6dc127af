"""``kubectl draht``: it reads the cluster, and completes as kubectl wants it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli_cluster import CLAIM, SLICES
from draht.cli.kubectl import completions
from draht.cli.live import PLUGIN, Connection
from draht.cli.main import COMMANDS
from fake_node_server import NodeServer
from live_server import live


def test_commands_are_completed_with_their_help() -> None:
    """One a line, a tab before the help, and cobra's directive at the end: no file names."""
    *lines, directive = completions([""])
    assert lines == [f"{name}\t{text}" for name, text in sorted(COMMANDS.items())]
    assert directive == ":4"
    assert completions(["al"]) == [f"allocate\t{COMMANDS['allocate']}", ":4"]
    assert completions([]) == completions([""])


def test_options_are_completed_within_their_command() -> None:
    """Those of explain, and of nothing else."""
    *lines, directive = completions(["explain", "--kube"])
    assert [line.partition("\t")[0] for line in lines] == ["--kubeconfig", "--kubernetes"]
    assert directive == ":4"
    assert [line.partition("\t")[0] for line in completions(["explain", "-o", "j"])] == ["json", ":4"]


def test_where_a_path_is_wanted_the_shell_completes_files() -> None:
    """Cobra's default directive."""
    assert completions(["explain", "--kubeconfig", ""]) == [":0"]


def test_nonsense_completes_to_nothing() -> None:
    """Whatever is typed; a completion must never fail."""
    for words in (["nothing", ""], ["explain", "--nothing", ""], ["--", ""], ["explain", "\udcff"]):
        assert completions(words)[-1] in {":0", ":4"}


@pytest.mark.parametrize("words", [[], ["--cluster"], ["--context", "x"], ["--kubeconfig", "f"]])
def test_as_a_plugin_the_cluster_is_always_meant(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside, only if something names it."""
    options = {word.removeprefix("--"): True for word in words[:1]}
    connection = Connection(
        cluster="cluster" in options,
        context="x" if "context" in options else None,
        kubeconfig="f" if "kubeconfig" in options else None,
    )
    assert connection.wanted is bool(words)
    monkeypatch.setenv(PLUGIN, "1")
    assert connection.wanted


def test_the_plugin_reads_the_cluster_beside_files(tmp_path: Path) -> None:
    """The installed program, as kubectl starts it: without an option that names the cluster."""
    program = Path(sys.executable).with_name("kubectl-draht")
    with live(NodeServer) as cluster:
        cluster.apply(SLICES)
        environment = {"PATH": "/usr/bin:/bin", "KUBECONFIG": cluster.kubeconfig(tmp_path), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [program, "explain", "-f", "-", "claim/pair"],
            input=CLAIM.encode(),
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "node-2" in done.stdout.decode()


def test_the_completion_program_answers_kubectl(tmp_path: Path) -> None:
    """It gets the words after ``draht``."""
    program = Path(sys.executable).with_name("kubectl_complete-draht")
    done = subprocess.run([program, "devi"], capture_output=True, timeout=60, check=False, cwd=tmp_path)
    assert done.stdout.decode().splitlines() == [f"devices\t{COMMANDS['devices']}", ":4"]
