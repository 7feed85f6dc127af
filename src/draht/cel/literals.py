"""The values of literals.

Owns how numbers, strings and bytes are read from the words that the lexer found (cel-go ``parser/unescape.go`` and its
number literals). It doesn't know where a literal stands.
"""

from __future__ import annotations

import math
import re
from typing import Final

from draht.cel.numbers import MAX_UINT64, UInt

__all__ = ["LiteralError", "bytes_value", "double_value", "int_value", "string_value", "uint_value"]

MAX_INT64: Final = (1 << 63) - 1
_MOST_DIGITS: Final = 20
"""No 64-bit number has more, and Python refuses to read very long ones."""

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPE: Final = re.compile(
    r"\\(?:[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<simple>.))",
    re.DOTALL,
)


class LiteralError(ValueError):
    """A literal has no value; the text is a sentence for a person."""


def _magnitude(text: str) -> int:
    digits = text.removeprefix("0x")
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return MAX_UINT64 + 1
    return int(digits, 16 if text.startswith("0x") else 10)


def int_value(text: str, *, negative: bool) -> int:
    """The int of its digits and its sign.

    Raises:
        LiteralError: It doesn't fit into 64 bits.
    """
    magnitude = _magnitude(text)
    if magnitude > MAX_INT64 + negative:
        raise LiteralError("an int has 64 bits: -9223372036854775808 to 9223372036854775807")
    return -magnitude if negative else magnitude


def uint_value(text: str) -> UInt:
    """The uint of its digits, with their ``u``.

    Raises:
        LiteralError: It doesn't fit into 64 bits.
    """
    magnitude = _magnitude(text[:-1])
    if magnitude > MAX_UINT64:
        raise LiteralError("a uint has 64 bits: 0 to 18446744073709551615")
    return UInt(magnitude)


def double_value(text: str, *, negative: bool) -> float:
    """The double nearest to a number.

    Raises:
        LiteralError: It is beyond the largest double.
    """
    value = float(text)
    if math.isinf(value):
        raise LiteralError("the number is beyond the largest double")
    return -value if negative else value


def string_value(text: str) -> str:
    """The string of its literal, quotes and prefix included.

    Raises:
        LiteralError: An escape stands for no Unicode character.
    """
    content, raw = _content(text)
    if raw or "\\" not in content:
        return content
    return _ESCAPE.sub(_character, content)


def bytes_value(text: str) -> bytes:
    """The bytes of their literal, quotes and prefix included.

    Raises:
        LiteralError: An escape stands for a character instead of a byte.
    """
    content, raw = _content(text[1:])
    if raw or "\\" not in content:
        return content.encode()
    parts = []
    last = 0
    for escape in _ESCAPE.finditer(content):
        parts.append(content[last : escape.start()].encode())
        last = escape.end()
        if escape["short"] or escape["long"]:
            raise LiteralError(f"{escape.group()} stands for a character; bytes have \\xHH")
        if escape["hex"] or escape["octal"]:
            code = int(escape["hex"], 16) if escape["hex"] else int(escape["octal"], 8)
            parts.append(bytes((code,)))
        else:
            parts.append(_SIMPLE[escape["simple"]].encode())
    parts.append(content[last:].encode())
    return b"".join(parts)


def _content(text: str) -> tuple[str, bool]:
    """What stands between the quotes, with line feeds only, and whether it is raw."""
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width].replace("\r\n", "\n").replace("\r", "\n"), raw


def _character(escape: re.Match[str]) -> str:
    if escape["simple"]:
        return _SIMPLE[escape["simple"]]
    digits = escape["hex"] or escape["short"] or escape["long"]
    code = int(digits, 16) if digits else int(escape["octal"], 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError(f"{escape.group()} is no Unicode character")
    return chr(code)
