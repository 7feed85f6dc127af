"""Comparisons with a constant, which is what selectors are mostly made of.

Owns the short ways: where the value turns out to have the constant's class, Python compares; everything else goes the
long way through `draht.cel.values`, so the meaning is the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from draht.cel.closures_logic import Closure
from draht.cel.numbers import UInt
from draht.cel.values import key_of

__all__ = ["among", "constant_set", "with_constant"]

_SIMPLE: Final = frozenset({int, str})
_COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}


def with_constant(function: str, call: Callable[[Any, Any], Any], left: Closure, constant: Any) -> Closure | None:
    """Code of ``left OP constant``, or None where there is no short way.

    Args:
        function: The operator's name.
        call: Its code for any values.
        left: Code of the left operand.
        constant: The right operand.
    """
    class_ = type(constant)
    if class_ not in _SIMPLE:
        return None
    if function == "_==_":

        def equals(frame: Any) -> Any:
            value = left(frame)
            return value == constant if type(value) is class_ else call(value, constant)

        return equals
    if function == "_!=_":

        def differs(frame: Any) -> Any:
            value = left(frame)
            return value != constant if type(value) is class_ else call(value, constant)

        return differs
    compared = _COMPARED.get(function)
    if compared is None:
        return None

    def ordered(frame: Any) -> Any:
        value = left(frame)
        return compared(value, constant) if type(value) is class_ else call(value, constant)

    return ordered


_PRIMITIVES: Final = frozenset({bool, int, UInt, float, str})


def constant_set(elements: Any) -> frozenset[Any] | None:
    """The elements of a constant list for `among`, or None where upstream searches the list.

    Source: cel-go v0.29.2 ``interpreter/decorators.go`` (``maybeOptimizeSetMembership``).
    """
    keys = set()
    for element in elements:
        kind = type(element)
        if kind not in _PRIMITIVES:
            return None
        keys.add(key_of(element))
        if kind is int:
            keys.add(key_of(float(element)))
            if element >= 0:
                keys.add(key_of(UInt(element)))
        elif kind is UInt:
            keys.add(key_of(float(element)))
            if element < 1 << 63:
                keys.add(key_of(int(element)))
        elif kind is float and element.is_integer():
            number = int(element)
            if -(1 << 63) < number < 1 << 63:
                keys.add(key_of(number))
            if 0 <= number < 1 << 64:
                keys.add(key_of(UInt(number)))
    return frozenset(keys)


def among(left: Closure, keys: frozenset[Any]) -> Closure:
    """Code of ``left in [constants]``."""
    return lambda frame: key_of(left(frame)) in keys
