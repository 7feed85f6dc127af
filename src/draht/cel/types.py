"""The types of CEL as the checker knows them.

Owns the type values and their names. It doesn't decide what is assignable to what; that is the checker's.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    "object_type",
    "opaque",
    "optional_of",
    "parameter",
    "type_of",
]


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, its name at run time, and the types it is made of.

    Kinds: ``dyn any error bool int uint double string bytes null timestamp duration type list map object opaque
    parameter``. ``any`` and ``dyn`` both take everything; upstream keeps them apart when it compares exactly.
    """

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "any")
ERROR: Final = Type("error", "*error*")
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


def parameter(name: str) -> Type:
    """A type parameter of a declaration, ``A`` in ``list(A).map(…)``."""
    return Type("parameter", name)
