"""JSON values to structs where nothing is odd, which is what programs write: a third of the cost of walking nodes.

Owns no rule: whatever isn't plainly right (an unknown field, a null in a list, a number that is no integer, a name that
would be warned of) is `OddError`, and the strict walk says what is wrong with it, if anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from draht.api.kinds import KINDS
from draht.api.reader import hint as hints
from draht.api.reader.shape import ListShape, MapShape, ScalarShape, Shape, StructShape, UntypedShape, shape
from draht.api.reader.text import is_quantity, time_problem
from draht.api.wire import Wire
from draht.api.yaml import MAX_DEPTH

__all__ = ["OddError", "once", "plain_object"]

_Read = Callable[[Any], Any]


class OddError(Exception):
    """Look closer."""


def plain_object(value: object) -> Any:
    """The object that a JSON value with ``apiVersion`` and ``kind`` is.

    Raises:
        OddError: It isn't plainly one.
    """
    if type(value) is not dict:
        raise OddError
    version, kind = value.get("apiVersion"), value.get("kind")
    struct = KINDS.get((version, kind)) if type(version) is str and type(kind) is str else None
    if struct is None:
        raise OddError
    return _reader(shape(struct))(value)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no name is there twice.

    Raises:
        OddError: One is.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise OddError
    return found


def _reader(known: Shape) -> _Read:
    match known:
        case StructShape():
            return _struct(known.struct)
        case ListShape(item=item):
            return _list(_reader(item))
        case MapShape(value=value):
            return _map(value, _reader(value))
        case UntypedShape():
            return _untyped
        case ScalarShape():
            return _scalar(known)


@cache
def _struct(struct: type[Wire]) -> _Read:
    known = shape(struct)
    # Read when first met: a shape may contain itself.
    fields: dict[str, tuple[str, _Read]] = {}
    required = frozenset(field.name for field in known.fields.values() if field.required)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise OddError
        values = {}
        for name, given in value.items():
            field = fields.get(name)
            if field is None:
                described = known.fields.get(name)
                if described is None:
                    raise OddError
                field = fields[name] = (described.name, _reader(described.shape))
            if given is not None:
                values[field[0]] = field[1](given)
        if required and not required <= values.keys():
            raise OddError
        return struct(**values)

    return read


def _list(item: _Read) -> _Read:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise OddError
        return tuple([item(each) for each in value])

    return read


def _map(known: Shape, below: _Read) -> _Read:
    amounts = isinstance(known, ScalarShape) and known.kind == "quantity"

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise OddError
        if amounts and any(hints.resource_name(name) is not None for name in value):
            raise OddError
        return {name: below(each) for name, each in value.items()}

    return read


def _scalar(known: ScalarShape) -> _Read:
    minimum, maximum = known.minimum, known.maximum

    def text(value: Any) -> Any:
        if type(value) is not str:
            raise OddError
        return value

    def time(value: Any) -> Any:
        if type(value) is not str or time_problem(value, micro=known.kind == "micro-time") is not None:
            raise OddError
        return value

    def boolean(value: Any) -> Any:
        if type(value) is not bool:
            raise OddError
        return value

    def integer(value: Any) -> Any:
        if type(value) is not int or not minimum <= value <= maximum:
            raise OddError
        return value

    def amount(value: Any) -> Any:
        if type(value) is not str or len(value) > 64 or not _is_amount(value):
            raise OddError
        return value

    match known.kind:
        case "str":
            return text
        case "bool":
            return boolean
        case "int":
            return integer
        case "quantity":
            return amount
        case "time" | "micro-time":
            return time
        case "int-or-string":
            return lambda value: value if type(value) is str else integer(value)


_is_amount = lru_cache(maxsize=4096)(is_quantity)


def _untyped(value: Any, depth: int = 0) -> Any:
    if type(value) is str or type(value) is bool or value is None:
        return value
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if depth < MAX_DEPTH // 2:
        if type(value) is list:
            return [_untyped(each, depth + 1) for each in value]
        if type(value) is dict:
            return {name: _untyped(each, depth + 1) for name, each in value.items()}
    raise OddError
