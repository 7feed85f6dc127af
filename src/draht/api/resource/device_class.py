"""DeviceClass: a named way to ask for devices."""

from __future__ import annotations

from typing import Literal

from draht.api.meta import Object, ObjectList
from draht.api.resource.selector import DeviceConfiguration, DeviceSelector
from draht.api.wire import Wire, always

__all__ = ["DeviceClass", "DeviceClassConfiguration", "DeviceClassList", "DeviceClassSpec"]


class DeviceClassConfiguration(DeviceConfiguration, frozen=True, kw_only=True):
    """Configuration for every device allocated through the class."""


class DeviceClassSpec(Wire, frozen=True, kw_only=True):
    """Selectors, configuration and extended resource name of a class."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True, kw_only=True):
    """A named way to ask for devices, made by an administrator."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["DeviceClass"] = always("DeviceClass")
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceClassList(ObjectList, frozen=True, kw_only=True):
    """Several device classes."""

    api_version: Literal["resource.k8s.io/v1"] = always("resource.k8s.io/v1")
    kind: Literal["DeviceClassList"] = always("DeviceClassList")
    items: tuple[DeviceClass, ...] = ()
