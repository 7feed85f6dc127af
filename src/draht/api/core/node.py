"""The Node: taints, resources, conditions, features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from draht.api.core.scheduling import Taint
from draht.api.meta import Object, ObjectList
from draht.api.wire import Int32, Int64, QuantityValue, Time, Wire, always

__all__ = [
    "AttachedVolume",
    "ConfigMapNodeConfigSource",
    "ContainerImage",
    "DaemonEndpoint",
    "Node",
    "NodeAddress",
    "NodeCondition",
    "NodeConfigSource",
    "NodeConfigStatus",
    "NodeDaemonEndpoints",
    "NodeFeatures",
    "NodeList",
    "NodePodPreemptionPolicy",
    "NodeRuntimeHandler",
    "NodeRuntimeHandlerFeatures",
    "NodeSpec",
    "NodeStatus",
    "NodeSwapStatus",
    "NodeSystemInfo",
]


class ConfigMapNodeConfigSource(Wire, frozen=True, kw_only=True):
    """Retired dynamic kubelet configuration."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    kubelet_config_key: str = ""


class NodeConfigSource(Wire, frozen=True, kw_only=True):
    """Retired dynamic kubelet configuration."""

    config_map: ConfigMapNodeConfigSource | None = None


class NodePodPreemptionPolicy(Wire, frozen=True, kw_only=True):
    """Which preemptions a node refuses."""

    disable_resize_preemption: tuple[str, ...] = ()


class NodeSpec(Wire, frozen=True, kw_only=True):
    """Identity and taints of a node."""

    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = field(default=(), name="podCIDRs")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    config_source: NodeConfigSource | None = None
    external_id: str = field(default="", name="externalID")
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class NodeCondition(Wire, frozen=True, kw_only=True):
    """One observed aspect of a node, such as Ready."""

    type: str
    status: str
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(Wire, frozen=True, kw_only=True):
    """One address of a node."""

    type: str
    address: str


class DaemonEndpoint(Wire, frozen=True, kw_only=True):
    """The port of a daemon; its JSON name is upper case."""

    port: Int32 = field(default=0, name="Port")


class NodeDaemonEndpoints(Wire, frozen=True, kw_only=True):
    """Ports of the daemons of a node."""

    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


class NodeSwapStatus(Wire, frozen=True, kw_only=True):
    """Swap of a node, in bytes."""

    capacity: Int64 | None = None


class NodeSystemInfo(Wire, frozen=True, kw_only=True):
    """Identifiers and versions of a node."""

    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""
    swap: NodeSwapStatus | None = None
    running_in_user_namespace: bool | None = None


class ContainerImage(Wire, frozen=True, kw_only=True):
    """An image on a node, with its size in bytes."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class AttachedVolume(Wire, frozen=True, kw_only=True):
    """A volume attached to a node."""

    name: str
    device_path: str = ""


class NodeConfigStatus(Wire, frozen=True, kw_only=True):
    """Retired dynamic kubelet configuration."""

    assigned: NodeConfigSource | None = None
    active: NodeConfigSource | None = None
    last_known_good: NodeConfigSource | None = None
    error: str = ""


class NodeRuntimeHandlerFeatures(Wire, frozen=True, kw_only=True):
    """What a runtime handler supports."""

    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Wire, frozen=True, kw_only=True):
    """A runtime handler that the node offers to RuntimeClasses."""

    name: str = ""
    features: NodeRuntimeHandlerFeatures | None = None


class NodeFeatures(Wire, frozen=True, kw_only=True):
    """What the container runtime of a node supports."""

    supplemental_groups_policy: bool | None = None


class NodeStatus(Wire, frozen=True, kw_only=True):
    """Resources, conditions and features of a node."""

    capacity: Mapping[str, QuantityValue] = field(default_factory=dict)
    allocatable: Mapping[str, QuantityValue] = field(default_factory=dict)
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    daemon_endpoints: NodeDaemonEndpoints = NodeDaemonEndpoints()
    node_info: NodeSystemInfo = NodeSystemInfo()
    images: tuple[ContainerImage, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    volumes_attached: tuple[AttachedVolume, ...] = ()
    config: NodeConfigStatus | None = None
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    features: NodeFeatures | None = None
    declared_features: tuple[str, ...] = ()


class Node(Object, frozen=True, kw_only=True):
    """A machine of the cluster."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Node"] = always("Node")
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodeList(ObjectList, frozen=True, kw_only=True):
    """Several nodes."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["NodeList"] = always("NodeList")
    items: tuple[Node, ...] = ()
