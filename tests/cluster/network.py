"""The cluster's network: one bridge that carries all pods and nodes, in a part of 10.0.0.0/8 that is free here.

Owns who has which address, and the bridge. Pods of all nodes are on one link, so nothing is routed or translated and no
firewall rule is needed; there is no kube-proxy, so services have addresses but nobody behind them. One service works,
the one that every pod needs: at the first service address a forwarder passes connections on to the API server.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError, CommandError

__all__ = ["Network", "bridge_of", "remove_bridge"]

CNI_PROGRAMS = Path("/usr/lib/cni")
"""Where Debian's containernetworking-plugins lie."""


@dataclass(frozen=True)
class Network:
    """The addresses of a cluster.

    Attributes:
        second: The second of the four numbers, the one that tells clusters apart.
        bridge: Name of the interface.
    """

    second: int
    bridge: str

    @property
    def services(self) -> ipaddress.IPv4Network:
        """Addresses of services."""
        return ipaddress.IPv4Network(f"10.{self.second}.224.0/20")

    @property
    def gateway(self) -> str:
        """The machine itself, as pods see it."""
        return f"10.{self.second}.255.254"

    def node_address(self, index: int) -> str:
        """The address at which a node's kubelet serves."""
        return f"10.{self.second}.255.{index + 1}"

    def cni(self, index: int, state: Path) -> str:
        """CNI configuration of a node: the bridge, and addresses that no other node gives away.

        Args:
            index: The node's.
            state: Where the plugin remembers which addresses are taken.
        """
        addresses = {
            "subnet": f"10.{self.second}.0.0/16",
            "rangeStart": f"10.{self.second}.{index}.2",
            "rangeEnd": f"10.{self.second}.{index}.254",
            "gateway": self.gateway,
        }
        bridge = {
            "type": "bridge",
            "bridge": self.bridge,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[addresses]],
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": str(state),
            },
        }
        return json.dumps({"cniVersion": "1.0.0", "name": "cluster", "plugins": [bridge]}, indent=1)

    def make(self, nodes: int) -> None:
        """Make the bridge with the addresses of the machine, the API server and the nodes.

        Raises:
            CommandError: ``ip`` refused.
        """
        _ip("link", "add", "name", self.bridge, "type", "bridge")
        own = [self.gateway, str(self.services[1]), *(self.node_address(index) for index in range(nodes))]
        for address in own:
            _ip("address", "add", f"{address}/16", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")

    @classmethod
    def choose(cls, directory: Path) -> Network:
        """A network that overlaps with none this machine knows.

        Raises:
            ClusterError: All are in use.
        """
        routes = [ipaddress.IPv4Network(route["dst"]) for route in _routes() if route["dst"] != "default"]
        for second in range(201, 251):
            if not any(ipaddress.IPv4Network(f"10.{second}.0.0/16").overlaps(route) for route in routes):
                return cls(second, bridge_of(directory))
        raise ClusterError("no network between 10.201.0.0/16 and 10.250.0.0/16 is free on this machine")


def bridge_of(directory: Path) -> str:
    """The name of a cluster's bridge; interfaces have names of at most 15 bytes."""
    return f"dc-{hashlib.sha256(str(directory).encode()).hexdigest()[:10]}"


def remove_bridge(directory: Path) -> None:
    """Remove a cluster's bridge, if it has one; the pods' ends of it went with their processes."""
    if Path("/sys/class/net", bridge_of(directory)).exists():
        with contextlib.suppress(CommandError):  # gone meanwhile
            _ip("link", "delete", bridge_of(directory))


def _routes() -> list[dict[str, str]]:
    routes: list[dict[str, str]] = json.loads(_ip("-4", "-json", "route", "show", "table", "all") or "[]")
    return routes


def _ip(*arguments: str) -> str:
    done = subprocess.run(
        ["ip", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    if done.returncode != 0:
        raise CommandError(["ip", *arguments], done.returncode, done.stdout, done.stderr)
    return done.stdout
