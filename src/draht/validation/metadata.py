"""Names, labels, annotations, owners and finalizers of objects.

Owns what the API server says about ``metadata`` when an object is created or updated
(``k8s.io/apimachinery/pkg/api/validation`` at v0.37). What the server fills in itself is filled in first: a generated
name, the namespace of the request, and of an update what it takes from the object that is there. ``managedFields`` are
the server's own and aren't judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from draht.api.meta import ObjectMeta, OwnerReference
from draht.validation import names
from draht.validation.equality import same
from draht.validation.errors import Report
from draht.validation.limits import ANNOTATION_BYTES

__all__ = [
    "check_changes",
    "check_class_metadata",
    "check_metadata",
    "check_path_segments",
    "check_stored_metadata",
    "check_template_metadata",
]

_GENERATED_FROM: Final = 58
"""Bytes of ``generateName`` that a generated name keeps; five letters follow."""
_ORPHAN: Final = "orphan"
_FOREGROUND: Final = "foregroundDeletion"


def check_metadata(report: Report, metadata: ObjectMeta, *, namespaced: bool, keeps_generation: bool = False) -> None:
    """Judge the metadata of an object whose name is a DNS subdomain.

    Args:
        report: Takes what is wrong.
        metadata: The object's metadata.
        namespaced: Whether objects of the kind live in a namespace.
        keeps_generation: Whether the server leaves ``generation`` as it was sent.
    """
    if metadata.generate_name:
        messages = names.subdomain(names.masked_prefix(metadata.generate_name))
        report.each_invalid("metadata.generateName", metadata.generate_name, messages)
    name = _name(metadata)
    if not name:
        report.required("metadata.name", "name or generateName is required")
    else:
        report.each_invalid("metadata.name", name, names.subdomain(name))
    _check_common(report, metadata, namespaced=namespaced, keeps_generation=keeps_generation)


def check_class_metadata(report: Report, metadata: ObjectMeta) -> None:
    """Judge the metadata of a DeviceClass, whose name has a declared rule and whose ``generateName`` has none."""
    name = _name(metadata)
    if not name:
        report.required("metadata.name", "name or generateName is required")
    else:
        messages = names.subdomain(name)
        report.each_invalid("metadata.name", name, messages, origin="format=k8s-long-name", covered=True)
        for message in messages:
            report.declare("Invalid", "metadata.name", message, name, origin="format=k8s-long-name")
    _check_common(report, metadata, namespaced=False, keeps_generation=False)


def check_stored_metadata(report: Report, metadata: ObjectMeta) -> None:
    """Judge the metadata of an updated object whose name isn't judged again, beyond what holds for every kind."""
    check_path_segments(report, metadata)
    _check_common(report, metadata, namespaced=False, keeps_generation=False)


def check_path_segments(report: Report, metadata: ObjectMeta) -> None:
    """Judge names by what holds for every kind; for most kinds, what they are judged by says more."""
    prefix, name = metadata.generate_name, metadata.name
    report.each_invalid("metadata.generateName", prefix, names.path_segment(prefix, prefix=True))
    report.each_invalid("metadata.name", name, names.path_segment(name))


def check_changes(
    report: Report, new: ObjectMeta, old: ObjectMeta, *, status: bool = False, needs_version: bool = False
) -> ObjectMeta:
    """Judge what an update changes of an object's metadata, and give the metadata that the server goes on with.

    Args:
        report: Takes what is wrong.
        new: The metadata that is sent.
        old: The metadata that is there.
        status: The update is one of the status, which leaves nearly all metadata as it was.
        needs_version: The server takes no update of the kind that doesn't say which version it replaces.
    """
    if old.deletion_timestamp is not None and not status and not set(new.finalizers) <= set(old.finalizers):
        report.forbidden("metadata.finalizers", "none can be added to an object that is being deleted")
    if needs_version and not new.resource_version:
        report.invalid("metadata.resourceVersion", "", "must be there for an update")
    kept = structs.replace(
        new,
        uid=new.uid or old.uid,
        namespace=new.namespace or old.namespace,
        generation=old.generation,
        creation_timestamp=old.creation_timestamp or new.creation_timestamp,
        deletion_timestamp=old.deletion_timestamp or new.deletion_timestamp,
        deletion_grace_period_seconds=(
            old.deletion_grace_period_seconds
            if new.deletion_grace_period_seconds is None
            else new.deletion_grace_period_seconds
        ),
    )
    if status:
        kept = structs.replace(
            kept,
            deletion_timestamp=old.deletion_timestamp,
            labels=old.labels,
            annotations=old.annotations,
            finalizers=old.finalizers,
            owner_references=old.owner_references,
        )
    for field in _IMMUTABLE:
        if not same(_moments(kept, field), _moments(old, field)):
            report.invalid(f"metadata.{_FIELDS[field]}", getattr(kept, field), "can't be changed")
    return kept


_IMMUTABLE: Final = (
    "name",
    "namespace",
    "uid",
    "creation_timestamp",
    "deletion_timestamp",
    "deletion_grace_period_seconds",
)


def _moments(metadata: ObjectMeta, field: str) -> ObjectMeta:
    """Metadata with this field alone, so that moments are compared as moments."""
    return ObjectMeta(**{field: getattr(metadata, field)})


def check_template_metadata(report: Report, metadata: ObjectMeta, path: str) -> None:
    """Judge the metadata that a template gives to what is made from it: labels and annotations only."""
    _check_annotations(report, metadata.annotations, f"{path}.annotations")
    _check_labels(report, metadata.labels, f"{path}.labels")
    for field, name in _FIELDS.items():
        if getattr(metadata, field):
            report.forbidden(f"{path}.{name}", "can't be set in a template; only labels and annotations can")


_FIELDS: Final = {
    "name": "name",
    "generate_name": "generateName",
    "namespace": "namespace",
    "self_link": "selfLink",
    "uid": "uID",  # upstream makes the path from the name of the Go field
    "resource_version": "resourceVersion",
    "generation": "generation",
    "creation_timestamp": "creationTimestamp",
    "deletion_timestamp": "deletionTimestamp",
    "deletion_grace_period_seconds": "deletionGracePeriodSeconds",
    "owner_references": "ownerReferences",
    "finalizers": "finalizers",
    "managed_fields": "managedFields",
}


def _name(metadata: ObjectMeta) -> str:
    """The name that the object will have."""
    if metadata.name or not metadata.generate_name:
        return metadata.name
    prefix = metadata.generate_name.encode("utf-8", "surrogatepass")[:_GENERATED_FROM]
    return prefix.decode("utf-8", "replace") + "xxxxx"


def _check_common(report: Report, metadata: ObjectMeta, *, namespaced: bool, keeps_generation: bool) -> None:
    # The server empties the namespace of an object whose kind has none.
    if namespaced and metadata.namespace:
        report.each_invalid("metadata.namespace", metadata.namespace, names.label(metadata.namespace))
    if keeps_generation and metadata.generation < 0:
        report.invalid("metadata.generation", metadata.generation, "must not be negative")
    _check_labels(report, metadata.labels, "metadata.labels")
    _check_annotations(report, metadata.annotations, "metadata.annotations")
    _check_owners(report, metadata.owner_references)
    _check_finalizers(report, metadata.finalizers)


def _check_labels(report: Report, labels: Mapping[str, str], path: str) -> None:
    for key, value in sorted(labels.items()):
        report.each_invalid(path, key, names.label_key(key))
        report.each_invalid(path, value, names.label_value(value))


def _check_annotations(report: Report, annotations: Mapping[str, str], path: str) -> None:
    size = 0
    for key, value in sorted(annotations.items()):
        size += names.byte_length(key) + names.byte_length(value)
        report.each_invalid(path, key, names.label_key(names.lowered(key)))
    if size > ANNOTATION_BYTES:
        report.too_long(path, ANNOTATION_BYTES)


def _check_owners(report: Report, owners: tuple[OwnerReference, ...]) -> None:
    controller = ""
    # The server first drops owners that are there twice, and warns.
    for index, owner in enumerate(dict.fromkeys(owners)):
        path = f"metadata.ownerReferences[{index}]"
        group, version = _group_version(owner.api_version)
        if not owner.api_version:
            report.required(f"{path}.apiVersion")
        elif not version:
            report.invalid(f"{path}.apiVersion", owner.api_version, "must be <group>/<version> or <version>")
        for field in ("kind", "name", "uid"):
            if not getattr(owner, field):
                report.required(f"{path}.{field}")
        if (group, version, owner.kind) == ("", "v1", "Event"):
            report.invalid(path, owner.kind, "can't own objects")
        if owner.controller:
            this = f"{owner.kind}/{owner.name}"
            if controller:
                message = f"a second owner with controller: true, besides {controller}"
                report.invalid("metadata.ownerReferences", this, message)
            else:
                controller = this


def _group_version(api_version: str) -> tuple[str, str]:
    """Group and version; no version where the text isn't of that form."""
    if api_version in ("", "/") or api_version.count("/") > 1:
        return "", ""
    group, _, version = api_version.rpartition("/")
    return group, version


def _check_finalizers(report: Report, finalizers: tuple[str, ...]) -> None:
    for finalizer in finalizers:
        report.each_invalid("metadata.finalizers", finalizer, names.label_key(finalizer))
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        report.invalid("metadata.finalizers", ", ".join(finalizers), f"can't have both {_ORPHAN} and {_FOREGROUND}")
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in (_ORPHAN, _FOREGROUND, "kubernetes"):
            message = f"must have a domain and a slash before it, or be {_ORPHAN} or {_FOREGROUND}"
            report.invalid(f"metadata.finalizers[{index}]", finalizer, message)
