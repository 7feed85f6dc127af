"""Volumes that a PersistentVolumeClaim stands for."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from draht.api.meta import LabelSelector, ObjectMeta
from draht.api.wire import QuantityValue, Wire

__all__ = [
    "EphemeralVolumeSource",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "VolumeResourceRequirements",
]


class PersistentVolumeClaimVolumeSource(Wire, frozen=True, kw_only=True):
    """A PersistentVolumeClaim of the pod's namespace."""

    claim_name: str
    read_only: bool = False


class VolumeResourceRequirements(Wire, frozen=True, kw_only=True):
    """How much storage a claim asks for."""

    limits: Mapping[str, QuantityValue] = field(default_factory=dict)
    requests: Mapping[str, QuantityValue] = field(default_factory=dict)


class TypedLocalObjectReference(Wire, frozen=True, kw_only=True):
    """An object of the same namespace, by group, kind and name."""

    api_group: str | None = None
    kind: str
    name: str


class TypedObjectReference(Wire, frozen=True, kw_only=True):
    """An object of any namespace, by group, kind and name."""

    api_group: str | None = None
    kind: str
    name: str
    namespace: str | None = None


class PersistentVolumeClaimSpec(Wire, frozen=True, kw_only=True):
    """What storage a claim asks for."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Wire, frozen=True, kw_only=True):
    """The claim that is made for a generic ephemeral volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Wire, frozen=True, kw_only=True):
    """A volume whose claim lives as long as the pod."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None
