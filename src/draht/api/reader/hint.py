"""Next steps for what people often write: old forms, other versions, near misses.

Facts about Kubernetes' history live here as tables, so that the walker knows none of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from draht.api import core, resource
from draht.api.kinds import KINDS, LISTS, describe
from draht.api.reader.shape import ListShape, StructShape
from draht.api.resource import v1beta1
from draht.api.wire import Wire

__all__ = ["closest", "misspelt", "resource_name", "unit", "unknown_field", "unknown_kind"]

_SOURCE = "the `source` wrapper ended with Kubernetes 1.31: write resourceClaimName or resourceClaimTemplateName here"
_FLAT = (
    "requests are flat in v1beta1 only: in v1 it belongs under `exactly`, or write apiVersion resource.k8s.io/v1beta1"
)
_BASIC = (
    "`basic` is v1beta1's: in v1 its content stands on the device itself, or write apiVersion resource.k8s.io/v1beta1"
)
_UNWRAPPED = "in v1beta1 it belongs under `basic`; in v1 it stands here"
_EXACTLY = "v1beta1 has no `exactly`: its content stands on the request itself, or write apiVersion resource.k8s.io/v1"

_OLD_FIELDS: dict[tuple[type[Wire], str], str] = {
    (core.PodResourceClaim, "source"): _SOURCE,
    (core.PodResourceClaim, "resourceClaim"): "write resourceClaimName: NAME",
    (core.PodResourceClaim, "resourceClaimTemplate"): "write resourceClaimTemplateName: NAME",
    (core.Container, "resourceClaims"): "a container names claims under resources.claims; the pod defines them in spec",
    **{(resource.DeviceRequest, name): _FLAT for name in v1beta1.DeviceRequest.__struct_encode_fields__},
    (resource.Device, "basic"): _BASIC,
    **{(v1beta1.Device, name): _UNWRAPPED for name in v1beta1.BasicDevice.__struct_encode_fields__},
    (v1beta1.DeviceRequest, "exactly"): _EXACTLY,
    (resource.DeviceClassSpec, "suitableNodes"): "suitableNodes went with classic DRA in 1.32: use selectors",
    (resource.ResourceClaimSpec, "resourceClassName"): "classic DRA ended with 1.32: name a DeviceClass in a request",
    (resource.ResourceClaimSpec, "controller"): "classic DRA ended with 1.32: remove it",
    (resource.DeviceTaintSelector, "deviceClassName"): "it ended with 1.35: select by driver, pool and device",
    (
        resource.DeviceTaintSelector,
        "selectors",
    ): "CEL selectors of rules ended with 1.35: select by driver, pool and device",
    (resource.ResourceClaimSpec, "requests"): "it belongs under `devices`",
}

_CLASSIC = (
    "classic DRA ended with Kubernetes 1.32: describe devices with DeviceClass and ResourceClaim of resource.k8s.io/v1"
)
_OLD_KINDS = {
    "ResourceClass": _CLASSIC,
    "PodSchedulingContext": _CLASSIC,
    "PodScheduling": _CLASSIC,
    "ResourceClaimParameters": _CLASSIC,
    "ResourceClassParameters": _CLASSIC,
}

_EXTENDED_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi")
_SHARED_SUFFIXES = (".shared",)


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant: the same but for case and separators, or spelt almost the same."""
    folded = {_fold(candidate): candidate for candidate in candidates}
    wanted = _fold(name)
    if wanted in folded:
        return folded[wanted]
    # Names are compared in time quadratic in their length; no field name is anywhere near as long.
    near = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.75) if len(wanted) <= 64 else []
    return folded[near[0]] if near else None


def _fold(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def unknown_field(shape: StructShape, name: str) -> str | None:
    """What to write instead of a field that the struct doesn't have."""
    for struct in shape.struct.__mro__:
        old = _OLD_FIELDS.get((struct, name))
        if old is not None:
            return old
    near = closest(name, shape.fields)
    if near is not None:
        return f'did you mean "{near}"?'
    for outer, field in shape.fields.items():
        inner = field.shape.item if isinstance(field.shape, ListShape) else field.shape
        if isinstance(inner, StructShape) and name in inner.fields:
            return f"it belongs under `{outer}`"
    for outer, field in shape.fields.items():
        inner_near = closest(name, field.shape.fields) if isinstance(field.shape, StructShape) else None
        if inner_near is not None:
            return f'did you mean "{inner_near}" under `{outer}`?'
    if "limits" in shape.fields and "/" in name:
        return "it belongs under `limits`"
    if 0 < len(shape.fields) <= 12:
        return f"fields here are: {', '.join(shape.fields)}"
    return None


def unknown_kind(version: str, kind: str) -> str:
    """What to write instead of an ``apiVersion`` and ``kind`` that draht doesn't read."""
    if kind in _OLD_KINDS:
        return _OLD_KINDS[kind]
    every = [*KINDS, *LISTS]
    named = [known for known, name in every if name == kind]
    if named:
        return f"write apiVersion: {named[0]}"
    kinds = {name for known, name in every if known == version} or {name for _, name in every}
    near = closest(kind, kinds)
    if near is not None:
        versions = [known for known, name in every if name == near]
        return f'did you mean apiVersion {version if version in versions else versions[0]}, kind "{near}"?'
    return f"draht reads {describe()}"


def misspelt(version: str, kind: str) -> bool:
    """Whether an unknown kind is one that draht should know, rather than one of somebody else's.

    Other groups have kinds of the same names (Longhorn's Node, ``events.k8s.io`` Event); those with a dot in their name
    are left alone unless they resemble ours.
    """
    group = version.rpartition("/")[0]
    known = {name for _, name in (*KINDS, *LISTS)}
    if closest(group, ["resource.k8s.io"]) is not None:
        return True
    if "." in group:
        return False
    return kind in known or kind in _OLD_KINDS or (not group and closest(kind, known) is not None)


_UNIT = re.compile(r"([0-9.]+) *([kmgtpe])(i?)b?", re.ASCII | re.IGNORECASE)


def unit(text: str) -> str | None:
    """How to write an amount whose unit is spelt as people speak, such as ``16GB`` or ``16gib``."""
    match = _UNIT.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        return None
    number, letter, binary = match.groups()
    if binary:
        return f"write {number}{letter.upper()}i"
    decimal = "k" if letter in "kK" else letter.upper()
    return f"write {number}{letter.upper()}i, or {number}{decimal} for the decimal unit"


def resource_name(name: str) -> str | None:
    """The extended resource that a resource name is probably a misspelling of."""
    if name in _EXTENDED_RESOURCES or "/mig-" in name or name.endswith(_SHARED_SUFFIXES) or len(name) > 64:
        return None
    if name.lower() in {"gpu", "gpus", "nvidia-gpu", "nvidia.gpu"}:
        return "nvidia.com/gpu"
    near = difflib.get_close_matches(name.lower(), _EXTENDED_RESOURCES, n=1, cutoff=0.85)
    return near[0] if near else None
