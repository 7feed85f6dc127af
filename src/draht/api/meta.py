"""Object metadata, list metadata, conditions, label selectors and the server's status answer (`meta/v1`).

Complete to Kubernetes 1.37 (apimachinery v0.37.2). Only shapes: what a name or label may look like is validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import field

from draht.api.wire import Int32, Int64, Time, Wire, always

__all__ = [
    "Condition",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "ManagedFieldsEntry",
    "Object",
    "ObjectList",
    "ObjectMeta",
    "OwnerReference",
    "ShardInfo",
    "Status",
    "StatusCause",
    "StatusDetails",
]


class OwnerReference(Wire, frozen=True, kw_only=True):
    """An object that this one belongs to; with ``controller`` set, the one that manages it."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Wire, frozen=True, kw_only=True):
    """Which fields one writer owns under server-side apply; `fields_v1` is kept as it came."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: Any = None
    subresource: str = ""


class ObjectMeta(Wire, frozen=True, kw_only=True):
    """Name, labels, owners and life-cycle marks that every object carries."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One comparison of a label: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True, kw_only=True):
    """Labels an object must have; both halves must hold, an empty selector matches everything."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ShardInfo(Wire, frozen=True, kw_only=True):
    """Which shard of a list or watch an answer covers."""

    selector: str


class ListMeta(Wire, frozen=True, kw_only=True):
    """Version and continuation of a list answer."""

    self_link: str = ""
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: Int64 | None = None
    shard_info: ShardInfo | None = None


class Object(Wire, frozen=True, kw_only=True):
    """Base of everything that has a kind and a name of its own."""

    api_version: str = always("")
    kind: str = always("")
    metadata: ObjectMeta = ObjectMeta()


class ObjectList(Wire, frozen=True, kw_only=True):
    """Base of the list kinds; each adds its ``items``."""

    api_version: str = always("")
    kind: str = always("")
    metadata: ListMeta = ListMeta()


class StatusCause(Wire, frozen=True, kw_only=True):
    """One reason of a refused request, with the field it is about."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True, kw_only=True):
    """What a refused request was about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: Int32 = 0


class Status(Wire, frozen=True, kw_only=True):
    """The server's answer when it doesn't return an object."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Status"] = always("Status")
    metadata: ListMeta = ListMeta()
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: Int32 = 0


class Condition(Wire, frozen=True, kw_only=True):
    """One observed aspect of an object: a type, its status (True, False, Unknown) and why."""

    type: str
    status: str
    observed_generation: Int64 = 0
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""
