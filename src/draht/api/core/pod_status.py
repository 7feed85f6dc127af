"""What the cluster reports about a pod, with the DRA parts: generated claims, extended resources, device health.

Fields that a server always writes but whose zero value says nothing have defaults, so that hand-written
snapshots needn't spell them out.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from draht.api.core.container import ResourceRequirements
from draht.api.wire import Int32, Int64, QuantityValue, Time, Wire

__all__ = [
    "ContainerExtendedResourceRequest",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "ContainerUser",
    "HostIP",
    "ImageVolumeStatus",
    "LinuxContainerUser",
    "NodeAllocatableMappedResources",
    "NodeAllocatableOverheadResources",
    "NodeAllocatableResourceClaimStatus",
    "PodCondition",
    "PodExtendedResourceClaimStatus",
    "PodIP",
    "PodResourceClaimStatus",
    "PodStatus",
    "PodVolumeHealth",
    "ResourceHealth",
    "ResourceStatus",
    "VolumeHealthCondition",
    "VolumeMountStatus",
    "VolumeStatus",
]


class PodCondition(Wire, frozen=True, kw_only=True):
    """One observed aspect of a pod, such as PodScheduled or Ready."""

    type: str
    observed_generation: Int64 = 0
    status: str
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class HostIP(Wire, frozen=True, kw_only=True):
    """An address of the pod's node."""

    ip: str


class PodIP(Wire, frozen=True, kw_only=True):
    """An address of the pod."""

    ip: str


class ContainerStateWaiting(Wire, frozen=True, kw_only=True):
    """The container hasn't started; why."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(Wire, frozen=True, kw_only=True):
    """The container runs; since when."""

    started_at: Time | None = None


class ContainerStateTerminated(Wire, frozen=True, kw_only=True):
    """The container ended; when, how and why."""

    exit_code: Int32 = 0
    signal: Int32 = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str = field(default="", name="containerID")


class ContainerState(Wire, frozen=True, kw_only=True):
    """What a container does now; at most one member is set, none means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ImageVolumeStatus(Wire, frozen=True, kw_only=True):
    """Which image an image volume resolved to."""

    image_ref: str


class VolumeStatus(Wire, frozen=True, kw_only=True):
    """State of a mounted volume, by its kind."""

    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Wire, frozen=True, kw_only=True):
    """How a volume was mounted in the end."""

    name: str
    mount_path: str
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class LinuxContainerUser(Wire, frozen=True, kw_only=True):
    """User and groups of a container's first process."""

    uid: Int64 = 0
    gid: Int64 = 0
    supplemental_groups: tuple[Int64, ...] = ()


class ContainerUser(Wire, frozen=True, kw_only=True):
    """Identity of a container's first process."""

    linux: LinuxContainerUser | None = None


class ResourceHealth(Wire, frozen=True, kw_only=True):
    """Health of one device: Healthy, Unhealthy or Unknown."""

    resource_id: str = field(name="resourceID")
    health: str = ""
    message: str | None = None


class ResourceStatus(Wire, frozen=True, kw_only=True):
    """Health of the devices a container got for one resource or claim (KEP-4680)."""

    name: str
    resources: tuple[ResourceHealth, ...] = ()


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """What the kubelet says about one container."""

    name: str
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: Int32 = 0
    image: str = ""
    image_id: str = field(default="", name="imageID")
    container_id: str = field(default="", name="containerID")
    started: bool | None = None
    allocated_resources: Mapping[str, QuantityValue] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volume_mounts: tuple[VolumeMountStatus, ...] = ()
    user: ContainerUser | None = None
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
    stop_signal: str | None = None


class PodResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """Which claim was made for an entry of the pod; without a name, none was needed."""

    name: str
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Wire, frozen=True, kw_only=True):
    """Which request of the special claim stands for which extended resource of a container."""

    container_name: str
    resource_name: str
    request_name: str


class PodExtendedResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim the scheduler made for extended resources that DRA serves (KEP-5004)."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...]
    resource_claim_name: str


class NodeAllocatableMappedResources(Wire, frozen=True, kw_only=True):
    """Node resource that a claim's devices take, counted once per claim."""

    name: str
    quantity: QuantityValue


class NodeAllocatableOverheadResources(Wire, frozen=True, kw_only=True):
    """Node resource that each pod or container using the claim takes on top."""

    name: str
    per_pod: QuantityValue | None = None
    per_container: QuantityValue | None = None


class NodeAllocatableResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """What a claim of the pod costs in CPU, memory and the like (KEP-5517)."""

    resource_claim_name: str
    containers: tuple[str, ...] = ()
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()


class VolumeHealthCondition(Wire, frozen=True, kw_only=True):
    """One finding about a volume's health."""

    status: str
    reason: str = ""
    message: str = ""


class PodVolumeHealth(Wire, frozen=True, kw_only=True):
    """Health of one volume of the pod."""

    name: str
    health_conditions: tuple[VolumeHealthCondition, ...] = ()
    last_transition_time: Time | None = None


class PodStatus(Wire, frozen=True, kw_only=True):
    """What the cluster says about a pod."""

    observed_generation: Int64 = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = field(default="", name="hostIP")
    host_ips: tuple[HostIP, ...] = field(default=(), name="hostIPs")
    pod_ip: str = field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = field(default=(), name="podIPs")
    start_time: Time | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    allocated_resources: Mapping[str, QuantityValue] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    volume_health: tuple[PodVolumeHealth, ...] = ()
