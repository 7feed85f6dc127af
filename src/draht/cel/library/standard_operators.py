"""The operators: arithmetic, comparison, logic, membership and indexing.

An operator looks at the types of its values when it runs, whatever the checker chose, because a value of type dyn may
be anything; so all overloads of one operator share their code. Integers are of 64 bits and overflow is an error;
division truncates as in Go; a double is never an error. What needs more than values (``&&``, ``||``, ``?:``, indexing)
is declared here and made by the compiler. Source: cel-go v0.29.2 ``common/stdlib`` and ``common/types``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from draht.cel.declarations import Function, Overload
from draht.cel.errors import EvaluationError, LimitError
from draht.cel.gotime import MAX_UNIX_SECONDS, MIN_UNIX_SECONDS
from draht.cel.numbers import MAX_UINT64, UInt
from draht.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    parameter,
)
from draht.cel.values import (
    MAX_INT64,
    MIN_INT64,
    MISSING,
    Duration,
    Map,
    Timestamp,
    compare,
    contains,
    equal,
    no_such_overload,
    not_equal,
)

__all__ = ["MAX_ELEMENTS", "OPERATORS", "add", "less", "subtract"]

MAX_ELEMENTS: Final = 1 << 14
"""Elements that a list may get by concatenation. Upstream has no limit and copies nothing: ``x + x`` costs one unit,
however long it is. Attributes have at most 64 elements."""
_SECOND: Final = 10**9
_A: Final = parameter("A")
_B: Final = parameter("B")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, _B)


def _int64(number: int) -> int:
    if MIN_INT64 <= number <= MAX_INT64:
        return number
    raise EvaluationError("integer overflow", kind="overflow")


def _uint64(number: int) -> UInt:
    if 0 <= number <= MAX_UINT64:
        return UInt(number)
    raise EvaluationError("unsigned integer overflow", kind="overflow")


def add(a: Any, b: Any) -> Any:
    """``a + b``: numbers, texts, bytes, lists, durations, and a duration with a timestamp.

    Raises:
        EvaluationError: The types don't go together, or the result doesn't fit.
    """
    kind = type(a)
    other = type(b)
    if kind is int and other is int:
        return _int64(a + b)
    if kind is other:
        if kind is str or kind is float or kind is bytes:
            return a + b
        if kind is UInt:
            return _uint64(int(a) + int(b))
        if kind is Duration:
            return Duration(_int64(a.nanoseconds + b.nanoseconds))
    if kind is Duration and other is Timestamp:
        return _moved(b, a.nanoseconds)
    if kind is Timestamp and other is Duration:
        return _moved(a, b.nanoseconds)
    if (kind is list or kind is tuple) and (other is list or other is tuple):
        if len(a) + len(b) > MAX_ELEMENTS:
            raise LimitError(f"a list would have more than {MAX_ELEMENTS:,} elements")
        return [*a, *b]
    raise no_such_overload("_+_", a, b)


def subtract(a: Any, b: Any) -> Any:
    """``a - b``: numbers, durations, a duration from a timestamp, and the time between timestamps.

    Raises:
        EvaluationError: The types don't go together, or the result doesn't fit.
    """
    kind = type(a)
    other = type(b)
    if kind is int and other is int:
        return _int64(a - b)
    if kind is other:
        if kind is float:
            return a - b
        if kind is UInt:
            return _uint64(int(a) - int(b))
        if kind is Duration:
            return Duration(_int64(a.nanoseconds - b.nanoseconds))
        if kind is Timestamp:
            # Upstream checks the seconds alone first.
            whole = _int64((a.seconds - b.seconds) * _SECOND)
            return Duration(_int64(whole + a.nanoseconds - b.nanoseconds))
    if kind is Timestamp and other is Duration:
        return _moved(a, _int64(-b.nanoseconds))
    raise no_such_overload("_-_", a, b)


def _moved(moment: Timestamp, nanoseconds: int) -> Timestamp:
    carry, rest = divmod(moment.nanoseconds + nanoseconds, _SECOND)
    seconds = moment.seconds + carry
    if not MIN_UNIX_SECONDS <= seconds <= MAX_UNIX_SECONDS:
        raise EvaluationError("timestamp overflow", kind="overflow")
    return Timestamp(seconds, rest, moment.offset)


def _multiply(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b):
        if kind is int:
            return _int64(a * b)
        if kind is float:
            return a * b
        if kind is UInt:
            return _uint64(int(a) * int(b))
    raise no_such_overload("_*_", a, b)


def _divide(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b):
        if kind is float:
            return a / b if b else _divided_by_zero(a, b)
        if kind is int or kind is UInt:
            if b == 0:
                raise EvaluationError("division by zero", kind="division")
            if kind is UInt:
                return UInt(int(a) // int(b))
            quotient = abs(a) // abs(b)
            return _int64(quotient if (a < 0) == (b < 0) else -quotient)
    raise no_such_overload("_/_", a, b)


def _divided_by_zero(a: float, b: float) -> float:
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _modulo(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b) and (kind is int or kind is UInt):
        if b == 0:
            raise EvaluationError("modulus by zero", kind="division")
        if kind is UInt:
            return UInt(int(a) % int(b))
        if a == MIN_INT64 and b == -1:
            raise EvaluationError("integer overflow", kind="overflow")
        rest = abs(a) % abs(b)
        return rest if a >= 0 else -rest
    raise no_such_overload("_%_", a, b)


def _negate(a: Any) -> Any:
    kind = type(a)
    if kind is int:
        return _int64(-a)
    if kind is float:
        return -a
    if kind is Duration:
        # No overload for it is declared, but a value of type dyn gets here.
        return Duration(_int64(-a.nanoseconds))
    raise no_such_overload("-_", a)


def _not(a: Any) -> bool:
    if type(a) is bool:
        return not a
    raise no_such_overload("!_", a)


def _not_strictly_false(a: Any) -> bool:
    return a is not False


def less(a: Any, b: Any) -> bool:
    """``a < b``.

    Raises:
        EvaluationError: The types have no order, or a number is NaN.
    """
    return compare(a, b) < 0


def _less_or_equal(a: Any, b: Any) -> bool:
    return compare(a, b) <= 0


def _greater(a: Any, b: Any) -> bool:
    return compare(a, b) > 0


def _greater_or_equal(a: Any, b: Any) -> bool:
    return compare(a, b) >= 0


def _in(element: Any, container: Any) -> bool:
    kind = type(container)
    if kind is list or kind is tuple:
        return contains(element, container)
    if isinstance(container, Map):
        return container.entry(element) is not MISSING
    raise no_such_overload("@in", element, container)


def _operator(name: str, call: Callable[..., Any] | None, *signatures: tuple[str, tuple[Type, ...], Type]) -> Function:
    overloads = (Overload(id_, types, result, call, guarded=False) for id_, types, result in signatures)
    return Function(name, tuple(overloads))


def _comparison(name: str, word: str, call: Callable[[Any, Any], bool]) -> Function:
    numbers = {INT: "int64", UINT: "uint64", DOUBLE: "double"}
    signatures: list[tuple[str, tuple[Type, ...], Type]] = [(f"{word}_bool", (BOOL, BOOL), BOOL)]
    for left, left_name in numbers.items():
        # Upstream's order: the type itself first, then doubles before integers.
        for right in (left, *(t for t in (DOUBLE, INT, UINT) if t is not left)):
            right_name = numbers[right]
            id_ = f"{word}_{left_name}" if right is left else f"{word}_{left_name}_{right_name}"
            signatures.append((id_, (left, right), BOOL))
    texts = ((STRING, "string"), (BYTES, "bytes"), (TIMESTAMP, "timestamp"), (DURATION, "duration"))
    signatures.extend((f"{word}_{text}", (type_, type_), BOOL) for type_, text in texts)
    return _operator(name, call, *signatures)


OPERATORS: Final = (
    _operator("_?_:_", None, ("conditional", (BOOL, _A, _A), _A)),
    _operator("_&&_", None, ("logical_and", (BOOL, BOOL), BOOL)),
    _operator("_||_", None, ("logical_or", (BOOL, BOOL), BOOL)),
    _operator("!_", _not, ("logical_not", (BOOL,), BOOL)),
    _operator("@not_strictly_false", _not_strictly_false, ("not_strictly_false", (BOOL,), BOOL)),
    _operator("_==_", equal, ("equals", (_A, _A), BOOL)),
    _operator("_!=_", not_equal, ("not_equals", (_A, _A), BOOL)),
    _operator(
        "_+_",
        add,
        ("add_bytes", (BYTES, BYTES), BYTES),
        ("add_double", (DOUBLE, DOUBLE), DOUBLE),
        ("add_duration_duration", (DURATION, DURATION), DURATION),
        ("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        ("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("add_int64", (INT, INT), INT),
        ("add_list", (_LIST, _LIST), _LIST),
        ("add_string", (STRING, STRING), STRING),
        ("add_uint64", (UINT, UINT), UINT),
    ),
    _operator(
        "_/_",
        _divide,
        ("divide_double", (DOUBLE, DOUBLE), DOUBLE),
        ("divide_int64", (INT, INT), INT),
        ("divide_uint64", (UINT, UINT), UINT),
    ),
    _operator("_%_", _modulo, ("modulo_int64", (INT, INT), INT), ("modulo_uint64", (UINT, UINT), UINT)),
    _operator(
        "_*_",
        _multiply,
        ("multiply_double", (DOUBLE, DOUBLE), DOUBLE),
        ("multiply_int64", (INT, INT), INT),
        ("multiply_uint64", (UINT, UINT), UINT),
    ),
    _operator("-_", _negate, ("negate_double", (DOUBLE,), DOUBLE), ("negate_int64", (INT,), INT)),
    _operator(
        "_-_",
        subtract,
        ("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
        ("subtract_duration_duration", (DURATION, DURATION), DURATION),
        ("subtract_int64", (INT, INT), INT),
        ("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        ("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
        ("subtract_uint64", (UINT, UINT), UINT),
    ),
    _comparison("_<_", "less", less),
    _comparison("_<=_", "less_equals", _less_or_equal),
    _comparison("_>_", "greater", _greater),
    _comparison("_>=_", "greater_equals", _greater_or_equal),
    _operator("_[_]", None, ("index_list", (_LIST, INT), _A), ("index_map", (_MAP, _A), _B)),
    _operator("@in", _in, ("in_list", (_A, _LIST), BOOL), ("in_map", (_A, _MAP), BOOL)),
)
