"""``draht node`` as a process on a node of the test cluster.

Owns how a test starts, stops and kills the agent, and what it asks it. The agent is the installed command with the
arguments that a person would give it; nothing of it is replaced.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster.cluster import Cluster
from cluster.component import Component
from cluster.ports import free
from draht.driver.claims.rows import all_claims
from draht.driver.database import Database

__all__ = ["Agent"]


class Agent:
    """One agent on one node.

    Args:
        cluster: The cluster.
        node_name: The node.
        arguments: Further arguments of ``draht node``.
        kubeconfig: Its identity; the administrator's if None.
        environment: Further variables.
        name: Tells several agents of a node apart.
    """

    def __init__(
        self,
        cluster: Cluster,
        node_name: str,
        *arguments: str,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
        name: str = "draht",
    ) -> None:
        self.node = cluster.node(node_name)
        self.port = free(1)[0]
        self.state_directory = self.node.directory / "state"
        self.metadata_directory = self.node.directory / "metadata"
        command: Sequence[str | Path] = [
            sys.executable,
            "-m",
            "draht",
            "node",
            *("--node-name", node_name),
            *("--kubeconfig", kubeconfig or cluster.kubeconfig),
            *("--kubelet-root", self.node.kubelet_root),
            *("--cdi-dir", self.node.cdi_directory),
            *("--state-dir", self.state_directory),
            *("--metadata-dir", self.metadata_directory),
            *("--listen", f"127.0.0.1:{self.port}"),
            *arguments,
        ]
        self.component = Component(f"{name}-{node_name}", cluster.directory, command, environment)

    def start(self, *, ready: bool = True) -> Agent:
        """Start it, and wait until it says that it is ready."""
        self.component.start()
        if ready:
            self.wait_until_ready()
        return self

    def stop(self, *, kill: bool = False) -> None:
        """Stop or kill it; what it prepared stays."""
        self.component.stop(kill=kill)

    def wait_until_ready(self, *, patience: float = 60.0) -> None:
        """Wait until ``/readyz`` is content.

        Raises:
            ClusterError: It ended, or didn't become ready; with its reasons and the end of its log.
        """
        self.component.wait_until(lambda: self.get("/readyz")[0] == 200, patience=patience)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page of its endpoint; status 0 while it doesn't answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def records(self) -> list[dict[str, Any]]:
        """What it logged so far, over all its starts."""
        lines = self.component.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def left_behind(self) -> list[str]:
        """What is on the node for claims: prepared claims, CDI specs and metadata; nothing once all pods are gone."""
        found = [path.name for path in self.node.cdi_directory.glob("*claim*")]
        found += [str(path) for path in self.metadata_directory.glob("*/*")] if self.metadata_directory.is_dir() else []
        if (self.state_directory / "state.db").exists():
            with Database(self.state_directory).reading() as tx:
                found += [each.record.title for each in all_claims(tx)]
        return found
