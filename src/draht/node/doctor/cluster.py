"""The Node object, the releases around the node, what the agent may do, and the node's labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from draht.api.finding import Finding
from draht.api.quantity import Quantity
from draht.node.doctor.kubelet import OTHER_DEVICE_PLUGINS
from draht.node.doctor.runtimes import cdi_support
from draht.node.doctor.scene import Scene
from draht.node.node_labels import DISCOVERY, label_patch

__all__ = ["CHECKS"]

_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)")
OLDEST: Final = (1, 32)
"""First kubelet whose DRA interface (``v1beta1.DRAPlugin``) draht speaks."""
OVERLAPPING: Final = (1, 33)
"""First kubelet that keeps several instances of a driver apart."""
GENERAL: Final = (1, 34)
"""First release with `resource.k8s.io/v1` and ``v1.DRAPlugin``."""
NODE_GATES: Final = {
    "DynamicResourceAllocation": "broken",
    "KubeletPodResourcesDynamicResources": "note",
    "ResourceHealthStatus": "note",
    "DevicePluginCDIDevices": "warning",
}
"""Gates of the kubelet that matter here → what it means that one is off."""
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


def _node(scene: Scene) -> Iterator[Finding]:
    remote = scene.remote
    if remote.node_missing:
        yield Finding(
            kind="node-unknown",
            severity="broken",
            message=f"the cluster has no node {scene.node_name}",
            fix="give the name that `kubectl get nodes` shows with --node-name; a kubelet registers its node itself",
            where=f"node {scene.node_name}",
        )
    if remote.node is None:
        return
    ready = next((each for each in remote.node.status.conditions if each.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        yield Finding(
            kind="node-not-ready",
            severity="broken",
            message=f"the node isn't ready: {ready.message or ready.reason or ready.status}",
            fix="see `kubectl describe node` and the kubelet's log",
            where=f"node {scene.node_name}",
        )
    if remote.node.spec.unschedulable:
        yield Finding(
            kind="node-cordoned",
            severity="note",
            message="the node takes no new pods",
            fix=f"kubectl uncordon {scene.node_name}",
            where=f"node {scene.node_name}",
        )


def _boot(scene: Scene) -> Iterator[Finding]:
    if scene.remote.node is None:
        return
    known = scene.remote.node.status.node_info.boot_id
    if known and scene.local.boot_id not in {"unknown", known}:
        yield Finding(
            kind="another-boot",
            severity="warning",
            message=f"this machine's boot id isn't the one of node {scene.node_name}: it is another machine, or the "
            "kubelet hasn't reported since the reboot",
            fix="run it on the node itself, or give the name of this one with --node-name",
            where=f"node {scene.node_name}",
        )


def _kubelet_release(scene: Scene) -> Iterator[Finding]:
    if scene.remote.node is None:
        return
    text = scene.remote.node.status.node_info.kubelet_version
    release = _release(text)
    if release is None:
        return
    where = f"node {scene.node_name}"
    if release < OLDEST:
        yield Finding(
            kind="kubelet-too-old",
            severity="broken",
            message=f"the kubelet {text} speaks no version of DRA that draht does",
            fix="update the node to Kubernetes 1.34 or newer",
            where=where,
        )
    elif release < GENERAL:
        overlap = "" if release >= OVERLAPPING else ", and an agent must end before the next one starts"
        yield Finding(
            kind="kubelet-older",
            severity="note",
            message=f"the kubelet {text} speaks v1beta1 of DRA, without shares of devices{overlap}",
            fix="update the node to Kubernetes 1.34 or newer",
            where=where,
        )


def _kubelet_gates(scene: Scene) -> Iterator[Finding]:
    gates: Any = (scene.remote.kubelet_config or {}).get("featureGates") or {}
    for gate, severity in NODE_GATES.items():
        if gates.get(gate) is False:
            yield Finding(
                kind="kubelet-gate-off",
                severity="broken" if severity == "broken" else "warning" if severity == "warning" else "note",
                message=f"the kubelet's feature gate {gate} is off",
                fix=f"remove {gate}: false from featureGates in the kubelet's configuration and restart it",
                where=f"node {scene.node_name}",
            )


def _runtime(scene: Scene) -> Iterator[Finding]:
    if scene.remote.node is None:
        return
    text = scene.remote.node.status.node_info.container_runtime_version
    match cdi_support(text) if text else "on":
        case "none":
            yield Finding(
                kind="runtime-without-cdi",
                severity="broken",
                message=f"the container runtime {text} knows no CDI, so containers get no devices",
                fix="update it: containerd 2.0 and cri-o 1.23 have CDI on",
                where=f"node {scene.node_name}",
            )
        case "opt-in":
            yield Finding(
                kind="runtime-cdi-opt-in",
                severity="warning",
                message=f"the container runtime {text} reads CDI only where its configuration says so",
                fix='set enable_cdi = true and cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"] in the CRI plugin of '
                "containerd's config.toml, or update to 2.0",
                where=f"node {scene.node_name}",
            )
        case "unknown":
            yield Finding(
                kind="runtime-unknown",
                severity="note",
                message=f"whether the container runtime {text} reads CDI isn't known here",
                fix="see its documentation; the kubelet hands CDI names over in the CRI",
                where=f"node {scene.node_name}",
            )


def _api(scene: Scene) -> Iterator[Finding]:
    served = scene.remote.served
    if served is None:
        return
    if not any(version in {"v1", "v1beta2", "v1beta1"} for version in served):
        has = f"only {', '.join(served)} of resource.k8s.io" if served else "no resource.k8s.io"
        yield Finding(
            kind="dra-not-served",
            severity="broken",
            message=f"the API server {scene.remote.version} serves {has}, so there are no claims",
            fix="update to Kubernetes 1.34; on 1.32 and 1.33 turn DynamicResourceAllocation and the API group on",
        )
    elif "v1" not in served:
        yield Finding(
            kind="api-older",
            severity="note",
            message=f"the API server serves {', '.join(served)} of resource.k8s.io; draht converts",
            fix="fields of newer releases aren't kept; see docs/deploy.md, older clusters",
        )


def _permissions(scene: Scene) -> Iterator[Finding]:
    missing = [each.words for each in scene.remote.permissions if not each.allowed]
    if not missing:
        return
    user = scene.remote.user or "who asks"
    agent = user.startswith(_SERVICE_ACCOUNT)
    yield Finding(
        kind="permission-missing",
        severity="broken" if agent else "note",
        message=f"{user} may not {', '.join(missing)}"
        + ("" if agent else "; an agent with this identity couldn't work"),
        fix="kubectl apply -k deploy/base, whose role draht-node allows it"
        if agent
        else "ask with the agent's identity to see what it may do",
    )


def _labels(scene: Scene) -> Iterator[Finding]:
    node = scene.remote.node
    if node is None or not scene.expected.labels:
        return
    where = f"node {scene.node_name}"
    if DISCOVERY in node.metadata.labels:
        yield Finding(
            kind="labels-by-feature-discovery",
            severity="note",
            message="NVIDIA's feature discovery labels this node, so draht writes no labels",
            fix="remove it from the node to have draht's, or start draht node with --no-labels",
            where=where,
        )
        return
    for key in label_patch(node, scene.expected.labels).taken:
        yield Finding(
            kind="label-taken",
            severity="warning",
            message=f"somebody else has written the label {key} as {node.metadata.labels[key]}; "
            f"it should be {scene.expected.labels[key]}",
            fix=f"kubectl label node {scene.node_name} {key}- and stop what writes it",
            where=where,
        )


def _counted(scene: Scene) -> Iterator[Finding]:
    """GPUs by number and by claim on one node, where it can't be seen that they were split between the two."""
    node = scene.remote.node
    if node is None or scene.remote.slices is None:
        return
    plugins = [
        path.name for path, served in scene.local.sockets.items() if path.parent.name == "device-plugins" and served
    ]
    for prefix, resource in OTHER_DEVICE_PLUGINS.items():
        driver = f"gpu.{prefix}.com"
        by_claim = sum(len(each.spec.devices) for each in scene.remote.slices if each.spec.driver == driver)
        by_number = Quantity(str(node.status.allocatable.get(resource, 0)))
        known = any(name.startswith((prefix, "draht-")) for name in plugins)
        if by_claim and by_number > Quantity("0") and not known:
            yield Finding(
                kind="gpu-counted-and-claimed",
                severity="warning",
                message=f"the node has {by_number} {resource} and {by_claim} devices of {driver}: the same GPUs?",
                fix=f"see who serves {resource}; draht node --device-plugin splits GPUs between the two",
                where=f"node {scene.node_name}",
            )


def _release(text: str) -> tuple[int, int] | None:
    match = _RELEASE.match(text)
    return (int(match.group(1)), int(match.group(2))) if match is not None else None


CHECKS: Final[tuple[Callable[[Scene], Iterator[Finding]], ...]] = (
    _node,
    _boot,
    _kubelet_release,
    _kubelet_gates,
    _runtime,
    _api,
    _permissions,
    _labels,
    _counted,
)
