"""Optional values: ``optional.of``, ``value()``, ``orValue()``, ``a.?b``, ``a[?b]``, ``first()`` and their like.

Owns cel-go v0.29.2 ``cel.OptionalTypes()`` in its newest version, which Kubernetes doesn't pin. What has to leave an
operand unevaluated (``or``, ``orValue``) or is syntax (``.?``, ``[?]``) is declared here and made by the compiler.
"""

from __future__ import annotations

from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError
from draht.cel.gotime import MIN_UNIX_SECONDS
from draht.cel.library.optional_macros import OPTIONAL_MACROS
from draht.cel.numbers import UInt
from draht.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, parameter
from draht.cel.values import NONE, Duration, Map, Optional, Timestamp, type_name

__all__ = ["LIBRARY"]

_K: Final = parameter("K")
_V: Final = parameter("V")
_OPTIONAL: Final = optional_of(_V)
_LIST: Final = list_of(_V)
_MAP: Final = map_of(_K, _V)


def _of(value: Any) -> Optional:
    return Optional(value)


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    kind = type(value)
    if kind in (bool, int, UInt, float, str, bytes, list, tuple) or isinstance(value, Map):
        return not value if kind is not float else value == 0
    if kind is Duration:
        return bool(value.nanoseconds == 0)
    if kind is Timestamp:
        return bool(value.seconds == MIN_UNIX_SECONDS and value.nanoseconds == 0)
    # Types of Kubernetes have no zero, not even quantity("0").
    return value is None


def _none() -> Optional:
    return NONE


def _value(optional: Optional) -> Any:
    if not optional.has_value:
        raise EvaluationError(
            "the optional value is absent", hint="use orValue(…) for a default, or ask hasValue() first"
        )
    return optional.value


def _has_value(optional: Optional) -> bool:
    return optional.has_value


def _first(values: Any) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: Any) -> Optional:
    return Optional(values[-1]) if values else NONE


def _unwrap(values: Any) -> tuple[Any, ...]:
    for value in values:
        if type(value) is not Optional:
            raise EvaluationError(f"a value of type {type_name(value)} is not optional")
    return tuple(value.value for value in values if value.has_value)


LIBRARY: Final = Library(
    "optional",
    (
        Function("optional.of", (Overload("optional_of", (_V,), _OPTIONAL, _of),)),
        Function("optional.ofNonZeroValue", (Overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero),)),
        Function("optional.none", (Overload("optional_none", (), _OPTIONAL, _none),)),
        Function("value", (Overload("optional_value", (_OPTIONAL,), _V, _value, member=True),)),
        Function("hasValue", (Overload("optional_hasValue", (_OPTIONAL,), BOOL, _has_value, member=True),)),
        Function("or", (Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, member=True),)),
        Function("orValue", (Overload("optional_orValue_value", (_OPTIONAL, _V), _V, member=True),)),
        Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),)),
        Function(
            "_[?_]",
            (
                Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
                Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL),
                Overload("map_optindex_optional_value", (_MAP, _K), _OPTIONAL),
                Overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPTIONAL),
            ),
        ),
        Function(
            "_[_]",
            (
                Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL),
                Overload("optional_map_index_value", (optional_of(_MAP), _K), _OPTIONAL),
            ),
        ),
        Function("last", (Overload("list_last", (_LIST,), _OPTIONAL, _last, member=True),)),
        Function("first", (Overload("list_first", (_LIST,), _OPTIONAL, _first, member=True),)),
        Function("optional.unwrap", (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),)),
        Function("unwrapOpt", (Overload("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap, member=True),)),
    ),
    OPTIONAL_MACROS,
    types={"optional_type": optional_of(DYN)},
)
