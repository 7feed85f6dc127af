"""The kubelet's directories, its sockets, and the plugins behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from draht.api.finding import Finding
from draht.node.doctor.scene import Scene

__all__ = ["CHECKS", "OTHER_DEVICE_PLUGINS"]

OTHER_DEVICE_PLUGINS: Final = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
"""How the sockets of the vendors' device plugins begin → the extended resource that they serve."""


def _directories(scene: Scene) -> Iterator[Finding]:
    kubelet = scene.directories.kubelet
    if scene.exists(kubelet) == "missing":
        yield Finding(
            kind="kubelet-directory-missing",
            severity="broken",
            message="the kubelet's root directory isn't there",
            fix="name it with --kubelet-root, or mount it into the pod; some distributions move it",
            where=str(kubelet),
        )
        return
    for name in ("plugins_registry", "plugins"):
        condition = scene.exists(kubelet / name)
        if condition == "missing":
            yield Finding(
                kind="kubelet-directory-missing",
                severity="broken",
                message="the kubelet looks for plugins in a directory that isn't there",
                fix="start the kubelet, which makes it, and mount it into the agent's pod",
                where=str(kubelet / name),
            )
        elif condition == "readable":
            yield Finding(
                kind="kubelet-directory-not-writable",
                severity="warning",
                message="who asks can't write here, so an agent with these rights can't serve",
                fix="run draht node as root, with the directory mounted read-write",
                where=str(kubelet / name),
            )


def _kubelet_answers(scene: Scene) -> Iterator[Finding]:
    """The kubelet serves two sockets itself; where both are dead or missing it doesn't run."""
    kubelet = scene.directories.kubelet
    own = [kubelet / "device-plugins" / "kubelet.sock", kubelet / "pod-resources" / "kubelet.sock"]
    if scene.exists(kubelet) != "missing" and not any(scene.local.sockets.get(path) for path in own):
        yield Finding(
            kind="kubelet-not-running",
            severity="broken",
            message="nobody serves the kubelet's own sockets, so it doesn't run",
            fix="see `systemctl status kubelet` and `journalctl -u kubelet`",
            where=str(own[0]),
        )


def _dead_sockets(scene: Scene) -> Iterator[Finding]:
    registry = scene.directories.kubelet / "plugins_registry"
    answered = {plugin.socket for plugin in scene.local.plugins}
    for path, served in scene.local.sockets.items():
        if path.name == "kubelet.sock":
            continue
        if not served:
            yield Finding(
                kind="plugin-socket-dead",
                severity="warning",
                message="nobody serves this socket: its plugin was killed and isn't back",
                fix="start the plugin again; draht removes its own dead sockets when it starts",
                where=str(path),
            )
        elif path.parent == registry and path not in answered:
            yield Finding(
                kind="plugin-silent",
                severity="warning",
                message="a plugin accepts connections here but doesn't say who it is: the kubelet doesn't register it",
                fix=f"see which process it is (`ss -xlp | grep {path.name}`) and its log",
                where=str(path),
            )


def _endpoints(scene: Scene) -> Iterator[Finding]:
    """Plugins that registered with a service socket that isn't served."""
    for plugin in scene.local.plugins:
        known = scene.local.sockets.get(plugin.endpoint)
        # A socket elsewhere wasn't looked at.
        elsewhere = plugin.endpoint.parent.parent != scene.directories.kubelet / "plugins"
        if known is False or (known is None and not elsewhere):
            yield Finding(
                kind="driver-endpoint-dead",
                severity="broken",
                message=f"the plugin of {plugin.name} is registered, but nobody serves the socket it named",
                fix="start that plugin again",
                where=str(plugin.endpoint),
            )


def _two_plugins(scene: Scene) -> Iterator[Finding]:
    for name, plugins in scene.drivers().items():
        if len(plugins) < 2:
            continue
        where = " and ".join(str(plugin.socket) for plugin in plugins)
        if all(plugin.draht for plugin in plugins):
            yield Finding(
                kind="driver-in-handover",
                severity="note",
                message=f"{len(plugins)} instances of draht serve {name}; that is normal during an upgrade",
                fix="if it stays so, see which pods of the DaemonSet are on this node",
                where=where,
            )
        else:
            yield Finding(
                kind="driver-registered-twice",
                severity="broken",
                message=f"{len(plugins)} plugins are registered as {name}: the kubelet asks the last one, "
                "which doesn't know what the others prepared",
                fix="keep one of them off this node (docs/kubelet.md, taking over a driver)",
                where=where,
            )


def _foreign_plugin(scene: Scene) -> Iterator[Finding]:
    for name, plugins in scene.drivers().items():
        if name in scene.expected.offers and len(plugins) == 1 and not plugins[0].draht:
            yield Finding(
                kind="driver-foreign",
                severity="warning",
                message=f"another plugin serves {name} on this node, so draht doesn't start",
                fix="drain the node and keep that plugin off it (docs/kubelet.md, taking over a driver)",
                where=str(plugins[0].socket),
            )


def _not_served(scene: Scene) -> Iterator[Finding]:
    drivers = scene.drivers()
    for name in sorted(scene.ours()):
        if name not in drivers:
            yield Finding(
                kind="driver-not-served",
                severity="broken",
                message=f"no plugin of {name} answers in the kubelet's registry, so pods with its devices don't start",
                fix="start draht node, or see its /readyz and log",
                where=str(scene.directories.kubelet / "plugins_registry"),
            )


def _served_twice(scene: Scene) -> Iterator[Finding]:
    """A vendor's device plugin beside a DRA driver for the same GPUs: each gives all of them away."""
    for path, served in scene.local.sockets.items():
        if not served or path.parent.name != "device-plugins" or path.name.startswith("draht-"):
            continue
        for prefix, resource in OTHER_DEVICE_PLUGINS.items():
            driver = f"gpu.{prefix}.com"
            if path.name.startswith(prefix) and driver in scene.drivers():
                yield Finding(
                    kind="gpu-offered-twice",
                    severity="broken",
                    message=f"another device plugin gives {resource} away while {driver} gives the same GPUs to claims",
                    fix=f"keep that device plugin off this node; draht node --device-plugin serves {resource} beside "
                    "claims, each GPU by one of the two",
                    where=str(path),
                )


CHECKS: Final[tuple[Callable[[Scene], Iterator[Finding]], ...]] = (
    _directories,
    _kubelet_answers,
    _dead_sockets,
    _endpoints,
    _two_plugins,
    _foreign_plugin,
    _not_served,
    _served_twice,
)
