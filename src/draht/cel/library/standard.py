"""The standard library: every function, type name and macro that CEL has without extensions."""

from __future__ import annotations

from typing import Final

from draht.cel.declarations import Library
from draht.cel.library.standard_conversions import CONVERSIONS
from draht.cel.library.standard_operators import OPERATORS
from draht.cel.library.standard_strings import STRINGS
from draht.cel.library.standard_times import TIMES
from draht.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    list_of,
    map_of,
    parameter,
)

__all__ = ["STANDARD"]

_TYPES: Final = (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    list_of(parameter("A")),
    map_of(parameter("A"), parameter("B")),
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
)

STANDARD: Final = Library(
    "stdlib",
    functions=(*OPERATORS, *STRINGS, *CONVERSIONS, *TIMES),
    types={type_.name: type_ for type_ in _TYPES},
)
"""Macros are the parser's: those of the standard need no library."""
