"""Choosing the overload of a function by the types of its arguments at run time.

The checker leaves several overloads where types are dyn, and even where it leaves one, a dyn argument may turn out to
be anything. Owns the comparison of values with declared types and the call that follows from it, as cel-go v0.29.2 does
them (``common/decls``): of a list or map only the first element is looked at, and the first overload that fits is
called. It doesn't know any function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from draht.api.quantity import Quantity
from draht.api.semver import Version
from draht.cel.declarations import Overload
from draht.cel.numbers import UInt
from draht.cel.types import Type
from draht.cel.values import QUANTITY, SEMVER, Duration, Map, Optional, Timestamp, no_such_overload, type_of

__all__ = ["bound", "call_overloads", "fits"]

_CLASSES: Final[dict[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "bytes": bytes,
    "null": type(None),
    "timestamp": Timestamp,
    "duration": Duration,
    "type": Type,
}
_DYNAMIC: Final = frozenset({"dyn", "any", "parameter"})
_LISTS: Final = (list, tuple)


def fits(value: Any, type_: Type) -> bool:
    """Whether a value can be passed for a parameter of the type."""
    kind = type_.kind
    if kind in _DYNAMIC:
        return True
    class_ = _CLASSES.get(kind)
    if class_ is not None:
        return type(value) is class_
    if kind == "list":
        if type(value) not in _LISTS:
            return False
        return not value or fits(value[0], type_.parameters[0])
    if kind == "map":
        if not isinstance(value, Map):
            return False
        for key, element in value.items():
            return fits(key, type_.parameters[0]) and fits(element, type_.parameters[1])
        return True
    return type_of(value).name == type_.name


def _exact_class(type_: Type) -> type | None:
    """The one class that values of the type have, where comparing classes is all there is to do."""
    if type_ == QUANTITY:
        return Quantity
    if type_ == SEMVER:
        return Version
    if type_.kind == "opaque" and type_.name == "optional_type":
        return Optional
    return _CLASSES.get(type_.kind)


def call_overloads(name: str, overloads: Sequence[Overload], arguments: Sequence[Any]) -> Any:
    """Call the first overload that the arguments fit.

    Raises:
        EvaluationError: They fit none, or the call fails.
    """
    for overload in overloads:
        if overload.call is None or len(overload.parameters) != len(arguments):
            continue
        if not overload.guarded or all(map(fits, arguments, overload.parameters)):
            return overload.call(*arguments)
    raise no_such_overload(name, *arguments)


def bound(name: str, overloads: Sequence[Overload]) -> Callable[..., Any]:
    """A function of the arguments that calls the first overload they fit; fast where there is little to compare.

    Args:
        name: The function's name, for the error.
        overloads: Those with the number of arguments that will be passed.

    Raises:
        EvaluationError: From the function: the arguments fit no overload, or the call fails.
    """
    calls = {overload.call for overload in overloads}
    call = next(iter(calls), None)
    if len(calls) == 1 and call is not None:
        if not any(overload.guarded for overload in overloads) or any(map(_accepts_all, overloads)):
            return call
        classes = [_exact_class(type_) for type_ in overloads[0].parameters] if len(overloads) == 1 else []
        if None not in classes and len(classes) == 1:
            return _guarded_unary(name, call, classes[0])
        if None not in classes and len(classes) == 2:
            return _guarded_binary(name, call, classes[0], classes[1])
    kept = tuple(overloads)

    def dispatch(*arguments: Any) -> Any:
        return call_overloads(name, kept, arguments)

    return dispatch


def _accepts_all(overload: Overload) -> bool:
    return all(type_.kind in _DYNAMIC for type_ in overload.parameters)


def _guarded_unary(name: str, call: Callable[[Any], Any], class_: type | None) -> Callable[[Any], Any]:
    def guarded(a: Any) -> Any:
        if type(a) is class_:
            return call(a)
        raise no_such_overload(name, a)

    return guarded


def _guarded_binary(
    name: str, call: Callable[[Any, Any], Any], first: type | None, second: type | None
) -> Callable[[Any, Any], Any]:
    def guarded(a: Any, b: Any) -> Any:
        if type(a) is first and type(b) is second:
            return call(a, b)
        raise no_such_overload(name, a, b)

    return guarded
