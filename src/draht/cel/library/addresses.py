"""Values of ``ip()`` and ``cidr()``: IP addresses and prefixes as Go's ``net/netip`` reads and writes them.

Owns the two classes and their reading. Go and Python's ``ipaddress`` agree on addresses; what Kubernetes doesn't take
(zones, IPv4 written as IPv6) is refused here, and prefix lengths are read as Go reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import ClassVar, Final, TypeAlias, final

from draht.cel.errors import EvaluationError
from draht.cel.types import Type, opaque

__all__ = ["CIDR", "CIDR_TYPE", "IP", "IP_TYPE", "is_ipv6", "read_address", "read_prefix"]

IP_TYPE: Final = opaque("net.IP")
CIDR_TYPE: Final = opaque("net.CIDR")

_Address: TypeAlias = IPv4Address | IPv6Address
# The longest text of an address is shorter; a megabyte of digits must not be taken apart to be refused.
_LONGEST: Final = 64


@final
@dataclass(frozen=True, slots=True)
class IP:
    """An IP address without a zone; never an IPv4 address written as IPv6."""

    cel_type: ClassVar[Type] = IP_TYPE

    address: _Address

    @property
    def cel_size(self) -> int:
        """Bytes."""
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


@final
@dataclass(frozen=True, slots=True)
class CIDR:
    """An address and how many of its bits count; the others may be set."""

    cel_type: ClassVar[Type] = CIDR_TYPE

    address: _Address
    length: int

    @property
    def cel_size(self) -> int:
        """Bytes that the prefix covers."""
        return (self.length + 7) // 8

    def masked(self) -> CIDR:
        """The same with all bits cleared that don't count."""
        return CIDR(type(self.address)(self._network(self.address)), self.length)

    def contains(self, address: _Address) -> bool:
        """Whether the address begins with the prefix."""
        return type(address) is type(self.address) and self._network(address) == self._network(self.address)

    def contains_prefix(self, other: CIDR) -> bool:
        """Whether all addresses of the other are of this."""
        return self.length <= other.length and self.contains(other.address)

    def _network(self, address: _Address) -> int:
        spare = address.max_prefixlen - self.length
        return int(address) >> spare << spare

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


def _address(text: str) -> _Address | None:
    if len(text) > _LONGEST or "%" in text:
        return None
    try:
        found: _Address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return None
    return found


def is_ipv6(text: str) -> bool:
    """Whether the text is an IPv6 address, with or without a zone (Go's ``netip.ParseAddr``)."""
    bare, percent, zone = text.partition("%")
    return ":" in bare and _address(bare) is not None and (bool(zone) or not percent)


def read_address(text: str) -> IP:
    """The address in a text.

    Raises:
        EvaluationError: It is none, has a zone, or is an IPv4 address written as IPv6.
    """
    address = _address(text)
    if address is None:
        raise EvaluationError(f"{text[:_LONGEST]!r} is no IP address", hint="write it like 10.0.0.1 or 2001:db8::1")
    _refuse_mapped(address)
    return IP(address)


def read_prefix(text: str) -> CIDR:
    """The prefix in a text.

    Raises:
        EvaluationError: It is none, has a zone, or its address is an IPv4 address written as IPv6.
    """
    start, slash, length = text.rpartition("/")
    address = _address(start) if slash else None
    if address is None or not _is_number(length) or int(length) > address.max_prefixlen:
        raise EvaluationError(
            f"{text[:_LONGEST]!r} is no network prefix", hint="write it like 10.0.0.0/8 or 2001:db8::/32"
        )
    _refuse_mapped(address)
    return CIDR(address, int(length))


def _is_number(text: str) -> bool:
    digits = text.isascii() and text.isdigit() and len(text) <= 3
    return digits and (len(text) == 1 or text[0] != "0")


def _refuse_mapped(address: _Address) -> None:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(
            f"{address} is an IPv4 address written as IPv6", hint=f"write {address.ipv4_mapped} instead"
        )
