"""A node that ``draht doctor --node`` finds nothing wrong with, to be spoilt in one point."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace as replaced

from draht import cdi
from draht.api.core import Container, Node, Pod
from draht.api.core.node import NodeCondition, NodeStatus, NodeSystemInfo
from draht.api.core.pod import PodResourceClaim, PodSpec
from draht.api.core.pod_status import PodStatus
from draht.api.finding import Finding
from draht.api.meta import ObjectMeta, OwnerReference
from draht.api.resource import (
    Device,
    DeviceAttribute,
    ResourceClaimConsumerReference,
    ResourceSlice,
)
from draht.driver.claims.rows import Claim, Record
from draht.driver.framework import Offer, Offered
from draht.driver.slices import pool_slices
from draht.node.doctor import Expectation, NodeDirectories, Scene
from draht.node.doctor.report import CHECKS
from draht.node.doctor.scene import Local, Permission, Remote
from draht.node.kubelet.registered import DRA_PLUGIN, RegisteredPlugin
from toy_driver import claim as allocated
from toy_driver import device

__all__ = [
    "DEVICE_PLUGINS",
    "DRIVER",
    "NODE",
    "OFFER",
    "PLUGINS",
    "REGISTRY",
    "ROOT",
    "Bench",
    "claim_of",
    "gpu",
    "healthy",
    "plugin",
    "pod",
    "row",
    "slices_of",
]

ROOT = Path("/node/kubelet")
REGISTRY, PLUGINS, DEVICE_PLUGINS = ROOT / "plugins_registry", ROOT / "plugins", ROOT / "device-plugins"
DRIVER, NODE, BOOT = "gpu.nvidia.com", "node-1", "b007"


def gpu(name: str, **fields: Any) -> Device:
    """A GPU as NVIDIA's driver publishes it."""
    attributes = {
        "type": DeviceAttribute(string="gpu"),
        "uuid": DeviceAttribute(string=f"GPU-{name}"),
        "resource.kubernetes.io/pcieRoot": DeviceAttribute(string="pci0000:00"),
    }
    return Device(name=name, attributes={**attributes, **fields.pop("attributes", {})}, **fields)


OFFER = Offer.of([Offered(device=gpu("gpu-0")), Offered(device=gpu("gpu-1"))])


def slices_of(offer: Offer, *, generation: int = 1, **metadata: Any) -> list[ResourceSlice]:
    """The slices of an offer as the API server has them."""
    owner = OwnerReference(api_version="v1", kind="Node", name=NODE, uid="node-uid", controller=True)
    specs = pool_slices(DRIVER, offer.pools[0], node_name=NODE, generation=generation)
    return [
        ResourceSlice(
            metadata=ObjectMeta(
                **{"name": f"{index:05x}-{DRIVER}-{NODE}-abcde", "owner_references": (owner,), **metadata}
            ),
            spec=spec,
        )
        for index, spec in enumerate(specs)
    ]


def plugin(name: str = DRIVER, *, draht: str = "0.1.0", instance: str = "") -> RegisteredPlugin:
    """A plugin that answers."""
    dash = f"-{instance}" if instance else ""
    return RegisteredPlugin(
        REGISTRY / f"{name}{dash}-reg.sock", DRA_PLUGIN, name, PLUGINS / name / f"dra{dash}.sock", draht
    )


def node_of(**info: Any) -> Node:
    """A node that is ready."""
    known = {"boot_id": BOOT, "kubelet_version": "v1.37.2", "container_runtime_version": "containerd://2.1.4", **info}
    return Node(
        metadata=ObjectMeta(name=NODE, uid="node-uid"),
        status=NodeStatus(conditions=(NodeCondition(type="Ready", status="True"),), node_info=NodeSystemInfo(**known)),
    )


def pod(name: str = "train", claim: str = "gpus", *, phase: str = "Pending") -> Pod:
    """A pod on the node that uses a claim by name."""
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-of-{name}"),
        spec=PodSpec(
            node_name=NODE,
            containers=(Container(name="main"),),
            resource_claims=(PodResourceClaim(name="gpus", resource_claim_name=claim),),
        ),
        status=PodStatus(phase=phase),
    )


def claim_of(uid: str = "c1", gpu: str = "gpu-0", *, name: str = "gpus", user: str = "train", **result: Any) -> Any:
    """A claim of the cluster that has a GPU of the node."""
    made = allocated(uid, device(gpu, driver=DRIVER, **result), name=name, driver=DRIVER)
    reference = ResourceClaimConsumerReference(resource="pods", name=user, uid=f"uid-of-{user}")
    return replaced(made, status=replaced(made.status, reserved_for=(reference,) if user else ()))


def row(uid: str = "c1", **fields: Any) -> Claim:
    """A prepared claim in the database."""
    record = Record(uid=uid, namespace="default", name="gpus", driver=DRIVER, since=fields.pop("since", 0.0))
    return Claim(**{"state": "prepared", "record": record, "boot_id": BOOT, **fields})


@dataclasses.dataclass
class Bench:
    """A healthy node whose one pod runs, to be spoilt in one point."""

    root: Path
    offers: Mapping[str, Offer]
    local: dict[str, Any]
    remote: dict[str, Any]
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    problems: tuple[str, ...] = ()
    conditions: dict[Path, Literal["writable", "readable", "missing"]] = dataclasses.field(default_factory=dict)

    def find(self) -> list[Finding]:
        """What is found, notes about unusual directories aside: a test has no other."""
        scene = Scene(
            node_name=NODE,
            directories=NodeDirectories(kubelet=ROOT, cdi=self.root, state=self.root, root=self.root),
            local=Local(**self.local),
            remote=Remote(**self.remote),
            expected=Expectation(offers=self.offers, labels=self.labels, problems=self.problems),
            now=1000.0,
            exists=lambda path: self.conditions.get(path, "writable"),
        )
        found = [finding for check in CHECKS for finding in check(scene)]
        return [finding for finding in found if finding.kind != "cdi-directory-unusual"]

    def kinds(self) -> list[tuple[str, str]]:
        """Kind and severity of what is found."""
        return [(finding.kind, finding.severity) for finding in self.find()]

    def slices(self, offer: Offer = OFFER, **options: Any) -> list[ResourceSlice]:
        """Put slices on the server."""
        self.remote["slices"] = slices_of(offer, **options)
        return list(self.remote["slices"])

    def offer(self, *devices: Device) -> None:
        """Offer and publish other devices."""
        made = Offer.of(Offered(device=each) for each in devices)
        self.offers = {DRIVER: made}
        self.slices(made)

    def socket(self, path: Path, *, served: bool = True) -> None:
        """A socket more."""
        self.local["sockets"][path] = served

    def node(self, **info: Any) -> None:
        """Another node."""
        self.remote["node"] = node_of(**info)

    def wait(self) -> None:
        """The pod hasn't begun, and its claim isn't prepared."""
        self.remote["pods"] = [pod()]
        self.local["claims"] = []


def healthy(root: Path) -> Bench:
    """A node on which nothing is wrong."""
    ours = plugin()
    sockets = {
        ours.socket: True,
        ours.endpoint: True,
        DEVICE_PLUGINS / "kubelet.sock": True,
        ROOT / "pod-resources/kubelet.sock": True,
    }
    made = Bench(
        root,
        {DRIVER: OFFER},
        local={
            "plugins": [ours],
            "sockets": sockets,
            "claims": [row()],
            "database": ("healthy", "", ""),
            "cache": cdi.Cache([root]),
            "boot_id": BOOT,
        },
        remote={
            "reached": True,
            "version": "v1.37.2",
            "served": ("v1",),
            "user": "system:serviceaccount:draht-system:draht-node",
            "node": node_of(),
            "kubelet_config": {},
            "claims": [claim_of()],
            "pods": [pod(phase="Running")],
            "events": [],
            "permissions": (Permission("get nodes", allowed=True),),
        },
    )
    made.slices()
    return made
