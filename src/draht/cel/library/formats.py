"""``format.named("uuid")``, ``format.uuid()`` and ``validate()``.

Owns the functions of k8s.io/apiserver v0.37.2 ``pkg/cel/library/format.go``. What the formats are is
`draht.cel.library.named_formats`'.
"""

from __future__ import annotations

import math
from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.library.charges import actual_size, one, one_unit
from draht.cel.library.named_formats import FORMAT_TYPE, NAMED_FORMATS, NamedFormat
from draht.cel.sizes import REGEX_LENGTH_FACTOR, STRING_FACTOR, CallCost, Operand
from draht.cel.types import STRING, list_of, optional_of
from draht.cel.values import NONE, Optional

__all__ = ["LIBRARY"]

_LONGEST_PATTERN: Final = 128


def _named(name: str) -> Optional:
    found = NAMED_FORMATS.get(name)
    return NONE if found is None else Optional(found)


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.problems(text)
    return Optional(tuple(problems)) if problems else NONE


def _validate_estimate(operands: tuple[Operand, ...]) -> CallCost:
    text = operands[1].size
    return CallCost(text.scaled(STRING_FACTOR).scaled(_LONGEST_PATTERN * REGEX_LENGTH_FACTOR))


def _validated(_result: Any, *arguments: Any) -> int:
    named, text = arguments
    if type(named) is not NamedFormat:
        return 1
    cost = math.ceil((1.0 + float(actual_size(text))) * STRING_FACTOR)
    return cost * math.ceil(float(named.pattern_length) * REGEX_LENGTH_FACTOR)


def _constant(name: str, named: NamedFormat) -> Function:
    def made() -> NamedFormat:
        return named

    return Function(f"format.{name}", (Overload(f"format.{name}", (), FORMAT_TYPE, made),))


LIBRARY: Final = Library(
    "kubernetes.format",
    (
        Function(
            "format.named",
            (Overload("format-named", (STRING,), optional_of(FORMAT_TYPE), _named, estimate=one_unit, actual=one),),
        ),
        Function(
            "validate",
            (
                Overload(
                    "format-validate",
                    (FORMAT_TYPE, STRING),
                    optional_of(list_of(STRING)),
                    _validate,
                    member=True,
                    estimate=_validate_estimate,
                    actual=_validated,
                ),
            ),
        ),
        *(_constant(name, named) for name, named in NAMED_FORMATS.items()),
    ),
)
