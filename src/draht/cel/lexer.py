"""The words of an expression: from text to tokens.

Owns the lexical grammar of CEL as cel-go v0.29 has it (``parser/gen/CEL.g4``): what is a number, a string, an
identifier, white space. It takes the longest word at each place. It doesn't know the value of a literal
(`draht.cel.literals`) nor which words may follow each other.

Everything that no word begins with is an `Issue`; a lone ``=``, ``&`` or ``|`` is read as its double, so that the rest
of the text can still be judged.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from draht.api.printable import printable
from draht.cel.errors import Issue
from draht.cel.hints import DOUBLED, UNREADABLE
from draht.cel.source import Source

__all__ = ["MOST_ISSUES", "Token", "shown", "tokenize"]

MOST_ISSUES: Final = 100
"""How many issues of one text are kept, as upstream keeps."""
SHOWN_LENGTH: Final = 30
"""Code points of a text that a message shows."""


class Token(NamedTuple):
    """One word.

    Operators, brackets and the keywords ``in``, ``true``, ``false`` and ``null`` are kinds of their own; the others are
    ``identifier``, ``escaped`` (in back quotes), ``int``, ``uint``, ``double``, ``string``, ``bytes`` and ``end``.
    """

    kind: str
    text: str
    start: int
    end: int


_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""

_WORD: Final = re.compile(
    r"""
      (?P<space>[\t\ \r\n\f]+|//[^\n]*)
    | (?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<quote>[bB]?[rR]?(?:\"\"\"|'''|["']))
    | (?P<identifier>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
    | (?P<operator>&&|\|\||[=!<>]=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE,
)

_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})

# What stands between the quotes, up to and with the closing one. No item of a repetition begins like another, so a
# text without a closing quote is given up after one pass.
_BODIES: Final = {
    (delimiter, raw): re.compile(pattern, re.DOTALL)
    for delimiter, raw, pattern in (
        ('"', False, rf'(?:[^\\"\n\r]|{_ESCAPE})*"'),
        ("'", False, rf"(?:[^\\'\n\r]|{_ESCAPE})*'"),
        ('"""', False, rf'(?:[^\\"]|{_ESCAPE}|"(?!""))*"""'),
        ("'''", False, rf"(?:[^\\']|{_ESCAPE}|'(?!''))*'''"),
        ('"', True, r'[^"\n\r]*"'),
        ("'", True, r"[^'\n\r]*'"),
        ('"""', True, r'.*?"""'),
        ("'''", True, r".*?'''"),
    )
}
_GOOD_PART: Final = {
    '"': re.compile(rf'(?:[^\\"\n\r]|{_ESCAPE})*'),
    "'": re.compile(rf"(?:[^\\'\n\r]|{_ESCAPE})*"),
    '"""': re.compile(rf'(?:[^\\"]|{_ESCAPE}|"(?!""))*', re.DOTALL),
    "'''": re.compile(rf"(?:[^\\']|{_ESCAPE}|'(?!''))*", re.DOTALL),
}
_ANY_BODY: Final = {
    '"': re.compile(r'(?:[^\\"\n\r]|\\[^\n\r])*"'),
    "'": re.compile(r"(?:[^\\'\n\r]|\\[^\n\r])*'"),
    '"""': re.compile(r'(?:[^\\"]|\\.|"(?!""))*"""', re.DOTALL),
    "'''": re.compile(r"(?:[^\\']|\\.|'(?!''))*'''", re.DOTALL),
}
_BROKEN_ESCAPE: Final = re.compile(r"\\(?:[xX][0-9a-fA-F]{0,2}|[uU][0-9a-fA-F]{0,8}|.|$)", re.DOTALL)
_GARBAGE: Final = re.compile(r"""[^\t\ \r\n\f0-9A-Za-z_"'`&|=!<>\-+*/%?:.,()\[\]{}]+""")


def tokenize(source: Source) -> tuple[list[Token], list[Issue], bool]:
    """The words of a text.

    Returns:
        The tokens, the last of kind ``end``; what is wrong; and whether something was left out of the tokens, so that
        how they follow each other says nothing about the text.
    """
    text = source.text
    tokens: list[Token] = []
    issues: list[Issue] = []
    incomplete = False
    at = 0
    size = len(text)
    match_word = _WORD.match
    while at < size:
        word = match_word(text, at)
        if word is None:
            if len(issues) == MOST_ISSUES:
                return tokens, issues, True
            if text[at] in DOUBLED:
                issue, kind = _lone(source, at)
                issues.append(issue)
                tokens.append(Token(kind, text[at], at, at + 1))
                at += 1
                continue
            incomplete = True
            garbage = _GARBAGE.match(text, at)
            end = garbage.end() if garbage else at + 1
            issues.append(_unreadable(source, at, end))
            at = end
            continue
        kind = word.lastgroup or ""
        end = word.end()
        if kind == "quote":
            quoted, end = _quoted(source, word.group(), at, end)
            if isinstance(quoted, Issue):
                issues.append(quoted)
                incomplete = True
                # What follows a string without an end can be meant as text or not; another word about it is noise.
                if end == size or len(issues) == MOST_ISSUES:
                    break
            else:
                tokens.append(quoted)
        elif kind != "space":
            part = word.group()
            tokens.append(Token(part if kind == "operator" or part in _KEYWORDS else kind, part, at, end))
        at = end
    tokens.append(Token("end", "", size, size))
    return tokens, issues, incomplete


def shown(text: str) -> str:
    """A piece of the text as a message shows it: printable, and short."""
    return printable(text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "…")


def _lone(source: Source, at: int) -> tuple[Issue, str]:
    """A sign that upstream knows only doubled, or one that many languages have doubled."""
    sign = source.text[at]
    kind, hint = DOUBLED[sign]
    return Issue(f"{sign} is not an operator", *source.place(at), hint), kind


def _unreadable(source: Source, at: int, end: int) -> Issue:
    text = source.text
    if text[at] == "`":
        return Issue(
            "a name in back quotes doesn't end, or holds what it can't",
            *source.place(at),
            "between back quotes stand letters, digits, spaces and any of _ . - /",
        )
    return Issue(f"{shown(text[at:end])} can't stand here", *source.place(at), UNREADABLE.get(text[at]))


def _quoted(source: Source, opening: str, at: int, inside: int) -> tuple[Token | Issue, int]:
    """The string or bytes literal whose opening quotes end at ``inside``."""
    text = source.text
    delimiter = opening.lstrip("bBrR")
    raw = "r" in opening[:2].lower()
    body = _BODIES[delimiter, raw].match(text, inside)
    if body is not None:
        kind = "bytes" if opening[0] in "bB" else "string"
        return Token(kind, text[at : body.end()], at, body.end()), body.end()
    if not raw:
        good = _GOOD_PART[delimiter].match(text, inside)
        stop = good.end() if good else inside
        whole = _ANY_BODY[delimiter].match(text, inside)
        if text[stop : stop + 1] == "\\" and whole is not None:
            broken = _BROKEN_ESCAPE.match(text, stop)
            escape = shown(broken.group() if broken else "\\")
            hint = 'write \\\\ for one backslash, or a raw string: r"..."'
            return Issue(f"{escape} is not an escape", *source.place(stop), hint), whole.end()
    many_lines = len(delimiter) == 1 and "\n" in text[inside:]
    hint = f"close it with {delimiter}" + (', or use """ for many lines' if many_lines else "")
    return Issue("a string doesn't end", *source.place(at), hint), len(text)
