"""What a text may hold at each place: the struct types of `draht.api` as a tree that a reader can walk.

The structs stay the only description of the API; this module turns their types into the few cases that reading
distinguishes, once per type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import msgspec
from msgspec import inspect

from draht.api.wire import Wire

__all__ = [
    "Field",
    "ListShape",
    "MapShape",
    "ScalarKind",
    "ScalarShape",
    "Shape",
    "StructShape",
    "UntypedShape",
    "shape",
]

ScalarKind = Literal["str", "bool", "int", "quantity", "time", "micro-time", "int-or-string"]


@dataclass(frozen=True, slots=True)
class ScalarShape:
    """One value; the bounds are those of integers."""

    kind: ScalarKind
    minimum: int = -(2**63)
    maximum: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ListShape:
    """A sequence."""

    item: Shape


@dataclass(frozen=True, slots=True)
class MapShape:
    """A mapping with any keys."""

    value: Shape


@dataclass(frozen=True, slots=True)
class UntypedShape:
    """Whatever JSON can say; drivers' own parameters."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, by its name in Python."""

    name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, slots=True)
class StructShape:
    """A mapping whose keys are fields; `fields` is keyed by their names in JSON."""

    struct: type[Wire]
    fields: Mapping[str, Field]


Shape = ScalarShape | ListShape | MapShape | UntypedShape | StructShape


@cache
def shape(struct: type[Wire]) -> StructShape:
    """The shape of a struct type."""
    fields = {
        field.encode_name: Field(field.name, _shape(field.type), field.required)
        for field in _struct_type(struct).fields
    }
    return StructShape(struct, fields)


def _struct_type(struct: type[Wire]) -> inspect.StructType:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    return described


def _shape(described: inspect.Type) -> Shape:
    kind: ScalarKind | None = None
    if isinstance(described, inspect.UnionType):
        members = [member for member in described.types if not isinstance(member, inspect.NoneType)]
        assert len(members) == 1, described
        described = members[0]
    if isinstance(described, inspect.Metadata):
        kind = (described.extra or {}).get("wire")
        described = described.type
    if kind == "int-or-string":
        return ScalarShape(kind, -(2**31), 2**31 - 1)
    if kind is not None:
        return ScalarShape(kind)
    match described:
        case inspect.AnyType():
            return UntypedShape()
        case inspect.StrType() | inspect.LiteralType():
            return ScalarShape("str")
        case inspect.BoolType():
            return ScalarShape("bool")
        case inspect.IntType(ge=minimum, le=maximum):
            assert minimum is not None
            assert maximum is not None
            return ScalarShape("int", minimum, maximum)
        case inspect.VarTupleType(item_type=item):
            return ListShape(_shape(item))
        case inspect.DictType(value_type=value):
            return MapShape(_shape(value))
        case inspect.StructType(cls=struct):
            return shape(struct)
    raise msgspec.ValidationError(f"no reading for {described}")
