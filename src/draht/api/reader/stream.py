"""The documents of a text, also of one that is broken in places.

A YAML parser stops at the first error, and it reads ahead, so that one bad byte may hide documents before it too. Here
a text that fails as a whole, or is too large for one tree, is cut at its ``---`` lines and every document has its own
success or failure. A document that is too large, too, may be a list of which each item is small enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from draht.api import yaml
from draht.api.reader.cut import CutList, cut_list
from draht.api.reader.written import Piece, Source

__all__ = ["TOO_LARGE", "Document", "documents", "roots"]

MAX_PIECES = 10_000
"""Most documents that a broken text is cut into."""

TOO_LARGE: Final = f"a document larger than {yaml.MAX_BYTES} bytes must be a list"
_PLAIN: Final = "a List as `kubectl get -o json` or `-o yaml` prints it is read item by item; split other files"

_MARKER = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_SURROGATES = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its root node, or why it has none.

    Attributes:
        root: None where the document is broken.
        error: None where it is not.
        piece: Where it stands; `root` and `error` count lines from there.
        number: Which document of the piece it is.
        items: Of a list that is too large for one tree, of which `root` is the rest: its items, to be read one by one.
    """

    root: yaml.Node | None
    error: yaml.YamlError | None
    piece: Piece
    number: int = 0
    items: tuple[Piece, ...] | None = None


def documents(data: bytes, source: str) -> Iterator[Document]:
    """Every document of a text in its order; broken ones carry their error."""
    whole = Source(data).whole()
    if len(data) > yaml.MAX_BYTES:
        yield from _pieces(whole, source)
        return
    found, error = roots(whole, source)
    if error is not None and not found:
        repaired = _without_surrogates(data)
        if repaired is not None:
            whole = Source(repaired).whole()
            found, error = roots(whole, source)
    if error is not None and error.resumable and _MARKER.search(data):
        del found
        yield from _pieces(whole, source)
        return
    yield from (Document(root, None, whole, number) for number, root in enumerate(found))
    if error is not None:
        yield Document(None, error, whole)


def _pieces(whole: Piece, source: str) -> Iterator[Document]:
    """The documents of a text that can't be read as one, by its ``---`` lines."""
    data = whole.source.text
    assert isinstance(data, bytes)
    cuts = [match.start() for match in islice(_MARKER.finditer(data), MAX_PIECES + 1)]
    if not cuts or cuts[0] != 0:
        cuts.insert(0, 0)
    lines = 0
    budget = yaml.MAX_NODES
    for index, (start, end) in enumerate(zip(cuts, [*cuts[1:], len(data)], strict=True)):
        piece = Piece(whole.source, start, end, lines)
        if index >= MAX_PIECES or budget <= 0:
            yield Document(None, yaml.YamlError("too much to read on behind the errors above", source=source), whole)
            return
        if end - start > yaml.MAX_BYTES:
            cut = cut_list(whole.source, start, end, lines)
            if cut is None:
                yield Document(None, yaml.YamlError(TOO_LARGE, source=source, line=1, column=1, hint=_PLAIN), piece)
            else:
                yield _listed(cut, piece, source)
        else:
            found, error = roots(piece, source)
            for number, root in enumerate(found):
                budget -= yaml.size(root)
                yield Document(root, None, piece, number)
            if error is not None:
                yield Document(None, error, piece)
        lines += data.count(b"\n", start, end)


def _listed(cut: CutList, piece: Piece, source: str) -> Document:
    found, error = roots(Source(cut.envelope).whole(), source, spare=cut.gap)
    if error is None and len(found) != 1:
        error = yaml.YamlError("the document around the list's items isn't one document", source=source)
    return Document(None if error else found[0], error, piece, items=cut.items)


def roots(piece: Piece, source: str, *, spare: int = 0) -> tuple[list[yaml.Node], yaml.YamlError | None]:
    """The root nodes of a piece's documents up to its first error, and the error; `spare` bytes of it are blank."""
    found: list[yaml.Node] = []
    try:
        found.extend(yaml.documents(piece.text(), source=source, max_bytes=yaml.MAX_BYTES + spare))
    except yaml.YamlError as error:
        return found, error
    return found, None


def _without_surrogates(data: bytes) -> bytes | None:
    r"""A JSON text whose ``\ud83d\ude00`` escapes, which YAML doesn't have, are written out; None if it isn't JSON."""
    if data.lstrip()[:1] not in (b"{", b"[") or b"\\u" not in data:
        return None
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return None

    def written_out(match: re.Match[str]) -> str:
        high, low = match.groups()
        if high is None:
            return "\ufffd"  # a surrogate without its other half, as Go's JSON reads it
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)

    return _SURROGATES.sub(written_out, data.decode()).encode()
