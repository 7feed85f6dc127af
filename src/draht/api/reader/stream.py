"""The documents of a text, also of one that is broken in places.

A YAML parser stops at the first error, and it reads ahead, so that one bad byte may hide documents before it too. Here
a text that fails as a whole is cut at its ``---`` lines and every document has its own success or failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from draht.api import yaml

__all__ = ["Document", "documents"]

MAX_PIECES = 10_000
"""Most documents that a broken text is cut into."""

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
        lines_before: Lines of the source before the text that `root` and `error` count from.
    """

    root: yaml.Node | None
    error: yaml.YamlError | None
    lines_before: int = 0


def documents(data: bytes, source: str) -> Iterator[Document]:
    """Every document of a text in its order; broken ones carry their error."""
    roots, error = _roots(data, source)
    if error is not None and not roots:
        repaired = _without_surrogates(data)
        if repaired is not None:
            roots, error = _roots(repaired, source)
    cuts = [match.start() for match in _MARKER.finditer(data)] if error is not None and error.resumable else []
    if not cuts:
        yield from (Document(root, None) for root in roots)
        if error is not None:
            yield Document(None, error)
        return
    del roots
    if cuts[0] != 0:
        cuts.insert(0, 0)
    yield from _pieces(data, cuts, source)


def _pieces(data: bytes, cuts: list[int], source: str) -> Iterator[Document]:
    lines_before = 0
    budget = yaml.MAX_NODES
    for index, (start, end) in enumerate(zip(cuts, [*cuts[1:], len(data)], strict=True)):
        if index >= MAX_PIECES or budget <= 0:
            yield Document(None, yaml.YamlError("too much to read on behind the errors above", source=source))
            return
        piece = data[start:end]
        roots, error = _roots(piece, source)
        for root in roots:
            budget -= yaml.size(root)
            yield Document(root, None, lines_before)
        if error is not None:
            yield Document(None, error, lines_before)
        lines_before += piece.count(b"\n")


def _roots(data: bytes, source: str) -> tuple[list[yaml.Node], yaml.YamlError | None]:
    roots: list[yaml.Node] = []
    try:
        roots.extend(yaml.documents(data, source=source))
    except yaml.YamlError as error:
        return roots, error
    return roots, None


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
