"""Strings, bytes and sizes: ``contains``, ``startsWith``, ``endsWith``, ``matches``, ``size``.

A string is a sequence of code points and ``size`` counts them. Patterns are RE2's and run in google-re2, which takes
time linear in the text. Source: cel-go v0.29.2 ``common/stdlib`` and ``common/types/string.go``.
"""

from __future__ import annotations

from typing import Any, Final

from draht.cel.declarations import Function, Overload
from draht.cel.patterns import compiled
from draht.cel.types import BOOL, BYTES, INT, STRING, list_of, map_of, parameter
from draht.cel.values import Map, no_such_overload

__all__ = ["STRINGS"]

_LIST: Final = list_of(parameter("A"))
_MAP: Final = map_of(parameter("A"), parameter("B"))


def _contains(text: str, part: str) -> bool:
    return part in text


def _ends_with(text: str, suffix: str) -> bool:
    return text.endswith(suffix)


def _starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


def _matches(text: Any, pattern: Any) -> bool:
    if type(text) is not str or type(pattern) is not str:
        raise no_such_overload("matches", text, pattern)
    return compiled(pattern).search(text) is not None


def _size(value: Any) -> int:
    kind = type(value)
    if kind is str or kind is list or kind is tuple or kind is bytes or isinstance(value, Map):
        return len(value)
    raise no_such_overload("size", value)


STRINGS: Final = (
    Function(
        "size",
        (
            Overload("size_bytes", (BYTES,), INT, _size, guarded=False),
            Overload("bytes_size", (BYTES,), INT, _size, member=True, guarded=False),
            Overload("size_list", (_LIST,), INT, _size, guarded=False),
            Overload("list_size", (_LIST,), INT, _size, member=True, guarded=False),
            Overload("size_map", (_MAP,), INT, _size, guarded=False),
            Overload("map_size", (_MAP,), INT, _size, member=True, guarded=False),
            Overload("size_string", (STRING,), INT, _size, guarded=False),
            Overload("string_size", (STRING,), INT, _size, member=True, guarded=False),
        ),
    ),
    Function("contains", (Overload("contains_string", (STRING, STRING), BOOL, _contains, member=True),)),
    Function("endsWith", (Overload("ends_with_string", (STRING, STRING), BOOL, _ends_with, member=True),)),
    Function("startsWith", (Overload("starts_with_string", (STRING, STRING), BOOL, _starts_with, member=True),)),
    Function(
        "matches",
        (
            Overload("matches", (STRING, STRING), BOOL, _matches, guarded=False),
            Overload("matches_string", (STRING, STRING), BOOL, _matches, member=True, guarded=False),
        ),
    ),
)
