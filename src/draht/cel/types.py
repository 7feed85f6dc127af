"""The types of CEL as the checker knows them.

Owns the type values, their equality and their names. It doesn't decide what is assignable to what (`inference`).

A type can be built from smaller ones a few hundred levels deep, and from the same one twice at each level. Equality and
hash must not walk such a tree again and again, so a type knows its hash and how large it is written out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "TYPE",
    "UINT",
    "Type",
    "list_of",
    "map_of",
    "nullable",
    "object_type",
    "opaque",
    "optional_of",
    "parameter",
    "type_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A type: its kind, its name at run time, and the types it is made of.

    Kinds: ``dyn any error bool int uint double string bytes null timestamp duration type list map object opaque
    parameter``. ``any`` and ``dyn`` both take everything; upstream keeps them apart when it compares exactly.

    Equality is upstream's exact one: kind, name and parameters, but not whether null is allowed.
    """

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()
    nullable: bool = False
    """A wrapper such as ``google.protobuf.Int64Value``: null may stand for it."""
    weight: int = field(init=False, repr=False)
    """How many types it consists of when it is written out."""
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weight = 1
        for part in self.parameters:
            weight += part.weight
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "_hash", hash((self.kind, self.name, tuple([part._hash for part in self.parameters]))))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type) or self._hash != other._hash:
            return False
        pairs: list[tuple[Type, Type]] = [(self, other)]
        while pairs:
            left, right = pairs.pop()
            if left is right:
                continue
            if left.kind != right.kind or left.name != right.name or len(left.parameters) != len(right.parameters):
                return False
            pairs.extend(zip(left.parameters, right.parameters, strict=True))
        return True

    def __str__(self) -> str:
        """As upstream writes it: ``map(string, list(int))``, ``wrapper(int)``, ``<A>``."""
        return self._written(short=False)

    def for_people(self) -> str:
        """With short names for what a person writes: ``timestamp``, ``duration``, ``null``, ``any``."""
        return self._written(short=True)

    def _written(self, *, short: bool) -> str:
        if short and self.kind in _SHORT:
            own = self.kind
        elif self.kind == "parameter":
            own = self.name if short else f"<{self.name}>"
        else:
            own = f"wrapper({self.name})" if self.nullable else self.name
        if not self.parameters:
            return own
        if self.weight > _WRITTEN:
            return f"{own}(…)"
        return f"{own}({', '.join([part._written(short=short) for part in self.parameters])})"


_SHORT: Final = frozenset({"any", "duration", "error", "null", "timestamp"})
_WRITTEN: Final = 200

DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "google.protobuf.Any")
ERROR: Final = Type("error", "error")
BOOL: Final = Type("bool", "bool")
INT: Final = Type("int", "int")
UINT: Final = Type("uint", "uint")
DOUBLE: Final = Type("double", "double")
STRING: Final = Type("string", "string")
BYTES: Final = Type("bytes", "bytes")
NULL: Final = Type("null", "null_type")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TYPE: Final = Type("type", "type")


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return Type("opaque", "optional_type", (value,))


def type_of(instance: Type) -> Type:
    """``type(instance)``: the type of a type's name used as a value."""
    return Type("type", "type", (instance,))


def object_type(name: str) -> Type:
    """A type with fields, or one of Kubernetes' own (``kubernetes.Quantity``, ``net.IP`` …)."""
    return Type("object", name)


def opaque(name: str, *parameters: Type) -> Type:
    """An abstract type with parameters."""
    return Type("opaque", name, parameters)


def nullable(wrapped: Type) -> Type:
    """A primitive type that may also be null: protobuf's wrapper messages."""
    return Type(wrapped.kind, wrapped.name, wrapped.parameters, nullable=True)


def parameter(name: str) -> Type:
    """A type parameter of a declaration, ``A`` in ``list(A).map(…)``."""
    return Type("parameter", name)
