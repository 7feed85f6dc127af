"""The libraries of Kubernetes' base environment, together.

Owns the list and its order, which is the order of a function's overloads (k8s.io/apiserver v0.37.2
``pkg/cel/environment/base.go`` at compatibility 1.37). It doesn't know devices.
"""

from __future__ import annotations

from typing import Final

from draht.cel.declarations import Library
from draht.cel.library import (
    authorization,
    bind,
    cidr,
    comprehensions,
    formats,
    ip,
    kubernetes_lists,
    lists,
    optional,
    quantities,
    regex,
    sets,
    strings,
    urls,
    versions,
    wellknown,
)
from draht.cel.library.macros import STANDARD_MACROS
from draht.cel.library.standard import STANDARD

__all__ = ["BASE", "BASE_OF_1_34", "BINDINGS"]

BASE: Final[tuple[Library, ...]] = (
    STANDARD,
    wellknown.LIBRARY,
    Library("macros", macros=STANDARD_MACROS),
    urls.LIBRARY,
    regex.LIBRARY,
    authorization.LIBRARY,
    optional.LIBRARY,
    quantities.LIBRARY,
    strings.LIBRARY,
    sets.LIBRARY,
    ip.LIBRARY,
    cidr.LIBRARY,
    formats.LIBRARY,
    comprehensions.LIBRARY,
    versions.LIBRARY,
    lists.LIBRARY,
    kubernetes_lists.LIBRARY,
)
"""The language and Kubernetes' libraries."""

_AFTER_REGEX: Final = BASE.index(regex.LIBRARY) + 1
BASE_OF_1_34: Final = (*BASE[:_AFTER_REGEX], kubernetes_lists.LIBRARY, *BASE[_AFTER_REGEX:-1])
"""The same at the oldest compatible version, with which new expressions are judged: the functions of lists stand before
those of strings. It shows where a function of both is called on what may be either."""

BINDINGS: Final = bind.LIBRARY
"""What dynamic resource allocation adds: ``cel.bind``. (``includes``, too, which is in the base since 1.37.)"""
