"""Volumes whose content the node itself provides: directories, configuration, pod fields, tokens, images."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from draht.api.core.reference import KeyToPath, LocalObjectReference, ObjectFieldSelector, ResourceFieldSelector
from draht.api.meta import LabelSelector
from draht.api.wire import Int32, Int64, QuantityValue, Wire

__all__ = [
    "ClusterTrustBundleProjection",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "DownwardAPIProjection",
    "DownwardAPIVolumeFile",
    "DownwardAPIVolumeSource",
    "EmptyDirVolumeSource",
    "HostPathVolumeSource",
    "ImageVolumeSource",
    "PodCertificateProjection",
    "ProjectedVolumeSource",
    "SecretProjection",
    "SecretVolumeSource",
    "ServiceAccountTokenProjection",
    "VolumeProjection",
]


class HostPathVolumeSource(Wire, frozen=True, kw_only=True):
    """A path of the node's own file system."""

    path: str
    type: str | None = None


class EmptyDirVolumeSource(Wire, frozen=True, kw_only=True):
    """An empty directory that lives as long as the pod."""

    medium: str = ""
    size_limit: QuantityValue | None = None
    mode: Int32 | None = None


class SecretVolumeSource(Wire, frozen=True, kw_only=True):
    """The keys of a Secret as files."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None


class DownwardAPIVolumeFile(Wire, frozen=True, kw_only=True):
    """One file with a field of the pod."""

    path: str
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None
    user: Int64 | None = None


class DownwardAPIVolumeSource(Wire, frozen=True, kw_only=True):
    """Fields of the pod as files."""

    items: tuple[DownwardAPIVolumeFile, ...] = ()
    default_mode: Int32 | None = None
    default_user: Int64 | None = None


class ConfigMapVolumeSource(LocalObjectReference, frozen=True, kw_only=True):
    """The keys of a ConfigMap as files."""

    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 | None = None
    optional: bool | None = None
    default_user: Int64 | None = None


class SecretProjection(LocalObjectReference, frozen=True, kw_only=True):
    """A Secret inside a projected volume."""

    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class DownwardAPIProjection(Wire, frozen=True, kw_only=True):
    """Pod fields inside a projected volume."""

    items: tuple[DownwardAPIVolumeFile, ...] = ()


class ConfigMapProjection(LocalObjectReference, frozen=True, kw_only=True):
    """A ConfigMap inside a projected volume."""

    items: tuple[KeyToPath, ...] = ()
    optional: bool | None = None


class ServiceAccountTokenProjection(Wire, frozen=True, kw_only=True):
    """A service-account token that the kubelet renews."""

    audience: str = ""
    expiration_seconds: Int64 | None = None
    path: str
    user: Int64 | None = None


class ClusterTrustBundleProjection(Wire, frozen=True, kw_only=True):
    """Trust anchors from ClusterTrustBundle objects."""

    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: bool | None = None
    path: str
    user: Int64 | None = None


class PodCertificateProjection(Wire, frozen=True, kw_only=True):
    """A key and certificate that the kubelet obtains for the pod."""

    signer_name: str
    key_type: str
    max_expiration_seconds: Int32 | None = None
    credential_bundle_path: str = ""
    key_path: str = ""
    certificate_chain_path: str = ""
    user_annotations: Mapping[str, str] = field(default_factory=dict)
    user: Int64 | None = None


class VolumeProjection(Wire, frozen=True, kw_only=True):
    """One source of a projected volume; exactly one member is set."""

    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = field(default=None, name="downwardAPI")
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ProjectedVolumeSource(Wire, frozen=True, kw_only=True):
    """Several sources in one directory."""

    sources: tuple[VolumeProjection, ...] = ()
    default_mode: Int32 | None = None
    default_user: Int64 | None = None


class ImageVolumeSource(Wire, frozen=True, kw_only=True):
    """The content of an OCI image or artifact."""

    reference: str = ""
    pull_policy: str = ""
