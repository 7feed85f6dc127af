"""Which struct stands for which ``apiVersion`` and ``kind``: the list of what draht reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from draht.api import core, resource
from draht.api.meta import Object, ObjectList
from draht.api.resource import v1alpha3, v1beta1, v1beta2

__all__ = ["KINDS", "LISTS", "describe", "identity", "item_type"]


def identity(struct: type[Object] | type[ObjectList]) -> tuple[str, str]:
    """``apiVersion`` and ``kind`` of a struct type."""
    defaults: dict[str, Any] = {field.name: field.default_factory for field in msgspec.structs.fields(struct)}
    return defaults["api_version"](), defaults["kind"]()


_STRUCTS = [
    getattr(module, name)
    for module in (core, resource, v1beta2, v1beta1, v1alpha3)
    for name in module.__all__
    if issubclass(getattr(module, name), (Object, ObjectList))
]

KINDS: Mapping[tuple[str, str], type[Object]] = MappingProxyType(
    {identity(struct): struct for struct in _STRUCTS if issubclass(struct, Object)}
)
"""Object types by ``apiVersion`` and ``kind``, newest version first."""

LISTS: Mapping[tuple[str, str], type[ObjectList]] = MappingProxyType(
    {identity(struct): struct for struct in _STRUCTS if issubclass(struct, ObjectList)}
)
"""List types by ``apiVersion`` and ``kind``; ``v1 List`` isn't among them, its items may be of any kind."""


def item_type(struct: type[ObjectList]) -> type[Object]:
    """What a list kind lists."""
    version, kind = identity(struct)
    return KINDS[version, kind.removesuffix("List")]


def describe() -> str:
    """The kinds that draht reads, for a hint: one line, older versions of a group behind the newest."""
    groups: dict[str, dict[str, None]] = {}
    kinds: dict[str, list[str]] = {}
    for version, kind in KINDS:
        group, _, name = version.rpartition("/")
        groups.setdefault(group, {})[name] = None
        kinds.setdefault(group, [])
        if kind not in kinds[group]:
            kinds[group].append(kind)
    lines = []
    for group, versions in groups.items():
        newest, *older = versions
        also = f" (also {', '.join(older)})" if older else ""
        lines.append(
            f"{group}/{newest}{also}: {', '.join(kinds[group])}" if group else f"{newest}: {', '.join(kinds[group])}"
        )
    return "; ".join(lines)
