"""The Pod with the whole field set of its spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from draht.api.core.container import Container, EphemeralContainer, ResourceRequirements
from draht.api.core.pod_status import PodStatus
from draht.api.core.reference import LocalObjectReference
from draht.api.core.scheduling import Affinity, Toleration, TopologySpreadConstraint
from draht.api.core.security import PodSecurityContext
from draht.api.core.volume import Volume
from draht.api.meta import Object, ObjectList
from draht.api.wire import Int32, Int64, QuantityValue, Wire, always

__all__ = [
    "EvictionResponder",
    "HostAlias",
    "Pod",
    "PodDNSConfig",
    "PodDNSConfigOption",
    "PodList",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSpec",
]


class HostAlias(Wire, frozen=True, kw_only=True):
    """One line of the containers' ``/etc/hosts``."""

    ip: str
    hostnames: tuple[str, ...] = ()


class PodDNSConfigOption(Wire, frozen=True, kw_only=True):
    """One option of ``resolv.conf``."""

    name: str = ""
    value: str | None = None


class PodDNSConfig(Wire, frozen=True, kw_only=True):
    """DNS settings beside the policy's."""

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[PodDNSConfigOption, ...] = ()


class PodReadinessGate(Wire, frozen=True, kw_only=True):
    """A condition that must be True before the pod counts as ready."""

    condition_type: str


class PodOS(Wire, frozen=True, kw_only=True):
    """The operating system the pod is for."""

    name: str


class PodSchedulingGate(Wire, frozen=True, kw_only=True):
    """A reason why the scheduler must leave the pod alone; gates can only be removed."""

    name: str


class PodResourceClaim(Wire, frozen=True, kw_only=True):
    """A claim the pod uses: an existing one by name, or one made from a template; exactly one of the two."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire, frozen=True, kw_only=True):
    """The PodGroup that the pod is scheduled with."""

    pod_group_name: str | None = None


class EvictionResponder(Wire, frozen=True, kw_only=True):
    """Who answers a request to evict the pod, highest priority first."""

    name: str
    priority: Int32


class PodSpec(Wire, frozen=True, kw_only=True):
    """What runs, with which resources, where, and under which identity."""

    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...]
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: PodSecurityContext | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    host_aliases: tuple[HostAlias, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: PodDNSConfig | None = None
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: Mapping[str, QuantityValue] = field(default_factory=dict)
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    set_hostname_as_fqdn: bool | None = field(default=None, name="setHostnameAsFQDN")
    os: PodOS | None = None
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
    eviction_responders: tuple[EvictionResponder, ...] = ()


class Pod(Object, frozen=True, kw_only=True):
    """A group of containers that share a network address and a node."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Pod"] = always("Pod")
    spec: PodSpec
    status: PodStatus = PodStatus()


class PodList(ObjectList, frozen=True, kw_only=True):
    """Several pods."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["PodList"] = always("PodList")
    items: tuple[Pod, ...] = ()
