"""A JSON text, object by object: what programs print, however long it is.

A list is read item by item, so that only its objects are kept. Whatever isn't plain JSON is left to YAML, of which JSON
is nearly a part; what isn't plainly right in an item is read again by the strict walk.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # part of the module, missing in its stubs
from typing import Any, Final

from draht.api.meta import Object
from draht.api.reader.plain import OddError, once, plain_object
from draht.api.reader.written import Piece, Source

__all__ = ["Entry", "JsonText", "scan"]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ODD_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of the list, or the one object that the text is.

    Args:
        piece: Where it stands.
        object: What it is; None where somebody has to look closer.
        kind: Its ``apiVersion`` and ``kind``, None where it says none.
    """

    piece: Piece
    object: Object | None
    kind: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class JsonText:
    """A text that is one JSON object.

    Args:
        whole: All of it as one entry; without its object if there are `items`.
        items: Of a list; None for an object that has none.
        envelope: The list without its items, every line and column where it was.
        gap: How many blanks stand for the items.
    """

    whole: Entry
    items: tuple[Entry, ...] | None
    envelope: str
    gap: int = 0


def scan(text: str) -> JsonText | None:
    """Read a text; None if it isn't one plain JSON object with each field once."""
    try:
        return _Scan(text).text()
    except (ValueError, IndexError, RecursionError, OddError):
        return None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._source = Source(text)
        self._decode = json.JSONDecoder(object_pairs_hook=once, parse_constant=_refuse).raw_decode
        self._skip = json.JSONDecoder().raw_decode
        # Half an emoji stays half with Python and becomes U+FFFD with Go.
        self._odd = _ODD_ESCAPE.search(text) is not None
        self._line = 0
        self._counted = 0

    def text(self) -> JsonText | None:
        text = self._text
        fields: dict[str, Any] = {}
        items: tuple[Entry, ...] | None = None
        begin = self._space(0)
        at = self._space(self._expect("{", begin))
        hole = (len(text), len(text))
        while text[at] != "}":
            name, at = scanstring(text, self._expect('"', at), True)
            at = self._space(self._expect(":", self._space(at)))
            if name in fields:
                return None
            fields[name] = None
            if name == "items" and text[at] == "[":
                items, end = self._items(at + 1)
                hole, at = (at + 1, end - 1), end
            else:
                fields[name], at = self._decode(text, at)
            at = self._space(at)
            if text[at] != "}":
                at = self._space(self._expect(",", at))
                self._expect('"', at)
        if self._space(at + 1) != len(text):
            return None
        found = None
        if items is None and not self._odd:
            with contextlib.suppress(OddError):
                found = plain_object(fields)
        self._line = self._counted = 0
        whole = Entry(self._piece(begin, at + 1), found, _kind(fields))
        if items is None:
            return JsonText(whole, None, "")
        cut = text[hole[0] : hole[1]]
        lines = cut.count("\n")
        gap = "\n" * lines + " " * (len(cut) - cut.rfind("\n") - 1 if lines else len(cut))
        return JsonText(whole, items, text[: hole[0]] + gap + text[hole[1] :], len(gap))

    def _items(self, at: int) -> tuple[tuple[Entry, ...], int]:
        found: list[Entry] = []
        at = self._space(at)
        while self._text[at] != "]":
            entry, at = self._entry(at)
            found.append(entry)
            at = self._space(at)
            if self._text[at] != "]":
                at = self._space(self._expect(",", at))
                if self._text[at] == "]":
                    raise ValueError("a comma at the end")
        return tuple(found), at + 1

    def _entry(self, at: int) -> tuple[Entry, int]:
        text = self._text
        value: Any = None
        found: Object | None = None
        try:
            value, end = self._decode(text, at)
        except OddError:
            end = self._skip(text, at)[1]
        if isinstance(value, dict) and not self._odd:
            with contextlib.suppress(OddError):
                found = plain_object(value)
        return Entry(self._piece(at, end), found, _kind(value)), end

    def _piece(self, start: int, end: int) -> Piece:
        text = self._text
        self._line += text.count("\n", self._counted, start)
        self._counted = start
        return Piece(self._source, start, end, self._line, start - text.rfind("\n", 0, start) - 1)

    def _space(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        assert found is not None
        return found.end()

    def _expect(self, sign: str, at: int) -> int:
        if self._text[at] != sign:
            raise ValueError(sign)
        return at + 1


def _kind(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    version, kind = value.get("apiVersion"), value.get("kind")
    return (version, kind) if type(version) is str and type(kind) is str else None
