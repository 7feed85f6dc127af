"""``find`` and ``findAll``.

Owns Kubernetes' regex library (k8s.io/apiserver v0.37.2 ``pkg/cel/library/regex.go``) and its prices. How patterns are
read is `draht.cel.patterns`'.
"""

from __future__ import annotations

from typing import Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.library.charges import searched, searched_by
from draht.cel.patterns import compiled
from draht.cel.types import INT, STRING, list_of

__all__ = ["LIBRARY"]


def _find(text: str, pattern: str) -> str:
    return compiled(pattern).find(text)


def _find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    return compiled(pattern).find_all(text, limit)


LIBRARY: Final = Library(
    "regex",
    (
        Function(
            "find",
            (
                Overload(
                    "string_find_string",
                    (STRING, STRING),
                    STRING,
                    _find,
                    member=True,
                    estimate=searched_by,
                    actual=searched,
                ),
            ),
        ),
        Function(
            "findAll",
            (
                Overload(
                    "string_find_all_string",
                    (STRING, STRING),
                    list_of(STRING),
                    _find_all,
                    member=True,
                    estimate=searched_by,
                    actual=searched,
                ),
                Overload(
                    "string_find_all_string_int",
                    (STRING, STRING, INT),
                    list_of(STRING),
                    _find_all,
                    member=True,
                    estimate=searched_by,
                    actual=searched,
                ),
            ),
        ),
    ),
)
