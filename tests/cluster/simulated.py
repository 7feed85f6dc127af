"""Simulated nodes: objects in the API that kwok keeps ready, and on which it says that pods run.

Owns kwok and the objects. For questions of scale, where the control plane is what is tested. Nothing runs on these
nodes; the label `LABEL` says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cluster.component import Component
from cluster.kubectl import Kubectl

__all__ = ["LABEL", "SimulatedNodes"]

STAGES = Path(__file__).with_name("stages.yaml")
LABEL = "draht.dev/simulated"
"""Label of every simulated node; its value is ``true``."""
CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "110"}
READY_PER_SECOND = 20
"""How many nodes must become ready in a second, at the least."""


class SimulatedNodes:
    """Nodes that exist only in the API.

    Attributes:
        names: Theirs.
    """

    def __init__(self, directory: Path, count: int, programs: Mapping[str, Path], kubectl: Kubectl) -> None:
        self.names = tuple(f"{directory.name}-simulated-{number}" for number in range(count))
        self._kubectl = kubectl
        self._kwok = Component(
            "kwok",
            directory,
            [
                programs["kwok"],
                f"--kubeconfig={directory}/kubeconfig",
                f"--manage-nodes-with-label-selector={LABEL}=true",
                "--node-lease-duration-seconds=40",
                # Addresses that nobody has (RFC 2544, for benchmarks).
                "--cidr=198.18.0.0/15",
                "--node-ip=198.18.0.1",
                f"--config={STAGES}",
                "--v=WARN",
            ],
            {"HOME": str(directory)},
        )

    def start(self) -> None:
        """Make the nodes and wait until all are ready.

        Raises:
            ClusterError: They aren't in time; with the log of kwok.
        """
        if not self.names:
            return
        self._kwok.start()
        nodes = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {LABEL: "true", "kubernetes.io/hostname": name}},
                "status": {"capacity": CAPACITY, "allocatable": CAPACITY},
            }
            for name in self.names
        ]
        patience = 30 + len(nodes) / READY_PER_SECOND
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes})
        self._kubectl("create", "--filename=-", input=listed, timeout=patience)
        self._kwok.wait_until(self._are_ready, patience=patience, what="didn't make all nodes ready")

    def _are_ready(self) -> bool:
        jsonpath = '{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
        said = self._kubectl("get", "nodes", f"--selector={LABEL}=true", f"--output=jsonpath={jsonpath}")
        return said.split().count("True") == len(self.names)
