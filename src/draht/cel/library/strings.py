"""Functions of strings: ``split``, ``replace``, ``substring``, ``format`` and their like.

Owns cel-go v0.29.2 ``ext.Strings(ext.StringsVersion(2))`` at Kubernetes' prices. Positions and lengths count code
points. ``reverse()`` isn't among them: it came with version 3. What ``format`` prints is in
`draht.cel.library.formatting`.

One deliberate difference: a result longer than `MAX_LENGTH` is refused before it is made. Upstream makes it first,
however many gigabytes it has.
"""

from __future__ import annotations

import math
from typing import Any, Final

from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError, LimitError
from draht.cel.library.charges import (
    actual_size,
    list_scanned,
    scanned,
    text_scan,
    traversed,
)
from draht.cel.library.formatting import MAX_LENGTH, format_text
from draht.cel.numbers import MAX_UINT64
from draht.cel.sizes import STRING_FACTOR, CallCost, Operand, Size, wrapped
from draht.cel.types import DYN, INT, STRING, list_of

__all__ = ["LIBRARY"]

_STRINGS: Final = list_of(STRING)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
# What Go's strings.TrimSpace removes; str.strip() would remove four more control characters.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _bounded(length: int) -> None:
    if length > MAX_LENGTH:
        raise LimitError(
            f"the result would have {length} characters, more than {MAX_LENGTH}", hint="replace or join less at once"
        )


def _out_of_range(index: int, text: str) -> EvaluationError:
    return EvaluationError(
        f"position {index} is out of range", hint=f"the string has {len(text)} characters, counted from 0"
    )


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index, text)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset, text)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_of_from(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _out_of_range(offset, text)
    if not part:
        return min(offset, len(text))
    # An offset behind the end finds nothing, even where the part is there.
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def _upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    if len(new) > len(old):
        found = text.count(old) if limit < 0 else min(text.count(old), limit)
        _bounded(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, limit if -1 <= limit <= len(text) + 1 else -1)


def _split(text: str, separator: str, limit: int = -1) -> tuple[str, ...]:
    if limit == 0:
        return ()
    if separator:
        return tuple(text.split(separator, limit - 1 if 0 < limit <= len(text) else -1))
    if not 0 < limit < len(text):
        return tuple(text)
    return (*text[: limit - 1], text[limit - 1 :])


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start, text)
    return text[start:]


def _substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"the substring would start at {start} and end at {end}", hint="write the start first")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index, text)
    return text[start:end]


def _trim(text: str) -> str:
    return text.strip(_SPACE)


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _join(texts: Any, separator: str = "") -> str:
    length = 0
    for text in texts:
        if type(text) is not str:
            raise EvaluationError("join takes strings only", hint="convert the elements first: list.map(x, string(x))")
        length += len(text)
    _bounded(length + len(separator) * max(0, len(texts) - 1))
    return separator.join(texts)


def _format(text: str, arguments: Any) -> str:
    return format_text(text, arguments)


# Prices


def _replace_estimate(operands: tuple[Operand, ...]) -> CallCost:
    text, old, new = operands[0].size, operands[1].size, operands[2].size
    most_times, most_kept = 0, 0
    if old.least == 0:
        # Replacing nothing puts the new text around every character.
        most_times, most_kept = min(text.most + 1, MAX_UINT64), text.most
    elif new.most <= old.least:
        most_kept = text.most
    else:
        most_times = _quotient(text.most, old.least)
    least_times, least_kept = 0, 0
    if old.most == 0:
        least_times, least_kept = min(text.least + 1, MAX_UINT64), text.least
    elif old.most <= new.least:
        least_kept = text.least
    else:
        least_times = _quotient(text.least, old.most)
    result = Size(least_times, most_times) * new + Size(least_kept, most_kept)
    return CallCost(text.scaled(2 * STRING_FACTOR), result)


def _quotient(whole: int, part: int) -> int:
    return min(math.ceil(float(whole) / float(part)), MAX_UINT64)


def _replaced(_result: Any, *arguments: Any) -> int:
    return math.ceil(float(actual_size(arguments[0])) * 2 * STRING_FACTOR)


def _split_estimate(operands: tuple[Operand, ...]) -> CallCost:
    text = operands[0].size
    most = text.most
    if len(operands) > 2:
        limit = getattr(operands[2].expr, "value", None)
        if type(limit) is int:
            most = wrapped(limit)
    return CallCost(text.scaled(2 * STRING_FACTOR), Size(0, most))


def _join_estimate(operands: tuple[Operand, ...]) -> CallCost:
    texts = operands[0]
    count = texts.size
    size = count * texts.items if texts.type.parameters else Size(0, 0)
    if len(operands) > 1:
        size += operands[1].size * Size(max(0, count.least - 1), max(0, count.most - 1))
    return CallCost(size.scaled(STRING_FACTOR), size)


def _joined(result: Any, *_arguments: Any) -> int:
    return math.ceil(float(actual_size(result)) * 2 * STRING_FACTOR)


LIBRARY: Final = Library(
    "strings",
    (
        Function("charAt", (Overload("string_char_at_int", (STRING, INT), STRING, _char_at, member=True),)),
        Function(
            "indexOf",
            (
                Overload(
                    "string_index_of_string",
                    (STRING, STRING),
                    INT,
                    _index_of,
                    member=True,
                    estimate=list_scanned,
                    actual=traversed,
                ),
                Overload(
                    "string_index_of_string_int",
                    (STRING, STRING, INT),
                    INT,
                    _index_of,
                    member=True,
                    estimate=list_scanned,
                    actual=traversed,
                ),
            ),
        ),
        Function(
            "lastIndexOf",
            (
                Overload(
                    "string_last_index_of_string",
                    (STRING, STRING),
                    INT,
                    _last_index_of,
                    member=True,
                    estimate=list_scanned,
                    actual=traversed,
                ),
                Overload(
                    "string_last_index_of_string_int",
                    (STRING, STRING, INT),
                    INT,
                    _last_index_of_from,
                    member=True,
                    estimate=list_scanned,
                    actual=traversed,
                ),
            ),
        ),
        Function(
            "lowerAscii",
            (
                Overload(
                    "string_lower_ascii",
                    (STRING,),
                    STRING,
                    _lower_ascii,
                    member=True,
                    estimate=text_scan,
                    actual=scanned,
                ),
            ),
        ),
        Function(
            "replace",
            (
                Overload(
                    "string_replace_string_string",
                    (STRING, STRING, STRING),
                    STRING,
                    _replace,
                    member=True,
                    estimate=_replace_estimate,
                    actual=_replaced,
                ),
                Overload(
                    "string_replace_string_string_int",
                    (STRING, STRING, STRING, INT),
                    STRING,
                    _replace,
                    member=True,
                    estimate=_replace_estimate,
                    actual=_replaced,
                ),
            ),
        ),
        Function(
            "split",
            (
                Overload(
                    "string_split_string",
                    (STRING, STRING),
                    _STRINGS,
                    _split,
                    member=True,
                    estimate=_split_estimate,
                    actual=_replaced,
                ),
                Overload(
                    "string_split_string_int",
                    (STRING, STRING, INT),
                    _STRINGS,
                    _split,
                    member=True,
                    estimate=_split_estimate,
                    actual=_replaced,
                ),
            ),
        ),
        Function(
            "substring",
            (
                Overload(
                    "string_substring_int",
                    (STRING, INT),
                    STRING,
                    _substring,
                    member=True,
                    estimate=text_scan,
                    actual=scanned,
                ),
                Overload(
                    "string_substring_int_int",
                    (STRING, INT, INT),
                    STRING,
                    _substring_between,
                    member=True,
                    estimate=text_scan,
                    actual=scanned,
                ),
            ),
        ),
        Function(
            "trim",
            (Overload("string_trim", (STRING,), STRING, _trim, member=True, estimate=text_scan, actual=scanned),),
        ),
        Function(
            "upperAscii",
            (
                Overload(
                    "string_upper_ascii",
                    (STRING,),
                    STRING,
                    _upper_ascii,
                    member=True,
                    estimate=text_scan,
                    actual=scanned,
                ),
            ),
        ),
        # The language itself has prices for the next two.
        Function("format", (Overload("string_format", (STRING, list_of(DYN)), STRING, _format, member=True),)),
        Function("strings.quote", (Overload("strings_quote", (STRING,), STRING, _quote),)),
        Function(
            "join",
            (
                Overload("list_join", (_STRINGS,), STRING, _join, member=True, estimate=_join_estimate, actual=_joined),
                Overload(
                    "list_join_string",
                    (_STRINGS, STRING),
                    STRING,
                    _join,
                    member=True,
                    estimate=_join_estimate,
                    actual=_joined,
                ),
            ),
        ),
    ),
)
