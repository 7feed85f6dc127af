"""``ip("10.0.0.1")`` and what can be asked of an address.

Owns k8s.io/apiserver v0.37.2 ``pkg/cel/library/ip.go``; the classes of addresses are those of Go's ``netip.Addr``. The
values are `draht.cel.library.addresses`'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from ipaddress import IPv4Address
from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError
from draht.cel.library.addresses import IP, IP_TYPE, read_address
from draht.cel.library.charges import actual_size, one, one_unit, scan, scanned, text_scan_twice
from draht.cel.sizes import STRING_FACTOR
from draht.cel.types import BOOL, INT, STRING, Type

__all__ = ["LIBRARY"]

_BROADCAST: Final = (1 << 32) - 1


def _is_ip(text: str) -> bool:
    try:
        read_address(text)
    except EvaluationError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(read_address(text)) == text


def _family(ip: IP) -> int:
    return 4 if isinstance(ip.address, IPv4Address) else 6


def _is_unspecified(ip: IP) -> bool:
    return int(ip.address) == 0


def _is_loopback(ip: IP) -> bool:
    number = int(ip.address)
    return number >> 24 == 127 if isinstance(ip.address, IPv4Address) else number == 1


def _is_multicast(ip: IP) -> bool:
    number = int(ip.address)
    return number >> 28 == 0xE if isinstance(ip.address, IPv4Address) else number >> 120 == 0xFF


def _is_link_local_multicast(ip: IP) -> bool:
    number = int(ip.address)
    if isinstance(ip.address, IPv4Address):
        return number >> 8 == 0xE00000
    # The third digit holds flags; the fourth is the scope.
    return number >> 112 & 0xFF0F == 0xFF02


def _is_link_local_unicast(ip: IP) -> bool:
    number = int(ip.address)
    return number >> 16 == 0xA9FE if isinstance(ip.address, IPv4Address) else number >> 118 == 0xFE80 >> 6


def _is_global_unicast(ip: IP) -> bool:
    number = int(ip.address)
    if number == 0 or (isinstance(ip.address, IPv4Address) and number == _BROADCAST):
        return False
    return not (_is_loopback(ip) or _is_multicast(ip) or _is_link_local_unicast(ip))


def _canonical_checked(_result: Any, *arguments: Any) -> int:
    return math.ceil(float(actual_size(arguments[0])) * 2 * STRING_FACTOR)


def _method(id_: str, call: Callable[[IP], Any], result: Type) -> Overload:
    return Overload(id_, (IP_TYPE,), result, call, member=True, estimate=one_unit, actual=one)


LIBRARY: Final = Library(
    "kubernetes.net.ip",
    (
        Function("ip", (Overload("string_to_ip", (STRING,), IP_TYPE, read_address, estimate=scan, actual=scanned),)),
        Function("family", (_method("ip_family", _family, INT),)),
        Function(
            "ip.isCanonical",
            (
                Overload(
                    "ip_is_canonical",
                    (STRING,),
                    BOOL,
                    _is_canonical,
                    estimate=text_scan_twice,
                    actual=_canonical_checked,
                ),
            ),
        ),
        Function("isUnspecified", (_method("ip_is_unspecified", _is_unspecified, BOOL),)),
        Function("isLoopback", (_method("ip_is_loopback", _is_loopback, BOOL),)),
        Function("isLinkLocalMulticast", (_method("ip_is_link_local_multicast", _is_link_local_multicast, BOOL),)),
        Function("isLinkLocalUnicast", (_method("ip_is_link_local_unicast", _is_link_local_unicast, BOOL),)),
        Function("isGlobalUnicast", (_method("ip_is_global_unicast", _is_global_unicast, BOOL),)),
        Function("isIP", (Overload("is_ip", (STRING,), BOOL, _is_ip, estimate=scan, actual=scanned),)),
        Function("string", (Overload("ip_to_string", (IP_TYPE,), STRING, str),)),
    ),
    types={IP_TYPE.name: IP_TYPE},
)
