"""A cluster: the one entry for tests and for ``make cluster-up``.

Owns the order in which a cluster is put together and taken apart, and what a test asks of it. A cluster has a name;
starting one removes what was left under that name, and every other cluster whose run was killed.
"""

from __future__ import annotations

import ipaddress
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import cluster_programs
from cluster import images, kubeconfig, leftovers, limits, place, ports
from cluster.certificates import Pair
from cluster.component import Component
from cluster.control_plane import START_PATIENCE, ControlPlane, Ports
from cluster.errors import ClusterError
from cluster.kubectl import Kubectl
from cluster.network import Network
from cluster.node import Node
from cluster.profile import Gates, profile
from cluster.simulated import SimulatedNodes
from cluster_programs import Version

__all__ = ["Cluster"]


class Cluster:
    """A running cluster.

    Attributes:
        name: What it was called.
        directory: Everything of it: kubeconfig, certificates, logs, sockets, the nodes' directories.
        kubeconfig: Of a member of system:masters.
        server: URL of the API server.
        node_names: Names of the real nodes.
        simulated_node_names: Names of the nodes that exist only in the API.
        kubectl: The kubectl command, called with its arguments; see `cluster.kubectl.Kubectl`.
    """

    def __init__(self, directory: Path, facts: dict[str, Any]) -> None:
        """Describe a cluster; use `up` or `open`."""
        self.name = directory.name
        self.directory = directory
        programs = cluster_programs.ensure(facts["version"])
        self._profile = profile(facts["version"], facts["gates"])
        self._network = Network(**facts["network"]) if facts["network"] else None
        # A control plane alone has no network in which its services could be reached.
        self._services = self._network.services if self._network else ipaddress.IPv4Network("10.96.0.0/16")
        self._plane = ControlPlane(
            directory,
            programs,
            self._profile,
            Ports(**facts["ports"]),
            str(self._services),
        )
        self.kubeconfig = self._plane.admin
        self.server = self._plane.server
        self._nodes = (
            {
                node.name: node
                for node in (Node(directory, index, programs, self._network) for index in range(facts["nodes"]))
            }
            if self._network
            else {}
        )
        self.node_names = tuple(self._nodes)
        self.kubectl = Kubectl(programs["kubectl"], directory)
        self._forwarder = self._described_forwarder(facts["ports"]["apiserver"])
        self._simulated = SimulatedNodes(directory, facts["simulated_nodes"], programs, self.kubectl)
        self.simulated_node_names = self._simulated.names
        self._identities = 0

    @classmethod
    def up(
        cls,
        name: str,
        *,
        nodes: int = 2,
        gates: Gates = "default",
        version: Version = "1.37",
        simulated_nodes: int = 0,
        outlives: bool = False,
    ) -> Self:
        """Start a cluster and wait until it can be used.

        Args:
            name: At most 16 letters, digits and dashes. What was left under it is removed first.
            nodes: Real nodes, each with kubelet and containerd; they need root. 0 is a control plane alone.
            gates: ``alpha`` turns on the unfinished features of dynamic resource allocation and of workloads.
            version: Minor release of Kubernetes.
            simulated_nodes: Nodes that exist only in the API; pods on them "run" because kwok says so.
            outlives: Whether it stays when this process ends. If not, the next start of any cluster removes it.

        Raises:
            ClusterError: It didn't come up; what had been started is removed.
            ValueError: There is no such profile of that release.
        """
        directory = place.directory_of(name)
        profile(version, gates)
        leftovers.remove_abandoned()
        with place.locked(name):
            leftovers.remove(directory)
            if nodes and os.geteuid() != 0:
                raise ClusterError("nodes need root; without it, start a cluster of 0 nodes")
            directory.mkdir(mode=0o700)
            facts = {
                "version": version,
                "gates": gates,
                "nodes": nodes,
                "simulated_nodes": simulated_nodes,
                "ports": asdict(Ports(*ports.free(5))),
                "network": None,
            }
            place.write_record(directory, facts, outlives=outlives)
            try:
                if nodes:
                    limits.raise_inotify_instances()
                    with place.locked(place.NETWORK):
                        network = Network.choose(directory)
                        network.make(nodes)
                    facts["network"] = asdict(network)
                    place.write_record(directory, facts, outlives=outlives)
                cluster = cls(directory, facts)
                cluster._start()
            except BaseException:
                leftovers.remove(directory)
                raise
            return cluster

    @classmethod
    def open(cls, name: str) -> Self:
        """A cluster that another process started.

        Raises:
            ClusterError: None of that name runs.
        """
        directory = place.directory_of(name)
        facts = place.read_record(directory)
        if facts is None:
            raise ClusterError(f"no cluster {name!r} runs; these do: {', '.join(place.names()) or 'none'}")
        facts.pop("owner")
        return cls(directory, facts)

    def down(self) -> None:
        """End it and remove everything of it.

        Raises:
            ClusterError: Something of it can't be removed.
        """
        with place.locked(self.name):
            self._plane.stop()
            leftovers.remove(self.directory)

    def apply(self, *objects: Mapping[str, object]) -> None:
        """Create or change objects, as ``kubectl apply`` does.

        Raises:
            CommandError: The API server refused one; the others are there.
        """
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.kubectl("apply", "--filename=-", input=json.dumps(listed))

    def start_apiserver(self) -> None:
        """Start the API server again, on the same port, and wait until it serves.

        Raises:
            ClusterError: It ended or wasn't ready in time; with its log.
        """
        self._plane.start_apiserver()

    def stop_apiserver(self, *, kill: bool = False) -> None:
        """Stop the API server, or kill it (SIGKILL)."""
        # Asked to end, it waits a minute for clients that watch, and there are always some.
        self._plane.components["kube-apiserver"].stop(kill=kill, patience=2)

    def restart_apiserver(self, *, kill: bool = False) -> None:
        """Stop or kill the API server, start it again and wait until it serves.

        Raises:
            ClusterError: It ended or wasn't ready in time; with its log.
        """
        self.stop_apiserver(kill=kill)
        self.start_apiserver()

    def log_tail(self, component: str, lines: int = 25) -> str:
        """The end of the log of a component of the control plane, such as ``kube-scheduler``."""
        return self._plane.components[component].log_tail(lines)

    def client_certificate(self, common_name: str, organizations: Sequence[str] = ()) -> Pair:
        """A client certificate for a user in groups.

        Raises:
            CommandError: openssl refused.
        """
        self._identities += 1
        return self._plane.authority.client(f"client-{self._identities}", common_name, organizations)

    def kubeconfig_for(self, user: str | None = None, *, groups: Sequence[str] = (), token: str | None = None) -> Path:
        """A kubeconfig for a user in groups, or for the bearer of a token.

        Raises:
            CommandError: openssl refused.
            ValueError: Not exactly one of user and token is given.
        """
        if (user is None) == (token is None):
            raise ValueError("a kubeconfig is for a user or for a token")
        identity = self.client_certificate(user, groups) if user is not None else token
        assert identity is not None
        self._identities += 1
        path = self.directory / f"kubeconfig-{self._identities}"
        return kubeconfig.write(path, self.server, self._plane.authority.certificate, identity)

    def service_account_token(
        self, namespace: str, name: str, *, node: str | None = None, pod: str | None = None
    ) -> str:
        """A token of a service account, of those that live for an hour.

        Args:
            namespace: The account's.
            name: The account's.
            node: Bind it to a node: it ends with the node, and requests made with it carry the node's name.
            pod: Bind it to a pod as a kubelet does; requests carry the names of the pod and its node.

        Raises:
            CommandError: There is no such account, node or pod.
        """
        bound = [("Node", node)] if node is not None else [("Pod", pod)] if pod is not None else []
        flags = [flag for kind, to in bound for flag in (f"--bound-object-kind={kind}", f"--bound-object-name={to}")]
        return self.kubectl("create", "token", name, f"--namespace={namespace}", *flags).strip()

    def node(self, name: str) -> Node:
        """A node.

        Raises:
            KeyError: There is no real node of that name.
        """
        return self._nodes[name]

    def wait_until_nodes_are_ready(self, *, patience: float = 60.0) -> None:
        """Wait until every real node is ready.

        Raises:
            ClusterError: One isn't in time; with the ends of its logs.
        """
        jsonpath = '{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
        until = time.monotonic() + patience
        while True:
            lines = self.kubectl("get", "nodes", f"--output=jsonpath={jsonpath}", check=False).splitlines()
            for node in self._nodes.values():
                if not node.kubelet_runs:  # the API server would go on to call the node ready for a while
                    raise ClusterError(f"the kubelet of node {node.name} doesn't run\n{node.log_tail()}")
            waiting = [node for node in self._nodes.values() if f"{node.name}=True" not in lines]
            if not waiting:
                return
            if time.monotonic() > until:
                raise ClusterError(
                    f"node {waiting[0].name} isn't ready after {patience:.0f} s\n{waiting[0].log_tail()}"
                )
            time.sleep(0.2)

    def _described_forwarder(self, port: int) -> Component | None:
        if self._network is None:
            return None
        program = Path(__file__).with_name("forwarder.py")
        arguments = (str(self._services[1]), "443", str(port))
        return Component("forwarder", self.directory, [sys.executable, program, *arguments])

    def _start(self) -> None:
        self._plane.make(str(self._services[1]))
        with ThreadPoolExecutor(1 + len(self._nodes)) as pool:
            runtimes = self._start_runtimes(pool)
            self._plane.start()
            for node in self._nodes.values():
                node.make_kubelet(self._plane.authority, self.server, self._profile)
            for runtime in runtimes:
                runtime.result()
        for node in self._nodes.values():
            node.start_kubelet(wait=False)
        if self._forwarder is not None:
            self._forwarder.start()
        self._plane.wait_until_ready()
        # Pods are refused until the controller manager has made this account.
        self._plane.components["kube-controller-manager"].wait_until(
            lambda: "default" in self.kubectl("get", "serviceaccounts", "--output=name", check=False),
            patience=START_PATIENCE,
            what="didn't make the default service account",
        )
        self._simulated.start()
        self.wait_until_nodes_are_ready()

    def _start_runtimes(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        if not self._nodes:
            return []
        archive = self.directory / "images.tar"
        images.write_archive(archive)
        return [pool.submit(node.start_runtime, archive) for node in self._nodes.values()]
