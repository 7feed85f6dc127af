"""Which kinds draht reads and writes, and where an API server has them.

A `Kind` is a value: anybody may make one for a kind that isn't listed here. The listed ones have draht's structs as
models; kinds of `resource.k8s.io` are v1's here whatever version a server speaks (`draht.kube.versions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_origin
from urllib.parse import quote

from draht.api import core, resource
from draht.api.meta import Object

__all__ = [
    "CLAIMS",
    "CLAIM_TEMPLATES",
    "CLASSES",
    "EVENTS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "SLICES",
    "TAINT_RULES",
    "Kind",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of objects on an API server.

    Args:
        api_version: ``v1`` or ``group/version``.
        plural: How paths call it: ``resourceclaims``.
        namespaced: Whether its objects lie in namespaces.
        model: What objects are decoded to: a struct derived from `draht.api.meta.Object`, or ``dict`` (also
            ``dict[str, Any]``) for the JSON as it came.
    """

    api_version: str
    plural: str
    namespaced: bool
    model: type[T]

    @property
    def is_struct(self) -> bool:
        """Whether objects are decoded to a struct."""
        return issubclass(get_origin(self.model) or self.model, Object)

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]

    def path(
        self,
        *,
        version: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str = "",
    ) -> str:
        """The path of the collection or of one object.

        Args:
            version: Another version of the group than the kind's own.
            namespace: None for all namespaces, and for kinds that lie in none.
            name: None for the collection.
            subresource: ``status`` and the like.
        """
        root = f"/apis/{self.group}" if self.group else "/api"
        steps = [root, version or self.version]
        if self.namespaced and namespace is not None:
            steps += ["namespaces", quote(namespace, safe="")]
        steps.append(self.plural)
        if name is not None:
            steps.append(quote(name, safe=""))
        if subresource:
            steps.append(subresource)
        return "/".join(steps)

    def describe(self, namespace: str | None = None, name: str | None = None) -> str:
        """The collection or object for a person: ``resourceclaims default/train``."""
        owner = namespace if self.namespaced else None
        return " ".join(part for part in (self.plural, "/".join(part for part in (owner, name) if part)) if part)


def identify(obj: Any) -> tuple[str, str, str, str]:
    """Namespace, name, uid and resourceVersion of an object of any model; empty where it has none."""
    if isinstance(obj, Mapping):
        metadata = obj.get("metadata")
        if not isinstance(metadata, Mapping):
            return "", "", "", ""
        namespace, name, uid, version = (
            metadata.get(field) for field in ("namespace", "name", "uid", "resourceVersion")
        )
        return str(namespace or ""), str(name or ""), str(uid or ""), str(version or "")
    metadata = obj.metadata
    return metadata.namespace, metadata.name, metadata.uid, metadata.resource_version


SLICES: Final = Kind("resource.k8s.io/v1", "resourceslices", False, resource.ResourceSlice)
CLAIMS: Final = Kind("resource.k8s.io/v1", "resourceclaims", True, resource.ResourceClaim)
CLAIM_TEMPLATES: Final = Kind("resource.k8s.io/v1", "resourceclaimtemplates", True, resource.ResourceClaimTemplate)
CLASSES: Final = Kind("resource.k8s.io/v1", "deviceclasses", False, resource.DeviceClass)
TAINT_RULES: Final = Kind("resource.k8s.io/v1", "devicetaintrules", False, resource.DeviceTaintRule)
PODS: Final = Kind("v1", "pods", True, core.Pod)
NODES: Final = Kind("v1", "nodes", False, core.Node)
NAMESPACES: Final = Kind("v1", "namespaces", False, core.Namespace)
EVENTS: Final = Kind("v1", "events", True, core.Event)
