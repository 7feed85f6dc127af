"""The control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on loopback.

Owns their flags, the order in which they start and when they count as ready. It needs no root. What differs from
production: etcd doesn't wait for the disk, nobody elects a leader, and clients aren't slowed down to 20 requests/s.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cluster import kubeconfig
from cluster.certificates import Authority, Pair
from cluster.component import Component
from cluster.profile import Profile

__all__ = ["ControlPlane", "Ports"]

START_PATIENCE = 60.0
"""Seconds until a component must be ready; on an idle machine each needs about two."""
ISSUER = "https://kubernetes.default.svc.cluster.local"


@dataclass(frozen=True)
class Ports:
    """Ports on 127.0.0.1."""

    apiserver: int
    etcd: int
    etcd_peer: int
    controllers: int
    scheduler: int


class ControlPlane:
    """The four components of a control plane in a directory.

    Attributes:
        authority: The cluster's certificate authority.
        server: URL of the API server.
        admin: Kubeconfig of a member of system:masters.
        components: By the names that Kubernetes gives them.
    """

    def __init__(
        self, directory: Path, programs: Mapping[str, Path], profile: Profile, ports: Ports, services: str
    ) -> None:
        """Describe a control plane; nothing is made or started.

        Args:
            directory: The cluster's.
            programs: What `cluster_programs.ensure` returned.
            profile: Release, gates and API versions.
            ports: Free ones.
            services: The network of service addresses; its first address is the API server's.
        """
        self._directory = directory
        self._programs = programs
        self._profile = profile
        self._ports = ports
        self._services = services
        self._pki = directory / "pki"
        self.authority = Authority(self._pki)
        self.server = f"https://127.0.0.1:{ports.apiserver}"
        self.admin = directory / "kubeconfig"
        self.components = {
            "etcd": self._component("etcd", self._etcd()),
            "kube-apiserver": self._component("kube-apiserver", self._apiserver()),
            "kube-controller-manager": self._component("kube-controller-manager", self._controllers()),
            "kube-scheduler": self._component("kube-scheduler", self._scheduler()),
        }

    def make(self, first_service_address: str) -> None:
        """Make certificates and configuration.

        Raises:
            CommandError: openssl refused.
        """
        self.authority.make()
        local = ("DNS:localhost", "IP:127.0.0.1")
        service = tuple(
            f"DNS:kubernetes{rest}" for rest in ("", ".default", ".default.svc", ".default.svc.cluster.local")
        )
        with ThreadPoolExecutor(4) as pool:
            tasks: list[Callable[[], object]] = [
                lambda: self.authority.signing_key("service-accounts"),
                lambda: self.authority.server("etcd", "etcd", local),
                lambda: self.authority.server(
                    "apiserver", "kube-apiserver", (*local, *service, f"IP:{first_service_address}")
                ),
                lambda: self.authority.client("apiserver-client", "kube-apiserver", ["system:masters"]),
                lambda: self.authority.client("front-proxy", "front-proxy"),
                lambda: self._write(self.admin, self.authority.client("admin", "admin", ["system:masters"])),
                lambda: self._client("kube-controller-manager"),
                lambda: self._client("kube-scheduler"),
            ]
            list(pool.map(lambda task: task(), tasks))
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self._own("kube-scheduler")), "qps": 1000, "burst": 2000},
        }
        (self._directory / "scheduler.json").write_text(json.dumps(configuration, indent=1))

    def start(self) -> None:
        """Start everything and wait until the API server serves; the other two need not be ready yet.

        Raises:
            ClusterError: A component ended or wasn't ready in time.
        """
        self.components["etcd"].start()  # the API server waits for it by itself
        self.start_apiserver()
        self.components["kube-controller-manager"].start()
        self.components["kube-scheduler"].start()

    def start_apiserver(self) -> None:
        """Start the API server and wait until it serves.

        Raises:
            ClusterError: It ended or wasn't ready in time.
        """
        server = self.components["kube-apiserver"]
        server.start()
        server.wait_until(lambda: self._answers(self._ports.apiserver, "/readyz"), patience=START_PATIENCE)

    def wait_until_ready(self) -> None:
        """Wait for the components that `start` doesn't wait for.

        Raises:
            ClusterError: A component ended or wasn't ready in time.
        """
        for name, port in (
            ("kube-controller-manager", self._ports.controllers),
            ("kube-scheduler", self._ports.scheduler),
        ):
            self.components[name].wait_until(
                lambda port=port: self._answers(port, "/healthz"),  # type: ignore[misc]  # mypy: the default binds it
                patience=START_PATIENCE,
            )

    def stop(self) -> None:
        """End everything, etcd last."""
        for component in reversed(self.components.values()):
            component.stop(kill=True)  # nothing of it is kept, so there is nothing to end in order

    def _component(self, name: str, arguments: list[str]) -> Component:
        return Component(name, self._directory, [self._programs[name], *arguments])

    def _client(self, component: str) -> None:
        self._write(self._own(component), self.authority.client(component, f"system:{component}"))

    def _own(self, component: str) -> Path:
        return self._pki / f"{component}.kubeconfig"

    def _write(self, path: Path, identity: Pair) -> None:
        kubeconfig.write(path, self.server, self.authority.certificate, identity)

    def _answers(self, port: int, path: str) -> bool:
        # Who answers doesn't matter here: two of the three sign their certificates themselves.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _etcd(self) -> list[str]:
        client, peer = (f"https://127.0.0.1:{port}" for port in (self._ports.etcd, self._ports.etcd_peer))
        files = (f"cert-file={self._pki}/etcd.crt", f"key-file={self._pki}/etcd.key")
        trust = ("client-cert-auth", f"trusted-ca-file={self._pki}/ca.crt")
        return [
            "--name=etcd",
            f"--data-dir={self._directory}/etcd",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=etcd={peer}",
            # Whoever writes to etcd can start privileged pods, so not every user of the machine may.
            *(f"--{flag}" for flag in (*files, *trust)),
            *(f"--peer-{flag}" for flag in (*files, *trust)),
        ]

    def _apiserver(self) -> list[str]:
        pki = self._pki
        return [
            f"--etcd-servers=https://127.0.0.1:{self._ports.etcd}",
            f"--etcd-cafile={pki}/ca.crt",
            f"--etcd-certfile={pki}/etcd.crt",
            f"--etcd-keyfile={pki}/etcd.key",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._ports.apiserver}",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--endpoint-reconciler-type=none",
            "--allow-privileged",
            f"--service-cluster-ip-range={self._services}",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={pki}/service-accounts.pub",
            f"--service-account-signing-key-file={pki}/service-accounts.key",
            f"--kubelet-certificate-authority={pki}/ca.crt",
            f"--kubelet-client-certificate={pki}/apiserver-client.crt",
            f"--kubelet-client-key={pki}/apiserver-client.key",
            "--kubelet-preferred-address-types=InternalIP",
            # Without the request header's authority, the other components complain every few seconds.
            f"--requestheader-client-ca-file={pki}/ca.crt",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki}/front-proxy.crt",
            f"--proxy-client-key-file={pki}/front-proxy.key",
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1000",
            f"--runtime-config={self._profile.runtime_config}",
            *self._profile.gate_flags,
        ]

    def _controllers(self) -> list[str]:
        own = self._own("kube-controller-manager")
        pki = self._pki
        return [
            f"--kubeconfig={own}",
            f"--authentication-kubeconfig={own}",
            f"--authorization-kubeconfig={own}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports.controllers}",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={pki}/service-accounts.key",
            f"--root-ca-file={pki}/ca.crt",
            f"--cluster-signing-cert-file={pki}/ca.crt",
            f"--cluster-signing-key-file={pki}/ca.key",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            *self._profile.gate_flags,
        ]

    def _scheduler(self) -> list[str]:
        own = self._own("kube-scheduler")
        return [
            f"--config={self._directory}/scheduler.json",
            f"--authentication-kubeconfig={own}",
            f"--authorization-kubeconfig={own}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports.scheduler}",
            *self._profile.gate_flags,
        ]
