"""Code of ``&&``, ``||``, ``?:``, calls and literals of lists and maps.

A closure takes the frame of one evaluation and returns a value or raises. ``&&`` and ``||`` don't care in which order
their operands stand: an error on one side is hidden by the side that decides. Source: cel-go v0.29.2
``interpreter/interpretable.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from draht.cel.errors import AbortError, EvaluationError
from draht.cel.values import MISSING, Map, Optional, key_of, no_such_overload, type_name

__all__ = [
    "Closure",
    "call",
    "conditional",
    "conjunction",
    "constant",
    "demanded",
    "disjunction",
    "failing",
    "list_of",
    "map_of",
    "otherwise",
]

Closure: TypeAlias = Callable[[Any], Any]
"""Code of one node: takes the frame, returns the value."""


def constant(value: Any) -> Closure:
    """Always the value."""
    return lambda _frame: value


def failing(error: EvaluationError) -> Closure:
    """Always the error."""

    def failed(_frame: Any) -> Any:
        raise error

    return failed


def _outcome(closure: Closure, frame: Any) -> Any:
    """The value, or the error that is of no interest beside an earlier one."""
    try:
        return closure(frame)
    except AbortError:
        raise
    except EvaluationError as error:
        return error


def _no_operands(name: str, *values: Any) -> EvaluationError:
    return no_such_overload(name, *[value for value in values if not isinstance(value, EvaluationError)])


def conjunction(left: Closure, right: Closure) -> Closure:
    """``left && right``."""

    def both(frame: Any) -> bool:
        try:
            first = left(frame)
        except AbortError:
            raise
        except EvaluationError as error:
            if _outcome(right, frame) is False:
                return False
            # Not chained: the two sides have nothing to do with each other.
            raise error from None
        if first is False:
            return False
        second = right(frame) if first is True else _outcome(right, frame)
        if second is False:
            return False
        if first is True and second is True:
            return True
        raise _no_operands("_&&_", first, second)

    return both


def disjunction(left: Closure, right: Closure) -> Closure:
    """``left || right``."""

    def either(frame: Any) -> bool:
        try:
            first = left(frame)
        except AbortError:
            raise
        except EvaluationError as error:
            if _outcome(right, frame) is True:
                return True
            raise error from None
        if first is True:
            return True
        second = right(frame) if first is False else _outcome(right, frame)
        if second is True:
            return True
        if first is False and second is False:
            return False
        raise _no_operands("_||_", first, second)

    return either


def conditional(condition: Closure, then: Closure, otherwise: Closure) -> Closure:
    """``condition ? then : otherwise``."""

    def chosen(frame: Any) -> Any:
        decided = condition(frame)
        if decided is True:
            return then(frame)
        if decided is False:
            return otherwise(frame)
        raise no_such_overload("_?_:_", decided)

    return chosen


def otherwise(left: Closure, right: Closure, *, unwrap: bool) -> Closure:
    """``left.or(right)``, or with ``unwrap`` ``left.orValue(right)``; the right side is evaluated if it is needed."""
    name = "orValue" if unwrap else "or"

    def chosen(frame: Any) -> Any:
        value = left(frame)
        if type(value) is not Optional:
            raise no_such_overload(name, value)
        if value.value is MISSING:
            return right(frame)
        return value.value if unwrap else value

    return chosen


def demanded(closure: Closure, *classes: type) -> Closure:
    """The value, of one of the classes if there are any; nothing else and no error of it can be hidden.

    Upstream's meter looks into some arguments before it knows that they are what it expects, and panics.
    """

    def checked(frame: Any) -> Any:
        try:
            value = closure(frame)
        except AbortError:
            raise
        except EvaluationError as error:
            raise AbortError(error.message, hint=error.hint) from None
        if classes and type(value) not in classes:
            raise AbortError(f"a {type_name(value)} can't be used here")
        return value

    return checked


def call(function: Callable[..., Any], arguments: Sequence[Closure], *, stops: bool) -> Closure:
    """A call whose arguments are all evaluated first.

    Args:
        function: The code.
        arguments: Code of the arguments.
        stops: The first argument that fails ends the call; else the others can still end everything.
    """
    if len(arguments) == 1:
        (only,) = arguments
        return lambda frame: function(only(frame))
    if len(arguments) == 2:
        return _binary(function, *arguments, stops=stops)
    kept = tuple(arguments)

    def called(frame: Any) -> Any:
        return function(*[argument(frame) for argument in kept])

    return called


def _binary(function: Callable[..., Any], first: Closure, second: Closure, *, stops: bool) -> Closure:
    if stops:
        return lambda frame: function(first(frame), second(frame))

    def called(frame: Any) -> Any:
        try:
            left = first(frame)
        except AbortError:
            raise
        except EvaluationError:
            _outcome(second, frame)
            raise
        return function(left, second(frame))

    return called


def list_of(elements: Sequence[Closure], optional: frozenset[int]) -> Closure:
    """``[a, ?b]``."""
    kept = tuple(elements)
    if not optional:
        return lambda frame: [element(frame) for element in kept]

    def made(frame: Any) -> list[Any]:
        values = []
        for index, element in enumerate(kept):
            value = element(frame)
            if index in optional:
                value = _held(value, "list element")
                if value is MISSING:
                    continue
            values.append(value)
        return values

    return made


def map_of(entries: Sequence[tuple[Closure, Closure, bool]]) -> Closure:
    """``{a: b, ?c: d}``; of equal keys the last one counts."""
    kept = tuple(entries)

    def made(frame: Any) -> Map:
        values: dict[Any, Any] = {}
        for key, value, optional in kept:
            found = key(frame)
            held = value(frame)
            if optional:
                held = _held(held, "entry")
                if held is MISSING:
                    values.pop(key_of(found), None)
                    continue
            values[key_of(found)] = held
        return Map(values)

    return made


def _held(value: Any, what: str) -> Any:
    if type(value) is not Optional:
        raise EvaluationError(f"cannot initialize optional {what} from a value that is not optional")
    return value.value
