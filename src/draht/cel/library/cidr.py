"""``cidr("10.0.0.0/8")`` and what can be asked of a prefix.

Owns k8s.io/apiserver v0.37.2 ``pkg/cel/library/cidr.go``. The values are `draht.cel.library.addresses`'.
"""

from __future__ import annotations

import math
from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError
from draht.cel.library.addresses import CIDR, CIDR_TYPE, IP, IP_TYPE, read_address, read_prefix
from draht.cel.library.charges import actual_size, one, one_unit, scan, scanned
from draht.cel.sizes import ONE, STRING_FACTOR, CallCost, Operand, Size
from draht.cel.types import BOOL, INT, STRING

__all__ = ["LIBRARY"]

_ADDRESS_BYTES: Final = Size(4, 16)


def _is_cidr(text: str) -> bool:
    try:
        read_prefix(text)
    except EvaluationError:
        return False
    return True


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    return cidr.contains(ip.address)


def _contains_ip_text(cidr: CIDR, text: str) -> bool:
    try:
        address = read_address(text).address
    except EvaluationError as error:
        # Upstream passes the failed address on, which then has the wrong type.
        raise EvaluationError(error.message, kind="no-such-overload", hint=error.hint) from None
    return cidr.contains(address)


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    return cidr.contains_prefix(other)


def _contains_cidr_text(cidr: CIDR, text: str) -> bool:
    return cidr.contains_prefix(read_prefix(text))


def _ip(cidr: CIDR) -> IP:
    return IP(cidr.address)


def _prefix_length(cidr: CIDR) -> int:
    return cidr.length


def _masked(cidr: CIDR) -> CIDR:
    return cidr.masked()


# Prices


def _contains_ip_estimate(_operands: tuple[Operand, ...]) -> CallCost:
    return CallCost((_ADDRESS_BYTES + _ADDRESS_BYTES).scaled(STRING_FACTOR))


def _contains_ip_text_estimate(operands: tuple[Operand, ...]) -> CallCost:
    cost = (_ADDRESS_BYTES + _ADDRESS_BYTES).scaled(STRING_FACTOR)
    return CallCost(cost + operands[1].size.scaled(STRING_FACTOR))


def _contains_cidr_estimate(operands: tuple[Operand, ...]) -> CallCost:
    cost = _contains_ip_estimate(operands).cost + _ADDRESS_BYTES.scaled(STRING_FACTOR) + ONE
    return CallCost(cost)


def _contains_cidr_text_estimate(operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(_contains_cidr_estimate(operands).cost + operands[1].size.scaled(STRING_FACTOR))


def _scaled(size: int) -> int:
    return math.ceil(float(size) * STRING_FACTOR)


def _ip_compared(_result: Any, *arguments: Any) -> int:
    return _scaled(2 * actual_size(arguments[0]))


def _ip_text_compared(_result: Any, *arguments: Any) -> int:
    return _scaled(2 * actual_size(arguments[0])) + _scaled(actual_size(arguments[1]))


def _cidr_compared(_result: Any, *arguments: Any) -> int:
    size = actual_size(arguments[0])
    return _scaled(2 * size) + _scaled(size) + 1


def _cidr_text_compared(_result: Any, *arguments: Any) -> int:
    return _cidr_compared(_result, *arguments) + _scaled(actual_size(arguments[1]))


LIBRARY: Final = Library(
    "kubernetes.net.cidr",
    (
        Function(
            "cidr", (Overload("string_to_cidr", (STRING,), CIDR_TYPE, read_prefix, estimate=scan, actual=scanned),)
        ),
        Function(
            "containsIP",
            (
                Overload(
                    "cidr_contains_ip_string",
                    (CIDR_TYPE, STRING),
                    BOOL,
                    _contains_ip_text,
                    member=True,
                    estimate=_contains_ip_text_estimate,
                    actual=_ip_text_compared,
                ),
                Overload(
                    "cidr_contains_ip_ip",
                    (CIDR_TYPE, IP_TYPE),
                    BOOL,
                    _contains_ip,
                    member=True,
                    estimate=_contains_ip_estimate,
                    actual=_ip_compared,
                ),
            ),
        ),
        Function(
            "containsCIDR",
            (
                Overload(
                    "cidr_contains_cidr_string",
                    (CIDR_TYPE, STRING),
                    BOOL,
                    _contains_cidr_text,
                    member=True,
                    estimate=_contains_cidr_text_estimate,
                    actual=_cidr_text_compared,
                ),
                Overload(
                    "cidr_contains_cidr",
                    (CIDR_TYPE, CIDR_TYPE),
                    BOOL,
                    _contains_cidr,
                    member=True,
                    estimate=_contains_cidr_estimate,
                    actual=_cidr_compared,
                ),
            ),
        ),
        Function("ip", (Overload("cidr_ip", (CIDR_TYPE,), IP_TYPE, _ip, member=True, estimate=one_unit, actual=one),)),
        Function(
            "prefixLength",
            (
                Overload(
                    "cidr_prefix_length",
                    (CIDR_TYPE,),
                    INT,
                    _prefix_length,
                    member=True,
                    estimate=one_unit,
                    actual=one,
                ),
            ),
        ),
        Function(
            "masked",
            (Overload("cidr_masked", (CIDR_TYPE,), CIDR_TYPE, _masked, member=True, estimate=one_unit, actual=one),),
        ),
        Function("isCIDR", (Overload("is_cidr", (STRING,), BOOL, _is_cidr, estimate=scan, actual=scanned),)),
        Function("string", (Overload("cidr_to_string", (CIDR_TYPE,), STRING, str),)),
    ),
    types={CIDR_TYPE.name: CIDR_TYPE},
)
