r"""What the source text of a scalar means for the field it lands in.

Owns the rules of ``go.yaml.in/yaml/v3`` v3.0.5 for text, integers, truth values and null, which are neither those of
YAML 1.1 (no sexagesimals) nor of 1.2 (``0666`` is octal, ``1_000`` a number): a text keeps its spelling (``1.0`` stays
``1.0``), an integer field takes a float and cuts it, a truth field takes ``yes``. Numbers out of an integer's range
behave as Go's conversion does on amd64.
"""

from __future__ import annotations

import binascii
import datetime
import math
import re
from typing import Literal

from draht.cdi.nodes import Node

__all__ = ["ScalarError", "as_bool", "as_integer", "as_text", "is_null", "key_is_text"]


class ScalarError(ValueError):
    """The text doesn't fit the field, or contradicts its own tag; the message ends the sentence "<text> is …"."""


_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_BOOL_TEXTS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_FLOATS = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_RESOLVED_TAGS = frozenset(("!!bool", "!!int", "!!float", "!!null", "!!timestamp"))

_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_SIGNED_BINARY = re.compile(r"0b([-+]?[01]+)|-0b([01]+)")
_SIGNED_OCTAL = re.compile(r"0o([-+]?[0-7]+)|-0o([0-7]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_POINT_FLOAT = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]| (?!.*[Z+-]))([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?"
)

_Resolved = bool | int | float | str | datetime.date | None


def is_null(node: Node) -> bool:
    """Whether a node (not an alias) counts as null: by its tag, or by its plain text."""
    if node.tag:
        return node.tag == "!!null"
    return node.kind == "scalar" and not node.quoted and node.text in _NULLS


def as_text(node: Node) -> str | None:
    """The text for a string field; None for null.

    Raises:
        ScalarError: The text contradicts its tag, or ``!!binary`` isn't base64 of UTF-8.
    """
    if node.tag == "!!binary":
        return _binary(node.text)
    if node.tag in _RESOLVED_TAGS and _resolve(node) is None:
        return None
    if not node.tag and not node.quoted and node.text in _NULLS:
        return None
    return node.text


def as_integer(node: Node, bits: Literal[32, 64]) -> int | None:
    """The number for an int64 or a uint32 field; None for null.

    Raises:
        ScalarError: It isn't a number, or is out of range.
    """
    value = _resolve(node)
    if value is None:
        return None
    if isinstance(value, float):
        value = _cut(value, bits)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ScalarError("not a number")
    low, high = (-(2**63), 2**63 - 1) if bits == 64 else (0, 2**32 - 1)
    if not (isinstance(value, int) and low <= value <= high):
        raise ScalarError(f"not between {low} and {high}")
    return value


def as_bool(node: Node) -> bool | None:
    """The truth value for a bool field; None for null.

    Raises:
        ScalarError: It is neither true nor false.
    """
    value = _resolve(node)
    if isinstance(value, str):
        value = _BOOL_TEXTS.get(value, value)
    if value is not None and not isinstance(value, bool):
        raise ScalarError("neither true nor false")
    return value


def key_is_text(node: Node) -> str | None:
    """The text of a key whose value, seen without a target type, is a text; None for other keys.

    Merging compares keys that way: a key ``1`` is a number there and overrides nothing.
    """
    value = _resolve(node)
    return value if isinstance(value, str) else None


def _resolve(node: Node) -> _Resolved:
    """The value of a scalar seen without a target type."""
    tag, text = node.tag, node.text
    if tag == "!!binary":
        return _binary(text)
    if tag == "!!str" or (tag and tag not in _RESOLVED_TAGS) or (not tag and (node.quoted or text == "<<")):
        return text
    value = _plain(text, timestamps=tag in {"", "!!timestamp"})
    if not tag:
        return value
    if tag == "!!float" and isinstance(value, int) and not isinstance(value, bool) and value < 2**63:
        return float(value)
    if tag != _tag_of(value):
        raise ScalarError(f"not a {tag} as its tag says")
    return value


def _tag_of(value: _Resolved) -> str:
    if value is None:
        return "!!null"
    if isinstance(value, bool):
        return "!!bool"
    if isinstance(value, int):
        return "!!int"
    if isinstance(value, float):
        return "!!float"
    return "!!str" if isinstance(value, str) else "!!timestamp"


def _plain(text: str, *, timestamps: bool) -> _Resolved:
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text in _FLOATS:
        return _FLOATS[text]
    if text[0] == ".":
        return _finite(text) if _POINT_FLOAT.fullmatch(text) else text
    if text[0] not in "0123456789+-":
        return text
    if timestamps and (date := _timestamp(text)) is not None:
        return date
    digits = text.replace("_", "")
    number = _integer(digits)
    if number is not None:
        return number
    if _FLOAT.fullmatch(digits):
        value = _finite(digits)
        if isinstance(value, float):
            return value
    for pattern, base in ((_SIGNED_BINARY, 2), (_SIGNED_OCTAL, 8)):
        found = pattern.fullmatch(digits)
        if found is not None:
            number = int(found[1], base) if found[1] is not None else -int(found[2], base)
            if -(2**63) <= number < 2**64:
                return number
    return text


def _integer(digits: str) -> int | None:
    """Go's ParseInt and then ParseUint with base 0; None where both refuse."""
    found = _INTEGER.fullmatch(digits)
    if found is None:
        return None
    sign, *bodies = found.groups()
    body, base = next((body, base) for body, base in zip(bodies, (16, 2, 8, 10), strict=True) if body is not None)
    if len(body) > 64:
        body = body.lstrip("0") or "0"
        if len(body) > 64:  # longer than any number in range, whatever the base; don't compute it
            return None
    number = int(body, base)
    if sign == "-":
        number = -number
    if -(2**63) <= number < 2**63 or (number < 2**64 and not sign):
        return number
    return None


def _finite(text: str) -> float | str:
    value = float(text)
    return text if math.isinf(value) else value


def _cut(value: float, bits: Literal[32, 64]) -> int | float:
    if math.isnan(value) or value > 2.0 ** (63 if bits == 64 else 64):
        return value
    if -(2.0**63) <= value < 2.0**63:
        return math.trunc(value)
    return -(2**63)


def _binary(text: str) -> str:
    try:
        return binascii.a2b_base64(text.replace("\r", "").replace("\n", ""), strict_mode=True).decode()
    except UnicodeDecodeError:
        raise ScalarError("not the base64 of UTF-8 text") from None
    except ValueError:
        raise ScalarError("not base64") from None


def _timestamp(text: str) -> datetime.date | None:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, zone = found.groups()
    # With a "T" there must be a zone, with a space there must be none.
    if hour is not None and (zone is None) != (" " in text):
        return None
    try:
        if hour is not None:
            datetime.time(int(hour), int(minute), int(second))
        # Go has a year 0, Python hasn't; only whether it is a date matters here.
        return datetime.date(int(year) or 4, int(month), int(day))
    except ValueError:
        return None
