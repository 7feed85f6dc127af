"""What a person probably meant: suggestions for common mistakes in expressions.

Owns the words of the suggestions and when each applies. It doesn't judge: whatever is here is attached to an error that
lexer, parser, checker or evaluation have found.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DOUBLED", "UNREADABLE", "after_operand", "instead_of_operand"]

DOUBLED: Final = {
    "=": ("==", "compare with =="),
    "&": ("&&", 'write && for "and"'),
    "|": ("||", 'write || for "or"'),
}
"""A sign that CEL has only doubled → what it was meant to be, and the suggestion."""

UNREADABLE: Final = {
    ";": "one expression is one condition; join several with &&",
    "#": "a comment begins with //",
    "$": "an expression has no placeholders; write the value",
    "@": "an annotation or address is text and stands between double quotes",
    "“": 'write straight quotes: "',
    "”": 'write straight quotes: "',
    "„": 'write straight quotes: "',
    "\u2018": "write straight quotes: '",
    "\u2019": "write straight quotes: '",
    "≥": "write >=",
    "≤": "write <=",
    "≠": "write !=",
    "~": "compare with a pattern by text.matches(r'...')",
    "^": "an expression has no such operator",
    "\\": "a backslash stands only in strings",
    "\u00a0": "this is a no-break space; write a plain one",
}
"""A character that no word begins with → the suggestion."""

_WORDS: Final = {"and": "&&", "or": "||", "is": "==", "eq": "==", "like": "matches()", "AND": "&&", "OR": "||"}
_PREFIXES: Final = {"not": "!", "NOT": "!"}


def after_operand(found: str, before: str | None) -> str | None:
    """Where an operator was expected.

    Args:
        found: The word that stands there instead.
        before: The name just before it, if there is one.
    """
    if found in _WORDS:
        return f"write {_WORDS[found]} instead of {found}"
    if found == "not":
        return 'write !(x in list) for "not in"'
    if before in _PREFIXES:
        return f"write {_PREFIXES[before]} instead of {before}"
    if found == "=":
        return DOUBLED["="][1]
    return None


def instead_of_operand(found: str) -> str | None:
    """Where a value was expected."""
    if found in ("in", "true", "false", "null"):
        return f"{found} is a keyword; another name is needed"
    if found in ("==", "=", "&&", "||"):
        return "something to its left or right is missing"
    return None
