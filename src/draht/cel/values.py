"""Values at run time: how each type is represented, what they are called, when they are equal, how they are ordered.

====================  ==========================================================
CEL                   Python
====================  ==========================================================
null, bool, string    ``None``, ``bool``, ``str``
int, uint             ``int``, `UInt`; a ``bool`` is never an int: ``type(x) is``
double, bytes         ``float``, ``bytes``
list                  ``list`` or ``tuple``, never changed once made
map                   `Map`
duration, timestamp   `Duration`, `Timestamp`
a type                `draht.cel.types.Type`
optional              `Optional`
Quantity, Semver      `draht.api.quantity.Quantity`, `draht.api.semver.Version`
of a library          a class with the attribute ``cel_type``; its ``==`` is CEL's among values of that class;
                      with ``cel_unhashable`` if it can't be a key, ``cel_by_identity`` if equal ones are other keys
====================  ==========================================================

Equality and order are those of cel-go v0.29.2 (``common/types``), with what may surprise: numbers of different types
are compared as doubles once one is a double; a Kubernetes type compared with anything else is an error, not false; and
inside lists and maps that error counts as equal. It doesn't know functions; they are in the libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from draht.api.quantity import Quantity
from draht.api.semver import Version
from draht.cel.errors import AbortError, EvaluationError, LimitError
from draht.cel.numbers import UInt
from draht.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    object_type,
    optional_of,
)

__all__ = [
    "MAX_INT64",
    "MIN_INT64",
    "MISSING",
    "NONE",
    "QUANTITY",
    "SEMVER",
    "Duration",
    "Map",
    "Optional",
    "Timestamp",
    "compare",
    "contains",
    "equal",
    "is_by_identity",
    "key_of",
    "no_such_overload",
    "not_equal",
    "type_name",
    "type_of",
]

_TWO_63: Final = 2.0**63
_TWO_64: Final = 2.0**64

MIN_INT64: Final = -(1 << 63)
MAX_INT64: Final = (1 << 63) - 1

QUANTITY: Final = object_type("kubernetes.Quantity")
SEMVER: Final = object_type("kubernetes.Semver")

LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
OPTIONAL: Final = optional_of(DYN)


@final
class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Any] = _Missing()
"""What `Map.find` returns for a key that isn't there; null is a value."""


@final
@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds, as many as an int64 holds."""

    cel_type: ClassVar[Type] = DURATION

    nanoseconds: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Timestamp:
    """A point in time between the years 1 and 9999.

    Args:
        seconds: Since the Unix epoch.
        nanoseconds: 0 to 999,999,999 on top.
        offset: Seconds east of UTC of the zone in which it was written; shown by ``string()``, no part of the value.
    """

    cel_type: ClassVar[Type] = TIMESTAMP

    seconds: int
    nanoseconds: int = 0
    offset: int = 0

    def __eq__(self, other: object) -> bool:
        if type(other) is not Timestamp:
            return NotImplemented
        return self.seconds == other.seconds and self.nanoseconds == other.nanoseconds

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanoseconds))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Optional:
    """A value that may be absent; `NONE` is the absent one."""

    cel_type: ClassVar[Type] = OPTIONAL

    value: Any
    """The value, or `MISSING`."""

    @property
    def has_value(self) -> bool:
        """Whether there is a value."""
        return self.value is not MISSING

    def __repr__(self) -> str:
        return f"optional({self.value!r})" if self.has_value else "optional.none()"


NONE: Final = Optional(MISSING)


class Map:
    """A map. Keys of different types are different keys, but a number finds an equal int or uint key.

    Subclasses may override `find`, the look-up of ``m[k]``, ``m.k`` and ``has(m.k)``; ``in``, iteration and size go by
    what is really there.
    """

    __slots__ = ("entries",)

    cel_type: ClassVar[Type] = MAP

    entries: dict[Any, Any]
    """Values by `key_of`; never changed once the map is used."""

    def __init__(self, entries: dict[Any, Any]) -> None:
        self.entries = entries

    @classmethod
    def of(cls, items: Iterable[tuple[Any, Any]]) -> Map:
        """The map with these keys and values; a later key replaces an equal earlier one.

        Raises:
            AbortError: A key can't be one.
        """
        return cls({key_of(key): value for key, value in items})

    def find(self, key: Any) -> Any:
        """The value of the key, or `MISSING`.

        Raises:
            AbortError: The key can't be one.
        """
        return self.entry(key)

    def entry(self, key: Any) -> Any:
        """What is really there under the key, or `MISSING`; not to be overridden.

        Raises:
            AbortError: The key can't be one.
        """
        entries = self.entries
        kind = type(key)
        if kind is str or not entries:
            return entries.get(key, MISSING) if kind is str else MISSING
        found = entries.get(key_of(key), MISSING)
        if found is not MISSING:
            return found
        if kind is int:
            return entries.get(_Key(UInt, key, key), MISSING) if key >= 0 else MISSING
        if kind is UInt:
            return entries.get(int(key), MISSING) if key <= MAX_INT64 else MISSING
        if kind is float and -_TWO_63 < key < _TWO_64 and key.is_integer():
            number = int(key)
            if number <= MAX_INT64 and number in entries:
                return entries[number]
            return entries.get(_Key(UInt, number, number), MISSING) if number >= 0 else MISSING
        return MISSING

    def keys(self) -> Iterator[Any]:
        """The keys as values, in the order in which they were put in."""
        for key in self.entries:
            yield key.value if type(key) is _Key else key

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values."""
        for key, value in self.entries.items():
            yield (key.value if type(key) is _Key else key), value

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Map({dict(self.items())!r})"


@final
class _Key:
    """What stands for a value that isn't a str or int in a dict: equal where type and payload are."""

    __slots__ = ("kind", "payload", "value")

    def __init__(self, kind: Any, payload: Any, value: Any) -> None:
        self.kind = kind
        self.payload = payload
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Key and self.kind is other.kind and bool(self.payload == other.payload)

    def __hash__(self) -> int:
        return hash((self.kind, self.payload))


def key_of(value: Any) -> Any:
    """Under what a value is kept in `Map.entries` and in sets: itself for str and int.

    Raises:
        AbortError: The value has no hash upstream (bytes, versions).
    """
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is float:
        # NaN isn't even the key that it is.
        return _Key(kind, value if value == value else object(), value)
    if kind is bytes or kind is Version:
        raise AbortError(f"a value of type {type_name(value)} can't be a key")
    if kind is UInt:
        return _Key(kind, int(value), value)
    if kind is Type:
        return _Key(kind, value.name, value)
    if kind is Timestamp:
        return _Key(kind, (value.seconds, value.nanoseconds, value.offset), value)
    if kind is bool or value is None or kind is Duration:
        return _Key(kind, value, value)
    if getattr(kind, "cel_unhashable", False):
        raise AbortError(f"a value of type {type_name(value)} can't be a key")
    # The key keeps the value alive, so the id stays its own.
    return _Key(kind, id(value) if is_by_identity(kind) or kind.__hash__ is None else value, value)


def is_by_identity(kind: type) -> bool:
    """Whether two values of a type are two keys, even if they are equal: pointers upstream."""
    return kind in _BY_IDENTITY or getattr(kind, "cel_by_identity", False)


_TYPES: Final[dict[type, Type]] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    list: LIST,
    tuple: LIST,
    Map: MAP,
    Duration: DURATION,
    Timestamp: TIMESTAMP,
    Type: TYPE,
    Optional: OPTIONAL,
    Quantity: QUANTITY,
    Version: SEMVER,
}

_BY_IDENTITY: Final = frozenset({list, tuple, Map, Optional, Quantity})


def type_of(value: Any) -> Type:
    """The type of a value at run time; what containers hold is not part of it."""
    found = _TYPES.get(type(value))
    if found is None:
        found = value.cel_type
    assert isinstance(found, Type)
    return found


def type_name(value: Any) -> str:
    """The name of the value's type: ``int``, ``list``, ``kubernetes.Quantity``."""
    return type_of(value).name


def no_such_overload(function: str, *arguments: Any) -> EvaluationError:
    """The error of a call whose arguments fit no overload of the function."""
    message = f"no such overload: {function}({', '.join(map(type_name, arguments))})"
    return EvaluationError(message, kind="no-such-overload")


def equal(a: Any, b: Any) -> bool:
    """``a == b``.

    Raises:
        EvaluationError: ``a`` is of a type of Kubernetes' libraries and ``b`` isn't, or the same inside optionals.
    """
    kind = type(a)
    other = type(b)
    if kind is other and kind in _PLAIN:
        return bool(a == b)
    if a is None or b is None:
        return a is b
    comparing = _EQUAL.get(kind)
    if comparing is not None:
        return comparing(a, b)
    if isinstance(a, Map):
        return _equal_nested(a, b)
    # A class of a library: its own kind only.
    if kind is not other:
        raise no_such_overload("_==_", a, b)
    return bool(a == b)


def not_equal(a: Any, b: Any) -> bool:
    """``a != b``; where ``a == b`` is an error, this is true."""
    try:
        return not equal(a, b)
    except AbortError:
        raise
    except EvaluationError:
        return True


def contains(element: Any, container: Any) -> bool:
    """``element in list``; an element that can't be compared isn't equal."""
    for value in container:
        try:
            # Upstream asks the element itself, which knows null only as a type.
            if equal(element, value):
                return True
        except AbortError:
            raise
        except EvaluationError:
            continue
    return False


def compare(a: Any, b: Any) -> int:
    """-1, 0 or 1 as ``a`` is less than, equal to or greater than ``b``.

    Raises:
        EvaluationError: The types have no order, or a number is NaN.
    """
    kind = type(a)
    other = type(b)
    if kind is other and kind in _ORDERED:
        if kind is float and (a != a or b != b):
            raise EvaluationError("NaN values cannot be ordered")
        return int(a > b) - int(a < b)
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(a, b)
    if kind is other is Timestamp:
        left, right = (a.seconds, a.nanoseconds), (b.seconds, b.nanoseconds)
        return (left > right) - (left < right)
    raise no_such_overload("compare", a, b)


_NUMBERS: Final = frozenset({int, UInt, float})
_ORDERED: Final = frozenset({bool, int, UInt, float, str, bytes, Duration})
_PLAIN: Final = frozenset({bool, int, UInt, float, str, bytes, Duration, Timestamp, Quantity, Version})


def _compare_numbers(a: Any, b: Any) -> int:
    """Numbers of different types; as soon as one is a double, both are made doubles, as upstream does."""
    if type(a) is not float and type(b) is not float:
        return (int(a) > int(b)) - (int(a) < int(b))
    if a != a or b != b:
        raise EvaluationError("NaN values cannot be ordered")
    left, right = float(a), float(b)
    return (left > right) - (left < right)


def _equal_numbers(a: Any, b: Any) -> bool:
    if type(b) not in _NUMBERS or a != a or b != b:
        return False
    return _compare_numbers(a, b) == 0


_MAX_CONTAINERS: Final = 100_000
"""How many lists and maps inside a value are compared; making more costs more than any limit allows, but one list may
stand in another twice, and that one in a third …"""


def _equal_nested(a: Any, b: Any) -> bool:
    return _same(a, b, [_MAX_CONTAINERS])


def _same(a: Any, b: Any, left: list[int]) -> bool:
    kind = type(a)
    if kind is list or kind is tuple:
        if (type(b) is not list and type(b) is not tuple) or len(a) != len(b):
            return False
        return all(_not_unequal(one, other, left) for one, other in zip(a, b, strict=True))
    if kind is Optional:
        if type(b) is not Optional:
            return False
        if a.value is MISSING or b.value is MISSING:
            return a.value is b.value
        return _same(a.value, b.value, left)
    if isinstance(a, Map):
        if not isinstance(b, Map) or len(a.entries) != len(b.entries):
            return False
        for key, value in a.items():
            found = b.find(key)
            if found is MISSING or not _not_unequal(value, found, left):
                return False
        return True
    return equal(a, b)


def _not_unequal(a: Any, b: Any, left: list[int]) -> bool:
    """Equality inside lists and maps: what can't be compared counts as equal, as upstream has it."""
    kind = type(a)
    if kind is type(b) and kind in _PLAIN:
        return bool(a == b)
    left[0] -= kind is list or kind is tuple or isinstance(a, Map)
    if left[0] < 0:
        raise LimitError(f"comparing these values means comparing more than {_MAX_CONTAINERS:,} lists and maps")
    try:
        return _same(a, b, left)
    except AbortError:
        raise
    except EvaluationError:
        return True


def _equal_types(a: Type, b: Any) -> bool:
    return type(b) is Type and a.name == b.name


def _never(_a: Any, _b: Any) -> bool:
    return False


_EQUAL: Final[dict[type, Callable[[Any, Any], bool]]] = {
    int: _equal_numbers,
    UInt: _equal_numbers,
    float: _equal_numbers,
    list: _equal_nested,
    tuple: _equal_nested,
    Map: _equal_nested,
    Optional: _equal_nested,
    Type: _equal_types,
    # Equal ones are of one class and never get here.
    bool: _never,
    str: _never,
    bytes: _never,
    Duration: _never,
    Timestamp: _never,
}
