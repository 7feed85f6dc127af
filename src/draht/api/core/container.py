"""Containers: image, command, environment, resources and the device claims they use."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from draht.api.core.probe import Lifecycle, Probe
from draht.api.core.reference import LocalObjectReference, ObjectFieldSelector, ResourceFieldSelector
from draht.api.core.security import SecurityContext
from draht.api.wire import Int32, QuantityValue, Wire

__all__ = [
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "Container",
    "ContainerPort",
    "ContainerResizePolicy",
    "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "FileKeySelector",
    "ResourceClaim",
    "ResourceRequirements",
    "SecretEnvSource",
    "SecretKeySelector",
    "VolumeDevice",
    "VolumeMount",
]


class ContainerPort(Wire, frozen=True, kw_only=True):
    """A port the container listens on; informational except for ``hostPort``."""

    name: str = ""
    host_port: Int32 = 0
    container_port: Int32
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class ConfigMapEnvSource(LocalObjectReference, frozen=True, kw_only=True):
    """A ConfigMap whose keys become environment variables."""

    optional: bool | None = None


class SecretEnvSource(LocalObjectReference, frozen=True, kw_only=True):
    """A Secret whose keys become environment variables."""

    optional: bool | None = None


class EnvFromSource(Wire, frozen=True, kw_only=True):
    """Environment variables from a whole ConfigMap or Secret."""

    prefix: str = ""
    config_map_ref: ConfigMapEnvSource | None = None
    secret_ref: SecretEnvSource | None = None


class ConfigMapKeySelector(LocalObjectReference, frozen=True, kw_only=True):
    """One key of a ConfigMap."""

    key: str
    optional: bool | None = None


class SecretKeySelector(LocalObjectReference, frozen=True, kw_only=True):
    """One key of a Secret."""

    key: str
    optional: bool | None = None


class FileKeySelector(Wire, frozen=True, kw_only=True):
    """One key of an env file in a volume."""

    volume_name: str
    path: str
    key: str
    optional: bool | None = None


class EnvVarSource(Wire, frozen=True, kw_only=True):
    """Where a variable's value comes from; exactly one member is set."""

    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    file_key_ref: FileKeySelector | None = None


class EnvVar(Wire, frozen=True, kw_only=True):
    """One environment variable: a value, or where to take it from."""

    name: str
    value: str = ""
    value_from: EnvVarSource | None = None


class ResourceClaim(Wire, frozen=True, kw_only=True):
    """A reference from a container to an entry of the pod's ``resourceClaims``.

    ``request`` narrows it to the devices of one request.
    """

    name: str
    request: str = ""


class ResourceRequirements(Wire, frozen=True, kw_only=True):
    """What a container needs at least, may use at most, and which claims it uses."""

    limits: Mapping[str, QuantityValue] = field(default_factory=dict)
    requests: Mapping[str, QuantityValue] = field(default_factory=dict)
    claims: tuple[ResourceClaim, ...] = ()


class ContainerResizePolicy(Wire, frozen=True, kw_only=True):
    """Whether a container restarts when a resource of it is resized."""

    resource_name: str
    restart_policy: str


class ContainerRestartRuleOnExitCodes(Wire, frozen=True, kw_only=True):
    """Exit codes that a restart rule is about."""

    operator: str
    values: tuple[Int32, ...] = ()


class ContainerRestartRule(Wire, frozen=True, kw_only=True):
    """What to do with a container that exited in a certain way."""

    action: str
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class VolumeMount(Wire, frozen=True, kw_only=True):
    """Where a container sees a volume."""

    name: str
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_path: str
    sub_path: str = ""
    mount_propagation: str | None = None
    sub_path_expr: str = ""
    bind_mount_options: tuple[str, ...] = ()


class VolumeDevice(Wire, frozen=True, kw_only=True):
    """Where a container sees a block volume."""

    name: str
    device_path: str


class Container(Wire, frozen=True, kw_only=True):
    """One container of a pod."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env_from: tuple[EnvFromSource, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ContainerResizePolicy, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[VolumeDevice, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: SecurityContext | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False


class EphemeralContainer(Container, frozen=True, kw_only=True):
    """A container added to a running pod for debugging."""

    target_container_name: str = ""
