"""What a plain YAML scalar means where no target type says so: the rules of Kubernetes' own tools.

kubectl and the servers read YAML 1.1 through a Go library (sigs.k8s.io/yaml on go.yaml.in/yaml/v2), whose rules differ
from PyYAML's: ``y`` and ``n`` are booleans, dates and ``12:30:45`` are strings, ``0o17`` is an integer, ``08`` is
the number 8. Those rules are here, as a table and three number forms, so that a manifest means the same to draht.

It knows text only; `draht.api.yaml` tags nodes with it and `draht.api.reader` asks it for values.
"""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["BOOL", "FLOAT", "INT", "MERGE", "NULL", "STR", "Value", "json_number", "resolve"]

Value = None | bool | int | float | str

STR = "tag:yaml.org,2002:str"
BOOL = "tag:yaml.org,2002:bool"
INT = "tag:yaml.org,2002:int"
FLOAT = "tag:yaml.org,2002:float"
NULL = "tag:yaml.org,2002:null"
MERGE = "tag:yaml.org,2002:merge"

_WORDS: dict[str, tuple[str, Value]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), (BOOL, True)),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), (BOOL, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, float("nan"))),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), (FLOAT, float("inf"))),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (FLOAT, float("-inf"))),
    "<<": (MERGE, "<<"),
}

_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_SIGN_INSIDE = re.compile(r"0b([-+][01]+)", re.ASCII)
"""The Go library hands what follows ``0b`` to a parser that takes a sign."""
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])", re.ASCII)
_MAX_DIGITS = 400
"""Longer digit strings are beyond every number form; the bound keeps a megabyte of digits cheap."""


def resolve(text: str) -> tuple[str, Value]:
    """Tag and value of a plain scalar.

    Integers have 64 bits, signed or unsigned; larger ones become floats, and a float beyond the range of a double is
    a string, as in the Go library.
    """
    word = _WORDS.get(text)
    if word is not None:
        return word
    if text[0] not in _NUMBER_START or len(text) > _MAX_DIGITS:
        return STR, text
    if text[0] == ".":
        # Numbers that start with a point go to Go's own float parser, where underscores must stand between digits.
        return _float(_BETWEEN_DIGITS.sub("", text), text)
    plain = text.replace("_", "")
    match = _SIGN_INSIDE.fullmatch(plain)
    if match is not None and -(2**63) <= int(match[1], 2) < 2**63:
        return INT, int(match[1], 2)
    match = _INTEGER.fullmatch(plain)
    if match is not None:
        sign, hexadecimal, binary, octal, decimal = match.groups()
        if hexadecimal is not None:
            number = int(hexadecimal, 16)
        elif binary is not None:
            number = int(binary, 2)
        elif octal is not None:
            number = int(octal, 8)
        else:
            number = int(decimal)
        signed = -number if sign == "-" else number
        if -(2**63) <= signed < 2**63 or (not sign and number < 2**64):
            return INT, signed
    return _float(plain, text)


def _float(plain: str, text: str) -> tuple[str, Value]:
    if _FLOAT.fullmatch(plain) is not None:
        number = float(plain)
        if number not in (float("inf"), float("-inf")):
            return FLOAT, number
    return STR, text


def json_number(number: float) -> str:
    """A float as Go's encoding/json writes it: plain digits, with an exponent only below 1e-6 and from 1e21 on."""
    magnitude = abs(number)
    shortest = repr(number)
    if number == 0 or 1e-6 <= magnitude < 1e21:
        text = format(Decimal(shortest), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits, _, exponent = shortest.partition("e")
    if not exponent:
        # repr() turns to exponents at 1e16 already, so only small numbers come here, such as 0.0000005.
        digits, _, exponent = format(Decimal(shortest).normalize(), "e").partition("e")
    digits = digits.removesuffix(".0")
    return f"{digits}e{int(exponent):+d}"
