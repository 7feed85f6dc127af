"""When two values of the API are the same, as the server asks before it says that a field may not change.

Owns upstream's semantic equality (``k8s.io/apimachinery/pkg/api/equality``): amounts and moments are compared by value
and not by how they are written, a list that is empty is one that isn't there. What is kept as it came, as drivers'
parameters are, is compared as JSON text, in which the order of keys counts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from draht.api.quantity import Quantity, QuantityError
from draht.api.reader.shape import ListShape, MapShape, ScalarShape, Shape, StructShape, shape
from draht.api.wire import Wire

__all__ = ["same"]


def same(left: Any, right: Any) -> bool:
    """Whether two structs, tuples of structs, mappings of structs or scalars are the same to the server."""
    return bool(_value(left) == _value(right))


def _value(value: Any) -> Any:
    if isinstance(value, Wire):
        return _shaped(value, shape(type(value)))
    if isinstance(value, dict):
        return {key: _value(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_value(each) for each in value]
    return value


def _shaped(value: Any, known: Shape) -> Any:
    if value is None:
        return None
    match known:
        case StructShape():
            return [_shaped(getattr(value, field.name), field.shape) for field in known.fields.values()]
        case ListShape(item=item):
            return [_shaped(each, item) for each in value]
        case MapShape(value=item):
            return {key: _shaped(each, item) for key, each in value.items()}
        case ScalarShape(kind="quantity"):
            return _amount(value)
        case ScalarShape(kind="time"):
            return _moment(value)
        case ScalarShape():
            return value
        case _:
            return msgspec.json.encode(value)


def _amount(value: str | int) -> Quantity | str | int:
    try:
        return Quantity.from_wire(value)
    except QuantityError:
        return value


def _moment(value: str) -> datetime | str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
