"""URLs as Go's ``net/url`` takes them apart and writes them.

Owns the value of ``url()`` and its reading (Go 1.26). Python's ``urllib`` reads other URLs: it takes spaces and broken
escapes, knows schemes, and keeps no escapes. Kubernetes asks twice: the text must be a request's URI (absolute, or a
path), and is then read again with its fragment; both readings are here.

Go works with bytes. Texts with escapes of bytes that are no UTF-8 keep these bytes as Python's ``surrogateescape``
does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, final

from draht.cel.errors import EvaluationError
from draht.cel.library.addresses import is_ipv6
from draht.cel.library.formatting import go_quoted
from draht.cel.types import Type, object_type

__all__ = ["URL", "URL_TYPE", "read_url", "request_uri_problem"]

URL_TYPE: Final = object_type("kubernetes.URL")

_MAX_PARAMETERS: Final = 10_000

_ALPHANUMERIC: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_UNRESERVED: Final = _ALPHANUMERIC + b"-._~"
# What stands for itself in each part; everything else is escaped when the part is written.
_PATH: Final = frozenset(_UNRESERVED + b"$&+,/:;=@")
_HOST: Final = frozenset(_UNRESERVED + b"!\"$&'(*)+,:;<=>[]")
_USER: Final = frozenset(_UNRESERVED + b"$&+,;=")
_FRAGMENT: Final = frozenset(_UNRESERVED + b"!$&(*)+,/:;=?@")
# What may also stand in a path as it was written, though it would be escaped when written anew.
_TOLERATED: Final = frozenset(b"!$&'(*)+,;=:@[]%")
_USERINFO: Final = frozenset(_ALPHANUMERIC + b"-._:~!$&'(*)+,;=%@")
_SCHEME_FIRST: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SCHEME: Final = _SCHEME_FIRST | frozenset(b"0123456789+-.")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


class _SyntaxError(Exception):
    """The text is no URL; the message says why."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class URL:
    """A URL in its parts; equal to another that is written the same."""

    cel_type: ClassVar[Type] = URL_TYPE
    cel_by_identity: ClassVar[bool] = True

    scheme: bytes = b""
    opaque: bytes = b""
    userinfo: tuple[bytes, bytes | None] | None = None
    host: bytes = b""
    path: bytes = b""
    raw_path: bytes = b""
    """The path as it was written, where that isn't how it would be written anew."""
    query: bytes = b""
    force_query: bool = False
    fragment: bytes = b""
    raw_fragment: bytes = b""
    omit_host: bool = False

    def __eq__(self, other: object) -> bool:
        if type(other) is not URL:
            return NotImplemented
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def hostname(self) -> bytes:
        """The host without port and brackets."""
        host, _ = self._host_and_port()
        return host[1:-1] if host.startswith(b"[") and host.endswith(b"]") else host

    @property
    def port(self) -> bytes:
        """The port's digits; empty where there is none."""
        return self._host_and_port()[1]

    def _host_and_port(self) -> tuple[bytes, bytes]:
        host, colon, port = self.host.rpartition(b":")
        return (host, port) if colon and (not port or port.isdigit()) else (self.host, b"")

    @property
    def escaped_path(self) -> bytes:
        """The path as it stands in the URL."""
        written = _as_written(self.path, self.raw_path, _PATH)
        return written if written is not None else b"*" if self.path == b"*" else _escaped(self.path, _PATH)

    def parameters(self) -> dict[bytes, list[bytes]]:
        """The parameters of the query and their values; those that can't be read are left out."""
        found: dict[bytes, list[bytes]] = {}
        if self.query.count(b"&") + 1 > _MAX_PARAMETERS:
            return found
        for part in self.query.split(b"&"):
            if not part or b";" in part:
                continue
            key, _, value = part.partition(b"=")
            try:
                key, value = _unescaped(key.replace(b"+", b" ")), _unescaped(value.replace(b"+", b" "))
            except _SyntaxError:
                continue
            found.setdefault(key, []).append(value)
        return found

    def __str__(self) -> str:
        parts = [self.scheme, b":"] if self.scheme else []
        if self.opaque:
            parts.append(self.opaque)
        else:
            path = self.escaped_path
            if self.scheme or self.host or self.userinfo is not None:
                if not (self.omit_host and not self.host and self.userinfo is None):
                    parts += self._authority()
                if path and not path.startswith(b"/") and self.host:
                    parts.append(b"/")
            elif b":" in path.partition(b"/")[0]:
                # Otherwise the first segment would read as a scheme.
                parts.append(b"./")
            parts.append(path)
        if self.force_query or self.query:
            parts += (b"?", self.query)
        if self.fragment:
            written = _as_written(self.fragment, self.raw_fragment, _FRAGMENT)
            parts += (b"#", written if written is not None else _escaped(self.fragment, _FRAGMENT))
        return b"".join(parts).decode("utf-8", "surrogateescape")

    def _authority(self) -> list[bytes]:
        parts = [b"//"] if self.host or self.path or self.userinfo is not None else []
        if self.userinfo is not None:
            name, password = self.userinfo
            parts.append(_escaped(name, _USER))
            if password is not None:
                parts += (b":", _escaped(password, _USER))
            parts.append(b"@")
        if self.host:
            parts.append(_escaped(self.host, _HOST))
        return parts


def request_uri_problem(text: str) -> str | None:
    """Why the text is no absolute URI and no absolute path, in the words of Go's ``url.ParseRequestURI``; or None.

    The words are a value that expressions see. Only an address in brackets is refused in other words.
    """
    try:
        _parse(text.encode("utf-8", "surrogateescape"), request=True)
    except _SyntaxError as error:
        return f"parse {go_quoted(text)}: {error}"
    return None


def read_url(text: str) -> URL:
    """The URL in a text.

    Raises:
        EvaluationError: The text is no absolute URI and no absolute path.
    """
    data = text.encode("utf-8", "surrogateescape")
    try:
        _parse(data, request=True)
        rest, _, fragment = data.partition(b"#")
        return _parse(rest, request=False, fragment=fragment)
    except _SyntaxError as error:
        raise EvaluationError(
            f"{go_quoted(text[:80])} is no URL: {error}", hint="write it like https://example.com:8443/path?key=value"
        ) from None


def _parse(data: bytes, *, request: bool, fragment: bytes = b"") -> URL:
    if any(byte < 0x20 or byte == 0x7F for byte in data):
        raise _SyntaxError("net/url: invalid control character in URL")
    if not data and request:
        raise _SyntaxError("empty url")
    written_fragment = fragment
    fragment = _unescaped(fragment)
    raw_fragment = b"" if _escaped(fragment, _FRAGMENT) == written_fragment else written_fragment
    if data == b"*":
        return URL(path=b"*", fragment=fragment, raw_fragment=raw_fragment)
    scheme, rest = _scheme(data)
    scheme = scheme.lower()
    force_query = rest.endswith(b"?") and rest.count(b"?") == 1
    rest, _, query = rest.partition(b"?")
    if not rest.startswith(b"/"):
        if scheme:
            return URL(
                scheme,
                opaque=rest,
                query=query,
                force_query=force_query,
                fragment=fragment,
                raw_fragment=raw_fragment,
            )
        if request:
            raise _SyntaxError("invalid URI for request")
        if b":" in rest.partition(b"/")[0]:
            raise _SyntaxError("first path segment in URL cannot contain colon")
    userinfo, host, omit_host = None, b"", False
    if rest.startswith(b"//") and (scheme or (not request and not rest.startswith(b"///"))):
        authority, slash, rest = rest[2:].partition(b"/")
        rest = slash + rest
        userinfo, host = _authority(scheme, authority)
    elif scheme and rest.startswith(b"/"):
        omit_host = True
    path = _unescaped(rest)
    raw_path = b"" if _escaped(path, _PATH) == rest else rest
    return URL(scheme, b"", userinfo, host, path, raw_path, query, force_query, fragment, raw_fragment, omit_host)


def _scheme(data: bytes) -> tuple[bytes, bytes]:
    scheme, colon, rest = data.partition(b":")
    if not colon:
        return b"", data
    if not scheme:
        raise _SyntaxError("missing protocol scheme")
    if scheme[0] in _SCHEME_FIRST and _SCHEME.issuperset(scheme):
        return scheme, rest
    return b"", data


def _authority(scheme: bytes, authority: bytes) -> tuple[tuple[bytes, bytes | None] | None, bytes]:
    userinfo, at, host = authority.rpartition(b"@")
    host = _host(scheme, host)
    if not at:
        return None, host
    if not _USERINFO.issuperset(userinfo):
        raise _SyntaxError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(b":")
    return (_unescaped(name), _unescaped(password) if colon else None), host


def _host(scheme: bytes, host: bytes) -> bytes:
    bracket = host.rfind(b"[")
    if bracket > 0:
        raise _SyntaxError("invalid IP-literal")
    if bracket == 0:
        return _literal_host(host)
    colon = host.find(b":")
    if colon >= 0:
        last = host.rfind(b":")
        if last != colon and scheme not in (b"http", b"https"):
            colon = last
        _check_port(host[colon:])
    return _unescaped_host(host)


def _literal_host(host: bytes) -> bytes:
    closing = host.rfind(b"]")
    if closing < 0:
        raise _SyntaxError("missing ']' in host")
    port = host[closing + 1 :]
    _check_port(port)
    name = host[1:closing]
    zone = name.find(b"%25")
    name = _unescaped_host(name) if zone < 0 else _unescaped_host(name[:zone]) + _unescaped_zone(name[zone:])
    if not is_ipv6(name.decode("utf-8", "replace")):
        raise _SyntaxError("invalid host: no IPv6 address in brackets")
    return b"[" + name + b"]" + _unescaped_host(port)


def _check_port(port: bytes) -> None:
    if port and not (port.startswith(b":") and (len(port) == 1 or port[1:].isdigit())):
        raise _SyntaxError(f"invalid port {_quoted(port)} after host")


def _escaped(data: bytes, plain: frozenset[int]) -> bytes:
    if plain.issuperset(data):
        return data
    return b"".join(bytes((byte,)) if byte in plain else b"%%%02X" % byte for byte in data)


def _as_written(data: bytes, raw: bytes, plain: frozenset[int]) -> bytes | None:
    """The escaped text as it was written, where that is a valid way to write the part."""
    if raw and all(byte in plain or byte in _TOLERATED for byte in raw):
        try:
            if _unescaped(raw) == data:
                return raw
        except _SyntaxError:
            pass
    return None


def _quoted(data: bytes) -> str:
    return go_quoted(data.decode("utf-8", "surrogateescape"))


def _unescaped(data: bytes) -> bytes:
    if b"%" not in data:
        return data
    first, *parts = data.split(b"%")
    found = [first]
    for index, part in enumerate(parts):
        if len(part) < 2 or not _HEX.issuperset(part[:2]):
            # What follows may be a percent sign of its own.
            rest = b"%".join((part, *parts[index + 1 :]))
            raise _SyntaxError(f"invalid URL escape {_quoted(b'%' + rest[:2])}")
        found.append(bytes((int(part[:2], 16),)) + part[2:])
    return b"".join(found)


def _unescaped_host(data: bytes) -> bytes:
    # Only bytes beyond ASCII may be escaped in a host, and the percent sign of a zone.
    return _unescaped_where(data, lambda byte: byte >= 0x80)


def _unescaped_zone(data: bytes) -> bytes:
    return _unescaped_where(data, lambda byte: byte == 0x20 or byte in _HOST)


def _unescaped_where(data: bytes, allowed: Callable[[int], bool]) -> bytes:
    at = 0
    while at < len(data):
        byte = data[at]
        if byte == 0x25:
            digits = data[at + 1 : at + 3]
            if len(digits) < 2 or not _HEX.issuperset(digits):
                raise _SyntaxError(f"invalid URL escape {_quoted(data[at : at + 3])}")
            if digits != b"25" and not allowed(int(digits, 16)):
                raise _SyntaxError(f"invalid URL escape {_quoted(data[at : at + 3])}")
            at += 3
            continue
        if byte < 0x80 and byte not in _HOST:
            raise _SyntaxError(f"invalid character {_quoted(data[at : at + 1])} in host name")
        at += 1
    return _unescaped(data)
