"""``url("https://…")`` and what can be asked of a URL.

Owns k8s.io/apiserver v0.37.2 ``pkg/cel/library/urls.go``. How URLs are read is `draht.cel.library.url_syntax`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.library.charges import one, one_unit, scanned, text_scan
from draht.cel.library.url_syntax import URL, URL_TYPE, read_url, request_uri_problem
from draht.cel.types import BOOL, STRING, Type, list_of, map_of
from draht.cel.values import Map

__all__ = ["LIBRARY"]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _is_url(text: str) -> bool:
    return request_uri_problem(text) is None


def _scheme(url: URL) -> str:
    return _text(url.scheme)


def _host(url: URL) -> str:
    return _text(url.host)


def _hostname(url: URL) -> str:
    return _text(url.hostname)


def _port(url: URL) -> str:
    return _text(url.port)


def _escaped_path(url: URL) -> str:
    return _text(url.escaped_path)


def _query(url: URL) -> Map:
    return Map.of((_text(key), tuple(map(_text, values))) for key, values in url.parameters().items())


def _method(name: str, id_: str, call: Callable[[URL], Any], result: Type = STRING) -> Function:
    return Function(name, (Overload(id_, (URL_TYPE,), result, call, member=True, estimate=one_unit, actual=one),))


LIBRARY: Final = Library(
    "kubernetes.urls",
    (
        Function(
            "url", (Overload("string_to_url", (STRING,), URL_TYPE, read_url, estimate=text_scan, actual=scanned),)
        ),
        _method("getScheme", "url_get_scheme", _scheme),
        _method("getHost", "url_get_host", _host),
        _method("getHostname", "url_get_hostname", _hostname),
        _method("getPort", "url_get_port", _port),
        _method("getEscapedPath", "url_get_escaped_path", _escaped_path),
        _method("getQuery", "url_get_query", _query, map_of(STRING, list_of(STRING))),
        # Upstream has no price for it, so the language's counts.
        Function("isURL", (Overload("is_url_string", (STRING,), BOOL, _is_url),)),
    ),
)
