"""Literals of messages: ``google.protobuf.Int64Value{value: 1}``.

The language has them, the device environment has no use for them: they make values that can be written shorter. Owns
the wrappers, which are their value or its default, JSON values, timestamps and durations. Any other message is an
evaluation error, as upstream's is for the type of the device itself. Source: cel-go v0.29.2
``common/types/provider.go``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from draht.cel.closures_logic import Closure
from draht.cel.errors import EvaluationError
from draht.cel.gotime import MAX_UNIX_SECONDS, MIN_UNIX_SECONDS
from draht.cel.numbers import UInt
from draht.cel.types import Type, object_type
from draht.cel.values import MISSING, Duration, Map, Optional, Timestamp

__all__ = ["message"]

Fields = dict[str, Any]


def _wrapper(default: Any) -> Callable[[Fields], Any]:
    return lambda fields: fields.get("value", default)


def _int32(fields: Fields) -> int:
    value: int = fields.get("value", 0)
    if not -(1 << 31) <= value < 1 << 31:
        raise EvaluationError("integer overflow", kind="overflow")
    return value


def _uint32(fields: Fields) -> UInt:
    value: UInt = fields.get("value", UInt(0))
    if value >= 1 << 32:
        raise EvaluationError("unsigned integer overflow", kind="overflow")
    return value


def _float32(fields: Fields) -> float:
    value: float = fields.get("value", 0.0)
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _timestamp(fields: Fields) -> Timestamp:
    seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
    carry, rest = divmod(nanos, 10**9)
    if not MIN_UNIX_SECONDS <= seconds + carry <= MAX_UNIX_SECONDS:
        raise EvaluationError("timestamp overflow", kind="overflow")
    return Timestamp(seconds + carry, rest)


def _duration(fields: Fields) -> Duration:
    total = fields.get("seconds", 0) * 10**9 + fields.get("nanos", 0)
    # Upstream's conversion stays at the ends instead of failing.
    return Duration(max(-(1 << 63), min(total, (1 << 63) - 1)))


def _struct(fields: Fields) -> Any:
    return fields.get("fields", Map({}))


def _list(fields: Fields) -> Any:
    return fields.get("values", [])


_KINDS: Final = ("number_value", "string_value", "bool_value", "struct_value", "list_value")


def _value(fields: Fields) -> Any:
    # They are alternatives; upstream keeps whichever it happens to set last.
    return next((fields[kind] for kind in _KINDS if kind in fields), None)


@final
@dataclass(frozen=True, slots=True)
class _Empty:
    cel_type: ClassVar[Type] = object_type("google.protobuf.Empty")


def _empty(_fields: Fields) -> _Empty:
    return _Empty()


_MADE: Final[dict[str, Callable[[Fields], Any]]] = {
    "google.protobuf.BoolValue": _wrapper(False),
    "google.protobuf.BytesValue": _wrapper(b""),
    "google.protobuf.DoubleValue": _wrapper(0.0),
    "google.protobuf.FloatValue": _float32,
    "google.protobuf.Int32Value": _int32,
    "google.protobuf.Int64Value": _wrapper(0),
    "google.protobuf.StringValue": _wrapper(""),
    "google.protobuf.UInt32Value": _uint32,
    "google.protobuf.UInt64Value": _wrapper(UInt(0)),
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list,
    "google.protobuf.Value": _value,
    "google.protobuf.Empty": _empty,
}


def message(name: str, fields: Sequence[tuple[str, Closure, bool]]) -> Closure:
    """Code of ``name{field: value}``; the flag says that the field is written with a question mark."""
    make = _MADE.get(name)
    kept = tuple(fields)

    def made(frame: Any) -> Any:
        values: Fields = {}
        for field, closure, optional in kept:
            value = closure(frame)
            if optional:
                if type(value) is not Optional:
                    raise EvaluationError("cannot initialize optional entry from a value that is not optional")
                value = value.value
                if value is MISSING:
                    values.pop(field, None)
                    continue
            values[field] = value
        if make is None:
            raise EvaluationError(f"unknown type '{name}'")
        # A field set to null is one that isn't set.
        return make({field: value for field, value in values.items() if value is not None})

    return made
