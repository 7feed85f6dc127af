"""Small pointers that volumes and containers share: a local object, a pod field, a container resource, a file."""

from __future__ import annotations

from draht.api.wire import Int32, Int64, QuantityValue, Wire

__all__ = ["KeyToPath", "LocalObjectReference", "ObjectFieldSelector", "ResourceFieldSelector"]


class KeyToPath(Wire, frozen=True, kw_only=True):
    """Which key of a ConfigMap or Secret becomes which file."""

    key: str
    path: str
    mode: Int32 | None = None
    user: Int64 | None = None


class LocalObjectReference(Wire, frozen=True, kw_only=True):
    """An object of the same namespace, by name."""

    name: str = ""


class ObjectFieldSelector(Wire, frozen=True, kw_only=True):
    """A field of the pod itself."""

    api_version: str = ""
    field_path: str


class ResourceFieldSelector(Wire, frozen=True, kw_only=True):
    """A resource limit or request of a container."""

    container_name: str = ""
    resource: str
    divisor: QuantityValue | None = None
