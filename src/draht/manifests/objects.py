"""`Manifests`: the objects of a set of files, or of a server's lists, by kind and name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar, cast

from msgspec import structs

from draht.api.conversion import to_v1
from draht.api.core import Namespace, Node, Pod
from draht.api.meta import Object
from draht.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from draht.manifests.defaults import DEFAULT_NAMESPACE, defaulted
from draht.manifests.errors import ManifestError

__all__ = ["Manifests"]

_Object = TypeVar("_Object", bound=Object)
Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """Objects by name, in the order they were given; v1 throughout, defaulted.

    Namespaced objects have ``(namespace, name)`` as key, the others their name.
    """

    pods: Mapping[Key, Pod] = field(default_factory=dict)
    claims: Mapping[Key, ResourceClaim] = field(default_factory=dict)
    templates: Mapping[Key, ResourceClaimTemplate] = field(default_factory=dict)
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    slices: Mapping[str, ResourceSlice] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    taint_rules: Mapping[str, DeviceTaintRule] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        objects: Iterable[Object],
        *,
        classes: Iterable[DeviceClass] = (),
        refused: Callable[[Object, ManifestError], None] | None = None,
        named: Callable[[Object], None] | None = None,
    ) -> Manifests:
        """Sort objects by kind.

        Args:
            objects: Of any served version; kinds that play no part are passed over.
            classes: Classes that exist besides; one of the same name among the objects replaces them.
            refused: Told of each object that is left out and why; without it the first one is raised.
            named: Told of each object with ``generateName`` alone, with the name that it got here: a number from 0 on
                in the place of a server's random letters.

        Raises:
            ManifestError: Two objects have one kind and name, or a name is missing.
        """
        found = cls(classes={each.metadata.name: each for each in classes})
        given: set[str] = set()
        sources = list(objects)
        taken = {_identity(each) for each in sources}
        for each in sources:
            try:
                obj = defaulted(cast("Object", to_v1(each)))
                if not obj.metadata.name and obj.metadata.generate_name:
                    obj = _generated(obj, taken)
                    if named is not None:
                        named(obj)
                found._put(obj, given)
            except ManifestError as error:
                if refused is None:
                    raise
                refused(each, error)
        return found

    def _put(self, obj: Object, given: set[str]) -> None:
        where: Mapping[str, Object] | Mapping[Key, Object]
        name = obj.metadata.name
        key: str | Key = (obj.metadata.namespace, name)
        match obj:
            case Pod():
                where = self.pods
            case ResourceClaim():
                where = self.claims
            case ResourceClaimTemplate():
                where = self.templates
            case ResourceSlice():
                where, key = self.slices, name
            case Node():
                where, key = self.nodes, name
            case Namespace():
                where, key = self.namespaces, name
            case DeviceTaintRule():
                where, key = self.taint_rules, name
            case DeviceClass():
                where, key = self.classes, name
            case _:
                return
        if not name:
            raise ManifestError(f"a {obj.kind} has no name", hint="write metadata.name or generateName")
        if isinstance(obj, DeviceClass):
            twice = name in given
            given.add(name)
        else:
            twice = key in where
        if twice:
            raise _twice(obj, key if isinstance(key, str) else "/".join(key))
        cast("dict[str | Key, Object]", where)[key] = obj


def _identity(obj: Object) -> tuple[str, str, str]:
    return obj.kind, obj.metadata.namespace or DEFAULT_NAMESPACE, obj.metadata.name


def _generated(obj: _Object, taken: set[tuple[str, str, str]]) -> _Object:
    """The object with the first name behind its ``generateName`` that no other has."""
    for number in count():
        meta = structs.replace(obj.metadata, name=f"{obj.metadata.generate_name}{number}")
        new = structs.replace(obj, metadata=meta)
        if _identity(new) not in taken:
            taken.add(_identity(new))
            return new
    raise AssertionError("numbers don't end")


def _twice(obj: Object, name: str) -> ManifestError:
    return ManifestError(f"{obj.kind} {name} is there twice", hint="rename one of them or leave it out")
