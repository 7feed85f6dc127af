"""The Namespace; DRA reads its labels (admin access)."""

from __future__ import annotations

from typing import Literal

from draht.api.meta import Object, ObjectList
from draht.api.wire import Time, Wire, always

__all__ = ["Namespace", "NamespaceCondition", "NamespaceList", "NamespaceSpec", "NamespaceStatus"]


class NamespaceSpec(Wire, frozen=True, kw_only=True):
    """What must finish before a namespace goes."""

    finalizers: tuple[str, ...] = ()


class NamespaceCondition(Wire, frozen=True, kw_only=True):
    """One observed aspect of a namespace."""

    type: str
    status: str
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class NamespaceStatus(Wire, frozen=True, kw_only=True):
    """Whether a namespace is Active or Terminating."""

    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] = ()


class Namespace(Object, frozen=True, kw_only=True):
    """A scope for names."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["Namespace"] = always("Namespace")
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class NamespaceList(ObjectList, frozen=True, kw_only=True):
    """Several namespaces."""

    api_version: Literal["v1"] = always("v1")
    kind: Literal["NamespaceList"] = always("NamespaceList")
    items: tuple[Namespace, ...] = ()
