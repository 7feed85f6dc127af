"""Literals of messages: ``google.protobuf.Int64Value{value: 1}``.

The language has them, the device environment has no use for them: they make values that can be written shorter. Owns
the wrappers, which are their value or its default, JSON values, timestamps and durations. Any other message is an
evaluation error, as upstream's is for the type of the device itself. Source: cel-go v0.29.2
``common/types/provider.go``.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from draht.cel.closures_logic import Closure
from draht.cel.errors import EvaluationError
from draht.cel.gotime import MAX_UNIX_SECONDS, MIN_UNIX_SECONDS, Instant, format_duration, format_timestamp
from draht.cel.numbers import UInt
from draht.cel.types import Type, object_type
from draht.cel.values import MISSING, Duration, Map, Optional, Timestamp, type_name

__all__ = ["message"]

Fields = dict[str, Any]


def _unfit(value: Any, wanted: str) -> EvaluationError:
    return EvaluationError(f"a {type_name(value)} doesn't fit a field of type {wanted}", kind="conversion")


def _exactly(class_: type, wanted: str) -> Callable[[Any], Any]:
    def fit(value: Any) -> Any:
        if type(value) is not class_:
            raise _unfit(value, wanted)
        return value

    return fit


_BOOL: Final = _exactly(bool, "bool")
_INT: Final = _exactly(int, "int")
_UINT: Final = _exactly(UInt, "uint")
_DOUBLE: Final = _exactly(float, "double")
_STRING: Final = _exactly(str, "string")
_BYTES: Final = _exactly(bytes, "bytes")


def _int32(value: Any) -> int:
    number: int = _INT(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise EvaluationError("integer overflow", kind="overflow")
    return number


def _uint32(value: Any) -> UInt:
    number: UInt = _UINT(value)
    if number >= 1 << 32:
        raise EvaluationError("unsigned integer overflow", kind="overflow")
    return number


def _float32(value: Any) -> float:
    number: float = _DOUBLE(value)
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return rounded


def _json(value: Any) -> Any:
    """The value as JSON has it: numbers are doubles, or texts where a double would round them."""
    kind = type(value)
    if value is None or kind is bool or kind is float or kind is str:
        return value
    if kind is int or kind is UInt:
        return float(value) if abs(value) < 1 << 53 else str(int(value))
    if kind is bytes:
        return base64.b64encode(value).decode()
    if kind is Timestamp:
        return format_timestamp(Instant(value.seconds, value.nanoseconds, value.offset))
    if kind is Duration:
        return format_duration(value.nanoseconds)
    if kind is list or kind is tuple:
        return _json_list(value)
    if kind is Optional and value.has_value:
        return _json(value.value)
    return _json_map(value)


def _json_list(value: Any) -> Any:
    if type(value) is not list and type(value) is not tuple:
        raise _unfit(value, "list")
    return [_json(element) for element in value]


def _json_map(value: Any) -> Any:
    if not isinstance(value, Map):
        raise _unfit(value, "map")
    return Map.of((_STRING(key), _json(entry)) for key, entry in value.items())


def _wrapper(fit: Callable[[Any], Any], default: Any) -> Callable[[Fields], Any]:
    return lambda fields: fit(fields["value"]) if "value" in fields else default


def _timestamp(fields: Fields) -> Timestamp:
    seconds, nanos = _INT(fields.get("seconds", 0)), _int32(fields.get("nanos", 0))
    carry, rest = divmod(nanos, 10**9)
    # Upstream goes on with years that have no text.
    if not MIN_UNIX_SECONDS <= seconds + carry <= MAX_UNIX_SECONDS:
        raise EvaluationError("timestamp overflow", kind="overflow")
    return Timestamp(seconds + carry, rest)


def _duration(fields: Fields) -> Duration:
    total = _INT(fields.get("seconds", 0)) * 10**9 + _int32(fields.get("nanos", 0))
    # Upstream's conversion stays at the ends instead of failing.
    return Duration(max(-(1 << 63), min(total, (1 << 63) - 1)))


def _struct(fields: Fields) -> Any:
    return _json_map(fields.get("fields", Map({})))


def _list(fields: Fields) -> Any:
    return _json_list(fields.get("values", []))


_KINDS: Final[dict[str, Callable[[Any], Any]]] = {
    "number_value": _DOUBLE,
    "string_value": _STRING,
    "bool_value": _BOOL,
    "struct_value": _json_map,
    "list_value": _json_list,
}


def _value(fields: Fields) -> Any:
    # They are alternatives; upstream keeps whichever it happens to set last.
    for kind, fit in _KINDS.items():
        if kind in fields:
            return fit(fields[kind])
    return None


@final
@dataclass(frozen=True, slots=True)
class _Empty:
    cel_type: ClassVar[Type] = object_type("google.protobuf.Empty")


def _empty(_fields: Fields) -> _Empty:
    return _Empty()


_MADE: Final[dict[str, Callable[[Fields], Any]]] = {
    "google.protobuf.BoolValue": _wrapper(_BOOL, False),
    "google.protobuf.BytesValue": _wrapper(_BYTES, b""),
    "google.protobuf.DoubleValue": _wrapper(_DOUBLE, 0.0),
    "google.protobuf.FloatValue": _wrapper(_float32, 0.0),
    "google.protobuf.Int32Value": _wrapper(_int32, 0),
    "google.protobuf.Int64Value": _wrapper(_INT, 0),
    "google.protobuf.StringValue": _wrapper(_STRING, ""),
    "google.protobuf.UInt32Value": _wrapper(_uint32, UInt(0)),
    "google.protobuf.UInt64Value": _wrapper(_UINT, UInt(0)),
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
        return make(values)

    return made
