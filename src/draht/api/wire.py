"""What all wire structs share: the base class and the scalar types that mean more than their Python type.

A wire struct is one object or part of an object exactly as Kubernetes spells it in JSON: camelCase names, absent fields
for zero values, amounts and times as the text they came as. Structs are frozen; change one with
`msgspec.structs.replace`. Lists are tuples.

Three conventions follow Go's JSON tags, because servers and drivers are written in Go:

- a Go pointer is ``T | None``: unset differs from zero (``adminAccess: false`` is not "no admin access given");
- a Go value is ``T`` with its zero value as default: unset and zero are the same and neither is written;
- a field without default is one that the API requires and whose zero value it refuses.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

__all__ = ["Int32", "Int64", "IntOrString", "MicroTime", "QuantityValue", "Time", "Wire", "always"]

_T = TypeVar("_T")

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

QuantityValue = Annotated[str | int, msgspec.Meta(extra={"wire": "quantity"})]
"""An amount such as ``80Gi`` or ``1``, as it was written; `draht.api.quantity` gives it a value."""

Time = Annotated[str, msgspec.Meta(extra={"wire": "time"})]
"""A moment in RFC 3339 form, as it was written; servers write whole seconds in UTC."""

MicroTime = Annotated[str, msgspec.Meta(extra={"wire": "micro-time"})]
"""A moment in RFC 3339 form with exactly six digits of a second, as events have it."""

IntOrString = Annotated[Int32 | str, msgspec.Meta(extra={"wire": "int-or-string"})]
"""A port by number or by name."""


class Wire(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Base of all wire structs.

    ``gc=False``: a frozen tree built by a decoder has no cycles, and a cluster snapshot has some hundred thousand
    structs that each full collection would visit.
    """


def always(value: _T) -> _T:
    """A default that is written out all the same: ``apiVersion`` and ``kind`` tell what the object is."""
    field: _T = msgspec.field(default_factory=lambda: value)
    return field
