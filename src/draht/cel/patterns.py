r"""Regular expressions of users: Go's dialect of RE2, run by google-re2.

Owns the reading of a pattern as Go's ``regexp`` package (1.26) reads it, and the search. Upstream is written in Go;
google-re2 is the C++ library of the same language, and takes time linear in the text as Go does. Where the two dialects
differ, the pattern is refused or rewritten before google-re2 sees it:

- ``\C``, a single byte, is refused; names of groups are ASCII letters, digits and ``_``, and don't matter otherwise;
- names of Unicode classes don't care for case, spaces, ``-`` and ``_``; there are ``ASCII``, ``Assigned``, ``Cn``,
  ``LC`` and the long names of categories; names of scripts that have several words are refused, which is how Go is;
- a group may be nested in fewer than `MAX_DEPTH` others.

A pattern whose program would need more than 8 MiB is refused, which Go isn't that strict about: it takes a Unicode
class repeated hundreds of times.

``\p{…}`` follows the Unicode version of google-re2, which may know a few more characters than Go's.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, final

import re2  # type: ignore[import-untyped] # it has no type information

from draht.cel.errors import EvaluationError, LimitError

__all__ = ["MAX_DEPTH", "Pattern", "compiled", "found"]

MAX_DEPTH: Final = 1000
# In Go a Unicode class is one instruction, here it is hundreds: a thousand letters of any script would take seconds to
# compile.
_MEMORY: Final = 8 << 20
"""Bytes that a compiled pattern may take."""
_SMALL: Final = 20_000
"""Instructions up to which many compiled patterns are kept."""
_WORK: Final = 1 << 26
"""Bytes that finding all matches in one text may go through if every search goes to the end."""

_WORD: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


@final
class Pattern:
    """A compiled pattern. Immutable; safe to share."""

    __slots__ = ("_regexp", "size")

    def __init__(self, regexp: Any) -> None:
        self._regexp = regexp
        self.size: int = regexp.programsize

    def search(self, text: str) -> tuple[int, int] | None:
        """Where the first match is, in bytes of UTF-8, or None."""
        return self._from(_encoded(text), 0)

    def find(self, text: str) -> str:
        """The text of the first match; empty where there is none."""
        data = _encoded(text)
        found = self._from(data, 0)
        return "" if found is None else _decoded(data[found[0] : found[1]])

    def find_all(self, text: str, limit: int = -1) -> tuple[str, ...]:
        """The texts of the matches from left to right, at most ``limit`` unless it is negative.

        As Go has it: an empty match right behind another match doesn't count.

        Raises:
            LimitError: There are so many matches in so long a text that it could take minutes.
        """
        data = _encoded(text)
        texts: list[str] = []
        at, end_before, work = 0, -1, 0
        while at <= len(data) and (limit < 0 or len(texts) < limit):
            work += len(data) - at
            if work > _WORK:
                raise LimitError("there are too many matches in too long a text", hint="give findAll a limit")
            span = self._from(data, at)
            if span is None:
                break
            start, end = span
            counts = True
            if end == at:
                counts = start != end_before
                at += _width(data, at)
            else:
                at = end
            end_before = end
            if counts:
                texts.append(_decoded(data[start:end]))
        return tuple(texts)

    def _from(self, data: bytes, at: int) -> tuple[int, int] | None:
        """The first match that starts at or behind an offset, between two characters."""
        while (match := self._regexp.search(data, at)) is not None:
            start: int = match.start()
            # google-re2 also looks between the bytes of a character, where \\B holds; Go doesn't.
            if start == len(data) or data[start] & 0xC0 != 0x80:
                return start, match.end()
            at = start + _width(data, start)
        return None


def compiled(pattern: str) -> Pattern:
    """The pattern, ready to search; a bounded number of them is kept.

    Raises:
        EvaluationError: Go's ``regexp.Compile`` would refuse the pattern.
    """
    kept = _small(pattern)
    return kept if kept is not None else _large(pattern)


def found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text.

    Raises:
        EvaluationError: Go's ``regexp.Compile`` would refuse the pattern.
    """
    return compiled(pattern).search(text) is not None


@lru_cache(maxsize=256)
def _small(pattern: str) -> Pattern | None:
    made = _compile(pattern)
    return made if made.size <= _SMALL else None


@lru_cache(maxsize=4)
def _large(pattern: str) -> Pattern:
    return _compile(pattern)


def _compile(pattern: str) -> Pattern:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        made = Pattern(re2.compile(_encoded(_translated(pattern)), options))
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise _refused(text) from None
    if made.size > _SMALL:
        # The module keeps what it compiled, too.
        re2.purge()
    return made


def _refused(reason: str) -> EvaluationError:
    return EvaluationError(
        f"the regular expression is not valid: {reason}",
        hint="the syntax is RE2's: no look-around, no back references; write r'\\d' or '\\\\d' for a backslash",
    )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _width(data: bytes, at: int) -> int:
    """Bytes of the character at an offset; 1 at the end."""
    end = at + 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return end - at


def _translated(pattern: str) -> str:
    """The pattern as google-re2 must read it to mean what it means to Go.

    Raises:
        EvaluationError: Go refuses something that google-re2 would take.
    """
    if "\\" not in pattern and "(" not in pattern:
        return pattern
    return "".join(_pieces(pattern))


def _pieces(pattern: str) -> Iterator[str]:
    at, depth, in_class = 0, 0, False
    while at < len(pattern):
        end = at + 1
        character = pattern[at]
        if character == "\\":
            following = pattern[end : end + 1]
            end += 1
            if following in ("p", "P"):
                end, piece = _unicode_class(pattern, at, in_class)
                yield piece
                at = end
                continue
            if following == "Q" and not in_class:
                closed = pattern.find("\\E", end)
                end = len(pattern) if closed < 0 else closed + 2
            elif following == "C" and not in_class:
                raise _refused("invalid escape sequence: \\C")
        elif in_class:
            if character == "]":
                in_class = False
            elif pattern.startswith("[:", at):
                closed = pattern.find(":]", at + 2)
                end = end if closed < 0 else closed + 2
        elif character == "[":
            in_class = True
            end += pattern.startswith("^", end)
            # A bracket that comes first stands for itself.
            end += pattern.startswith("]", end)
        elif character == "(":
            depth += 1
            if depth >= MAX_DEPTH:
                raise _refused(f"groups are nested {MAX_DEPTH} deep")
            for opening in ("(?P<", "(?<"):
                if pattern.startswith(opening, at):
                    end = _group_name(pattern, at + len(opening))
                    yield "("
                    at = end
                    break
            if at == end:
                continue
        elif character == ")":
            depth -= 1
        yield pattern[at:end]
        at = end


def _group_name(pattern: str, at: int) -> int:
    """The offset behind ``name>``."""
    end = pattern.find(">", at)
    name = pattern[at:end] if end >= 0 else ""
    if not name or not _WORD.issuperset(name):
        raise _refused(f"invalid group name: {name[:40]!r}")
    return end + 1


def _unicode_class(pattern: str, at: int, in_class: bool) -> tuple[int, str]:
    r"""The offset behind ``\p…``, and what google-re2 is given for it."""
    negated = pattern[at + 1] == "P"
    if pattern.startswith("{", at + 2):
        end = pattern.find("}", at + 3)
        if end < 0:
            raise _refused(f"invalid character class range: {pattern[at : at + 40]}")
        name = pattern[at + 3 : end]
        end += 1
    else:
        end = at + 3
        name = pattern[at + 2 : end]
    shown = pattern[at:end]
    if name.startswith("^"):
        negated, name = not negated, name[1:]
    name = _canonical(name)
    name = _ALIASES.get(name, name)
    if name in _CATEGORIES or name in _SCRIPTS:
        return end, f"\\{'P' if negated else 'p'}{{{name}}}"
    if name == "Assigned":
        negated, name = not negated, "Cn"
    elif name == "Any":
        return end, "\\P{Any}" if negated else "\\p{Any}"
    if name not in ("Ascii", "Cn", "Lc"):
        raise _refused(f"invalid character class range: {shown[:40]}")
    if in_class:
        return end, _ranges(name, negated)
    # Negated by google-re2 itself, after it has added what (?i) adds.
    return end, f"[{'^' if negated else ''}{_ranges(name, False)}]"


def _canonical(name: str) -> str:
    """How Go looks a name up: the first letter large, the others small, no spaces, hyphens and underscores."""
    bare = "".join(character for character in name if character not in "_- ")
    head, tail = bare[:1], bare[1:]
    return (head.upper() if "a" <= head <= "z" else head) + "".join(
        character.lower() if "A" <= character <= "Z" else character for character in tail
    )


@lru_cache(maxsize=8)
def _ranges(name: str, negated: bool) -> str:
    """The characters of a class that google-re2 has no name for, as the inside of brackets."""

    def belongs(code: int) -> bool:
        if name == "Ascii":
            return (code < 0x80) != negated
        return (unicodedata.category(chr(code)) in _GROUPS[name]) != negated

    parts = []
    for inside, run in groupby(range(sys.maxunicode + 1), belongs):
        if inside:
            codes = list(run)
            parts.append(f"\\x{{{codes[0]:x}}}-\\x{{{codes[-1]:x}}}")
    return "".join(parts)


_GROUPS: Final = {"Cn": frozenset({"Cn"}), "Lc": frozenset({"Lu", "Ll", "Lt"})}
_CATEGORY_NAMES: Final = (
    "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
)
_CATEGORIES: Final = frozenset(_CATEGORY_NAMES.split())
_ALIASES: Final = {
    "Casedletter": "Lc",
    "Closepunctuation": "Pe",
    "Cntrl": "Cc",
    "Combiningmark": "M",
    "Connectorpunctuation": "Pc",
    "Control": "Cc",
    "Currencysymbol": "Sc",
    "Dashpunctuation": "Pd",
    "Decimalnumber": "Nd",
    "Digit": "Nd",
    "Enclosingmark": "Me",
    "Finalpunctuation": "Pf",
    "Format": "Cf",
    "Initialpunctuation": "Pi",
    "Letter": "L",
    "Letternumber": "Nl",
    "Lineseparator": "Zl",
    "Lowercaseletter": "Ll",
    "Mark": "M",
    "Mathsymbol": "Sm",
    "Modifierletter": "Lm",
    "Modifiersymbol": "Sk",
    "Nonspacingmark": "Mn",
    "Number": "N",
    "Openpunctuation": "Ps",
    "Other": "C",
    "Otherletter": "Lo",
    "Othernumber": "No",
    "Otherpunctuation": "Po",
    "Othersymbol": "So",
    "Paragraphseparator": "Zp",
    "Privateuse": "Co",
    "Punct": "P",
    "Punctuation": "P",
    "Separator": "Z",
    "Spaceseparator": "Zs",
    "Spacingmark": "Mc",
    "Surrogate": "Cs",
    "Symbol": "S",
    "Titlecaseletter": "Lt",
    "Unassigned": "Cn",
    "Uppercaseletter": "Lu",
}
# The scripts of Unicode 15 whose names are one word.
_SCRIPT_NAMES: Final = (
    "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese "
    "Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari "
    "Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han "
    "Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer "
    "Khojki Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean "
    "Marchen Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham "
    "Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala "
    "Sogdian Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan "
    "Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Yezidi Yi"
)
_SCRIPTS: Final = frozenset(_SCRIPT_NAMES.split())
