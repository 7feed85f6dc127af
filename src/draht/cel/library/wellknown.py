"""The messages of protobuf that every CEL environment knows: wrappers, times, JSON values.

Owns their names, types and fields. A selector has no use for them, but upstream accepts ``google.protobuf.Int64Value{
value: 1}`` as another way to write 1, so a text that holds it must be accepted and priced. How such a literal becomes a
value is in `draht.cel.messages`. Source: cel-go v0.29.2 ``common/types/provider.go`` and ``common/types/types.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from draht.cel.declarations import Library
from draht.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    nullable,
    object_type,
)

__all__ = ["LIBRARY"]

_PREFIX: Final = "google.protobuf."
_EMPTY: Final = object_type(f"{_PREFIX}Empty")
_STRUCT: Final = map_of(STRING, DYN)
_LIST: Final = list_of(DYN)

_WRAPPERS: Final = {
    "BoolValue": BOOL,
    "BytesValue": BYTES,
    "DoubleValue": DOUBLE,
    "FloatValue": DOUBLE,
    "Int32Value": INT,
    "Int64Value": INT,
    "StringValue": STRING,
    "UInt32Value": UINT,
    "UInt64Value": UINT,
}
_OTHERS: Final[Mapping[str, tuple[Type, Mapping[str, Type]]]] = {
    "Any": (ANY, {"type_url": STRING, "value": BYTES}),
    "Duration": (DURATION, {"seconds": INT, "nanos": INT}),
    "Empty": (_EMPTY, {}),
    "ListValue": (_LIST, {"values": _LIST}),
    "Struct": (_STRUCT, {"fields": _STRUCT}),
    "Timestamp": (TIMESTAMP, {"seconds": INT, "nanos": INT}),
    "Value": (
        DYN,
        {
            "null_value": INT,
            "number_value": DOUBLE,
            "string_value": STRING,
            "bool_value": BOOL,
            "struct_value": _STRUCT,
            "list_value": _LIST,
        },
    ),
}

LIBRARY: Final = Library(
    "wellknown",
    types={_EMPTY.name: _EMPTY},
    constants={f"{_PREFIX}NullValue.NULL_VALUE": (INT, 0)},
    messages={
        **{_PREFIX + name: nullable(wrapped) for name, wrapped in _WRAPPERS.items()},
        **{_PREFIX + name: kind for name, (kind, _) in _OTHERS.items()},
        # Kubernetes' type provider also finds these names, but only where a literal is made of them.
        "duration": DURATION,
        "timestamp": TIMESTAMP,
    },
    fields={
        **{_PREFIX + name: {"value": wrapped} for name, wrapped in _WRAPPERS.items()},
        **{_PREFIX + name: fields for name, (_, fields) in _OTHERS.items()},
    },
)
