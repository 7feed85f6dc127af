"""What the language itself charges for a call, before it runs.

Owns cel-go's price list for the overloads of its standard library, and Kubernetes' prices for the equality of its own
types. A function of a library brings its price with it; whatever nobody prices costs one unit. Source: cel-go v0.29.2
``checker/cost.go`` ``functionCost``, k8s.io/apiserver v0.37.2 ``pkg/cel/library/cost.go``.

It doesn't know what depends on more than the operands' sizes: the branches of ``&&``, ``||`` and ``?:`` are the
estimator's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from draht.cel.sizes import ONE, REGEX_LENGTH_FACTOR, STRING_FACTOR, CallCost, Cost, Operand, Size, wrapped

__all__ = ["COMPARISONS", "CONCATENATIONS", "price"]

_UNIT: Final = CallCost(ONE)
_MOST_FORMAT_NAME: Final = 64

COMPARISONS: Final = frozenset(
    [
        f"{relation}_{kind}"
        for relation in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    ]
    + ["equals", "not_equals"]
)
"""Overloads that compare as far as the shorter operand goes."""
CONCATENATIONS: Final = frozenset({"add_string", "add_bytes", "add_list"})


def price(overload: str, operands: tuple[Operand, ...]) -> CallCost:
    """The price of a call without its operands' cost.

    Args:
        overload: Upstream's name of the overload.
        operands: Receiver and arguments.
    """
    priced = _PRICES.get(overload)
    return priced(operands) if priced is not None else _UNIT


def _first(operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(operands[0].size.scaled(STRING_FACTOR))


def _second(operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(operands[1].size.scaled(STRING_FACTOR))


def _to_bytes(operands: tuple[Operand, ...]) -> CallCost:
    size = operands[0].size
    return CallCost(size.scaled(STRING_FACTOR), Size(size.least, wrapped(size.most * 4)))


def _to_string(operands: tuple[Operand, ...]) -> CallCost:
    size = operands[0].size
    return CallCost(size.scaled(STRING_FACTOR), Size(size.least // 4, size.most))


def _quote(operands: tuple[Operand, ...]) -> CallCost:
    size = operands[0].size
    return CallCost(size.scaled(STRING_FACTOR), Size(wrapped(size.least + 2), wrapped(size.most * 2 + 2)))


def _in_list(operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(operands[1].size.scaled(1))


def _matches(operands: tuple[Operand, ...]) -> CallCost:
    # One more, so that an empty text doesn't make an expensive pattern free.
    text = (operands[0].size + Size.fixed(1)).scaled(STRING_FACTOR)
    return CallCost(text * operands[1].size.scaled(REGEX_LENGTH_FACTOR))


def _contains(operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(operands[0].size.scaled(STRING_FACTOR) * operands[1].size.scaled(STRING_FACTOR))


def _add_list(operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(ONE, operands[0].size + operands[1].size)


def _add_text(operands: tuple[Operand, ...]) -> CallCost:
    size = operands[0].size + operands[1].size
    return CallCost(size.scaled(STRING_FACTOR), size)


def _comparison(operands: tuple[Operand, ...]) -> CallCost:
    most = min(operands[0].size.most, operands[1].size.most)
    return CallCost(Cost(1 if most else 0, most).scaled(STRING_FACTOR))


def _equals(operands: tuple[Operand, ...]) -> CallCost:
    left, right = operands[0].type, operands[1].type
    if left.name != right.name:
        return _comparison(operands)
    if left.kind == "opaque" and left.name in {"net.IP", "net.CIDR"}:
        return _UNIT
    if left.kind == "object":
        if left.name in {"kubernetes.Quantity", "kubernetes.Semver"}:
            return _UNIT
        if left.name == "kubernetes.NamedFormat":
            return CallCost(Cost(1, _MOST_FORMAT_NAME).scaled(STRING_FACTOR))
        if left.name == "kubernetes.URL":
            # Upstream asks for the right operand's size twice.
            known = operands[1].known
            return CallCost(Cost(1, known.most if known is not None else 1).scaled(STRING_FACTOR))
    return _comparison(operands)


_PRICES: Final[dict[str, Callable[[tuple[Operand, ...]], CallCost]]] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    "equals": _equals,
    "string_format": _first,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_string,
    "strings_quote": _quote,
    "starts_with_string": _second,
    "ends_with_string": _second,
    "in_list": _in_list,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_list": _add_list,
    "add_string": _add_text,
    "add_bytes": _add_text,
}
