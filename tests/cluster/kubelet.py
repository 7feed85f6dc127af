"""A node's kubelet: its configuration, its identity and its directories.

Owns what a kubelet is told so that several of them share one machine and leave it as it was: own directories and
addresses, no firewall rules, no eviction for a full disk that isn't the cluster's fault.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path

from cluster import kubeconfig
from cluster.certificates import Authority
from cluster.component import Component
from cluster.profile import Profile
from cluster.space import Space

__all__ = ["Kubelet"]

PORT = 10250
HEALTH_PORT = 10248
START_PATIENCE = 60.0
"""Seconds until a kubelet must be healthy; on an idle machine it needs about one."""
NO_EVICTION = ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available")
"""Signals that a full disk or memory of this machine would give; the cluster isn't to blame for it."""


class Kubelet:
    """The kubelet of a node.

    Attributes:
        component: The process.
        root: Its root directory, with ``plugins``, ``plugins_registry``, ``device-plugins`` and ``pod-resources``.
    """

    def __init__(
        self, node: str, directory: Path, cluster_directory: Path, program: Path, address: str, space: Space
    ) -> None:
        self._node = node
        self._directory = directory
        self._address = address
        self._configuration = directory / "kubelet.json"
        self._kubeconfig = directory / "kubelet.kubeconfig"
        self.root = directory / "kubelet"
        self.component = Component(
            f"{node}-kubelet",
            cluster_directory,
            space.command(
                program,
                [
                    f"--config={self._configuration}",
                    f"--kubeconfig={self._kubeconfig}",
                    f"--root-dir={self.root}",
                    f"--cert-dir={directory}/pki",
                    f"--hostname-override={node}",
                    f"--node-ip={address}",
                ],
            ),
        )

    def wait_until_healthy(self) -> None:
        """Wait until it says that it works; whether the node is ready, it tells the API server later.

        Raises:
            ClusterError: It ended or wasn't healthy in time; with its log.
        """
        self.component.wait_until(self._answers, patience=START_PATIENCE)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self._address, HEALTH_PORT, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def make(self, authority: Authority, server: str, profile: Profile, runtime_socket: Path) -> None:
        """Make its configuration and certificate.

        Raises:
            CommandError: openssl refused.
        """
        for name in ("plugins", "plugins_registry", "device-plugins", "pod-resources"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        names = (f"DNS:{self._node}", f"IP:{self._address}")
        pair = authority.server(self._node, f"system:node:{self._node}", names, organization="system:nodes")
        kubeconfig.write(self._kubeconfig, server, authority.certificate, pair)
        (self._directory / "resolv.conf").touch()
        settings: Mapping[str, object] = {
            "kind": "KubeletConfiguration",
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "address": self._address,
            "port": PORT,
            "healthzBindAddress": self._address,
            "healthzPort": HEALTH_PORT,
            "tlsCertFile": str(pair.certificate),
            "tlsPrivateKeyFile": str(pair.key),
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "containerRuntimeEndpoint": f"unix://{runtime_socket}",
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            # So that nothing is fatal that takes a capability which this machine may not have.
            "featureGates": {"KubeletInUserNamespace": True, **dict.fromkeys(profile.gates, True)},
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "evictionHard": dict.fromkeys(NO_EVICTION, "0%"),
            "imageGCHighThresholdPercent": 100,
            # A pod whose devices couldn't be prepared is tried again at the next sync; by default that takes a minute.
            "syncFrequency": "2s",
            "podLogsDir": str(self._directory / "pods"),
            "volumePluginDir": str(self._directory / "volume-plugins"),
            "resolvConf": str(self._directory / "resolv.conf"),
            "kubeAPIQPS": 200,
            "kubeAPIBurst": 400,
        }
        self._configuration.write_text(json.dumps(settings, indent=1))
