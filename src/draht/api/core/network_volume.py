"""Volumes of storage systems, most of them retired in favour of CSI but still part of a pod's field set."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from draht.api.core.reference import LocalObjectReference
from draht.api.wire import Int32, Wire

__all__ = [
    "AWSElasticBlockStoreVolumeSource",
    "AzureDiskVolumeSource",
    "AzureFileVolumeSource",
    "CSIVolumeSource",
    "CephFSVolumeSource",
    "CinderVolumeSource",
    "FCVolumeSource",
    "FlexVolumeSource",
    "FlockerVolumeSource",
    "GCEPersistentDiskVolumeSource",
    "GitRepoVolumeSource",
    "GlusterfsVolumeSource",
    "ISCSIVolumeSource",
    "NFSVolumeSource",
    "PhotonPersistentDiskVolumeSource",
    "PortworxVolumeSource",
    "QuobyteVolumeSource",
    "RBDVolumeSource",
    "ScaleIOVolumeSource",
    "StorageOSVolumeSource",
    "VsphereVirtualDiskVolumeSource",
]


class GCEPersistentDiskVolumeSource(Wire, frozen=True, kw_only=True):
    """A Google Compute Engine disk."""

    pd_name: str
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Wire, frozen=True, kw_only=True):
    """An AWS EBS disk."""

    volume_id: str = field(name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class GitRepoVolumeSource(Wire, frozen=True, kw_only=True):
    """A git checkout (refused by current kubelets)."""

    repository: str
    revision: str = ""
    directory: str = ""


class NFSVolumeSource(Wire, frozen=True, kw_only=True):
    """An NFS export."""

    server: str
    path: str
    read_only: bool = False


class ISCSIVolumeSource(Wire, frozen=True, kw_only=True):
    """An iSCSI disk."""

    target_portal: str
    iqn: str
    lun: Int32 = 0
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: tuple[str, ...] = ()
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class GlusterfsVolumeSource(Wire, frozen=True, kw_only=True):
    """A Glusterfs volume."""

    endpoints: str
    path: str
    read_only: bool = False


class RBDVolumeSource(Wire, frozen=True, kw_only=True):
    """A Ceph RBD image."""

    monitors: tuple[str, ...]
    image: str
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    keyring: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlexVolumeSource(Wire, frozen=True, kw_only=True):
    """A volume of an out-of-tree FlexVolume plugin."""

    driver: str
    fs_type: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


class CinderVolumeSource(Wire, frozen=True, kw_only=True):
    """An OpenStack Cinder disk."""

    volume_id: str = field(name="volumeID")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(Wire, frozen=True, kw_only=True):
    """A CephFS file system."""

    monitors: tuple[str, ...]
    path: str = ""
    user: str = ""
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    read_only: bool = False


class FlockerVolumeSource(Wire, frozen=True, kw_only=True):
    """A Flocker volume."""

    dataset_name: str = ""
    dataset_uuid: str = field(default="", name="datasetUUID")


class FCVolumeSource(Wire, frozen=True, kw_only=True):
    """A Fibre Channel disk."""

    target_wwns: tuple[str, ...] = field(default=(), name="targetWWNs")
    lun: Int32 | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: tuple[str, ...] = ()


class AzureFileVolumeSource(Wire, frozen=True, kw_only=True):
    """An Azure file share."""

    secret_name: str
    share_name: str
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(Wire, frozen=True, kw_only=True):
    """A vSphere disk."""

    volume_path: str
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(default="", name="storagePolicyID")


class QuobyteVolumeSource(Wire, frozen=True, kw_only=True):
    """A Quobyte volume."""

    registry: str
    volume: str
    read_only: bool = False
    user: str = ""
    group: str = ""
    tenant: str = ""


class AzureDiskVolumeSource(Wire, frozen=True, kw_only=True):
    """An Azure disk."""

    disk_name: str
    disk_uri: str = field(name="diskURI")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class PhotonPersistentDiskVolumeSource(Wire, frozen=True, kw_only=True):
    """A Photon disk."""

    pd_id: str = field(name="pdID")
    fs_type: str = ""


class PortworxVolumeSource(Wire, frozen=True, kw_only=True):
    """A Portworx volume."""

    volume_id: str = field(name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class ScaleIOVolumeSource(Wire, frozen=True, kw_only=True):
    """A ScaleIO volume."""

    gateway: str
    system: str
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: bool = False
    protection_domain: str = ""
    storage_pool: str = ""
    storage_mode: str = ""
    volume_name: str = ""
    fs_type: str = ""
    read_only: bool = False


class StorageOSVolumeSource(Wire, frozen=True, kw_only=True):
    """A StorageOS volume."""

    volume_name: str = ""
    volume_namespace: str = ""
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CSIVolumeSource(Wire, frozen=True, kw_only=True):
    """An ephemeral volume that a CSI driver makes."""

    driver: str
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: Mapping[str, str] = field(default_factory=dict)
    node_publish_secret_ref: LocalObjectReference | None = None
