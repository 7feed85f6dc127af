"""Quantities in expressions: ``quantity("80Gi")`` and what can be asked of them.

Owns k8s.io/apiserver v0.37.2 ``pkg/cel/library/quantity.go``. The amounts themselves are `draht.api.quantity`'s. Note
that ``sign`` is called ``sign(q)``: upstream doesn't declare ``q.sign()``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from draht.api.quantity import Format, Quantity, QuantityError
from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError
from draht.cel.library.charges import one, one_unit, scan, scanned
from draht.cel.types import BOOL, DOUBLE, INT, STRING, Type
from draht.cel.values import QUANTITY

__all__ = ["LIBRARY"]


def _quantity(text: str) -> Quantity:
    try:
        # As a key of a map each one is another, even if it is equal.
        return Quantity.unshared(text)
    except QuantityError as error:
        raise EvaluationError(error.message, hint=error.hint) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity(text)
    except QuantityError:
        return False
    return True


def _sign(amount: Quantity) -> int:
    return amount.sign()


def _is_greater_than(a: Quantity, b: Quantity) -> bool:
    return a.compare(b) > 0


def _is_less_than(a: Quantity, b: Quantity) -> bool:
    return a.compare(b) < 0


def _compare_to(a: Quantity, b: Quantity) -> int:
    return a.compare(b)


def _as_float(amount: Quantity) -> float:
    return amount.as_approximate_float64()


def _as_integer(amount: Quantity) -> int:
    number = amount.as_int64()
    if number is None:
        raise EvaluationError(f"{amount} is no integer of 64 bits", hint="ask isInteger() first")
    return number


def _is_integer(amount: Quantity) -> bool:
    return amount.is_integer()


def _add(a: Quantity, b: Quantity) -> Quantity:
    try:
        return a + b
    except QuantityError as error:
        raise EvaluationError(error.message, hint=error.hint) from None


def _sub(a: Quantity, b: Quantity) -> Quantity:
    try:
        return a - b
    except QuantityError as error:
        raise EvaluationError(error.message, hint=error.hint) from None


def _add_int(a: Quantity, b: int) -> Quantity:
    return _add(a, Quantity.of(b, Format.DECIMAL_EXPONENT))


def _sub_int(a: Quantity, b: int) -> Quantity:
    return _sub(a, Quantity.of(b, Format.DECIMAL_EXPONENT))


def _method(id_: str, call: Callable[..., Any], result: Type, *parameters: Type) -> Overload:
    return Overload(id_, (QUANTITY, *parameters), result, call, member=True, estimate=one_unit, actual=one)


def _reader(id_: str, call: Callable[[str], Any], result: Type) -> Overload:
    return Overload(id_, (STRING,), result, call, estimate=scan, actual=scanned)


LIBRARY: Final = Library(
    "kubernetes.quantity",
    (
        Function("quantity", (_reader("string_to_quantity", _quantity, QUANTITY),)),
        Function("isQuantity", (_reader("is_quantity_string", _is_quantity, BOOL),)),
        Function("sign", (Overload("quantity_sign", (QUANTITY,), INT, _sign, estimate=one_unit, actual=one),)),
        Function("isGreaterThan", (_method("quantity_is_greater_than", _is_greater_than, BOOL, QUANTITY),)),
        Function("isLessThan", (_method("quantity_is_less_than", _is_less_than, BOOL, QUANTITY),)),
        Function("compareTo", (_method("quantity_compare_to", _compare_to, INT, QUANTITY),)),
        Function("asApproximateFloat", (_method("quantity_get_float", _as_float, DOUBLE),)),
        Function("asInteger", (_method("quantity_get_int", _as_integer, INT),)),
        Function("isInteger", (_method("quantity_is_integer", _is_integer, BOOL),)),
        Function(
            "add",
            (
                _method("quantity_add", _add, QUANTITY, QUANTITY),
                _method("quantity_add_int", _add_int, QUANTITY, INT),
            ),
        ),
        Function(
            "sub",
            (
                _method("quantity_sub", _sub, QUANTITY, QUANTITY),
                _method("quantity_sub_int", _sub_int, QUANTITY, INT),
            ),
        ),
    ),
)
