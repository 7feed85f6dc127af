"""A node: its namespaces, its containerd and its kubelet, and what a test does to them.

Owns the order in which they start. What tests reach from outside (sockets, CDI directory) lies in the node's directory
and is the same inside and outside; what the kubelet mounts is seen inside only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cluster.certificates import Authority
from cluster.kubelet import Kubelet
from cluster.network import Network
from cluster.profile import Profile
from cluster.runtime import Runtime
from cluster.space import Space

__all__ = ["Node"]


class Node:
    """A node that runs pods.

    Attributes:
        name: As the API server knows it.
        index: Its number in the cluster.
        address: Its InternalIP.
        directory: Everything of it.
        kubelet_root: The kubelet's root directory, with ``plugins``, ``plugins_registry``, ``device-plugins`` and
            ``pod-resources``.
        cdi_directory: The only place where its containerd looks for CDI specs.
        containerd_socket: Where its containerd serves CRI.
    """

    def __init__(self, cluster_directory: Path, index: int, programs: Mapping[str, Path], network: Network) -> None:
        self.name = f"{cluster_directory.name}-{index}"
        self.index = index
        self.address = network.node_address(index)
        self.directory = cluster_directory / f"n{index}"
        self._network = network
        self._space = Space(cluster_directory, self.name, self.directory)
        self._runtime = Runtime(self.name, self.directory, cluster_directory, programs, self._space)
        self._kubelet = Kubelet(
            self.name, self.directory, cluster_directory, programs["kubelet"], self.address, self._space
        )
        self.kubelet_root = self._kubelet.root
        self.cdi_directory = self._runtime.cdi_directory
        self.containerd_socket = self._runtime.socket

    def start_runtime(self, images: Path) -> None:
        """Make the node's namespaces, start containerd in them and load images; needs no control plane.

        Raises:
            ClusterError: Something didn't start.
        """
        self.directory.mkdir()
        self._runtime.make(self._network.cni(self.index, self.directory / "addresses"))
        # Places that can't be configured, and are different for each node.
        self._space.make(
            {
                Path("/var/lib/kubelet"): self.kubelet_root,
                Path("/var/lib/cni"): self.directory / "cni-results",
                Path("/run/containerd"): self._runtime.state,
                Path("/var/log/containers"): self.directory / "container-logs",
            }
        )
        self._runtime.start()
        self._runtime.load(images)

    def make_kubelet(self, authority: Authority, server: str, profile: Profile) -> None:
        """Make the kubelet's configuration and certificate.

        Raises:
            CommandError: openssl refused.
        """
        self._kubelet.make(authority, server, profile, self._runtime.socket)

    def start_kubelet(self, *, wait: bool = True) -> None:
        """Start the kubelet.

        Args:
            wait: Whether to wait until it is healthy. When the node is ready, the API server knows.

        Raises:
            ClusterError: It ended or wasn't healthy in time; with its log.
        """
        self._kubelet.component.start()
        if wait:
            self._kubelet.wait_until_healthy()

    @property
    def kubelet_runs(self) -> bool:
        """Whether there is a kubelet process."""
        return self._kubelet.component.pid is not None

    def stop_kubelet(self, *, kill: bool = False) -> None:
        """Stop or kill the kubelet; containers go on."""
        self._kubelet.component.stop(kill=kill)

    def restart_kubelet(self, *, kill: bool = False) -> None:
        """Stop or kill the kubelet, start it again and wait until it is healthy.

        Raises:
            ClusterError: It ended or wasn't healthy in time; with its log.
        """
        self.stop_kubelet(kill=kill)
        self.start_kubelet()

    def restart_containerd(self, *, kill: bool = False) -> None:
        """Stop or kill containerd, start it again and wait until it serves; containers go on.

        Raises:
            ClusterError: It ended or wasn't ready in time.
        """
        self._runtime.component.stop(kill=kill)
        self._runtime.start()

    def log_tail(self, lines: int = 25) -> str:
        """The ends of the logs of kubelet and containerd."""
        parts = (self._kubelet.component, self._runtime.component)
        return "\n".join(f"--- {part.name}\n{part.log_tail(lines)}" for part in parts)
