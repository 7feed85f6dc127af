"""A large YAML list, cut by its text into items that are parsed one by one.

A tree of nodes takes a hundred times the memory of what it says, so a list of thousands of objects is never one tree.
Programs write lists in one form: a field ``items`` at the left margin, each item behind a dash. Where a cut would be
wrong (a quoted text goes on at the margin, say) a piece isn't YAML, and is told as such; nothing is read differently.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from draht.api.reader.written import Piece, Source

__all__ = ["CutList", "cut_list"]

_FIRST: Final = re.compile(
    rb"^items:[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*( *)-(?=[ \t\r\n])", re.MULTILINE
)
_DASH: Final = re.compile(rb"-[ \t\r\n]")
_DEEPEST: Final = 16
"""Deepest indentation of the dashes; programs use none or two spaces."""


class CutList(NamedTuple):
    """A list in pieces.

    Args:
        envelope: The list with an empty ``items``, every line where it was.
        gap: How many blank lines stand for the items.
        items: The items, each with its dash.
    """

    envelope: bytes
    gap: int
    items: tuple[Piece, ...]


def cut_list(source: Source, start: int, end: int, lines: int) -> CutList | None:
    """Cut one document of a text; None if it isn't a list in the form that programs write.

    Args:
        source: The text, in UTF-8.
        start: Where the document begins.
        end: Where it ends.
        lines: How many lines of the text come before it.
    """
    text = source.text
    assert isinstance(text, bytes)
    first = _FIRST.search(text, start, end)
    if first is None or len(first[1]) > _DEEPEST:
        return None
    indent = len(first[1])
    margin = re.compile(rb"^ {0,%d}(?=[^ \t\r\n#])" % indent, re.MULTILINE)
    places: list[int] = []
    stop = end
    for found in margin.finditer(text, first.start(1), end):
        if found.end() - found.start() == indent and _DASH.match(text, found.end()):
            places.append(found.start())
        else:
            stop = found.start()
            break
    pieces = []
    counted, line = start, lines
    for begin, until in zip(places, [*places[1:], stop], strict=True):
        line += text.count(b"\n", counted, begin)
        counted = begin
        pieces.append(Piece(source, begin, until, line, item=True))
    head = first.start() + len(b"items:")
    gap = text.count(b"\n", head, stop)
    return CutList(text[start:head] + b" []" + b"\n" * gap + text[stop:end], gap, tuple(pieces))
