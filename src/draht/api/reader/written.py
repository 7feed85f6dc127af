"""Where an object was written, so that the line of one of its fields can be told later.

Nodes know lines, but keeping them would take ten times the memory of the objects, and problems are rare: the text is
kept, and parsed again for whoever asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from draht.api import yaml

__all__ = ["Piece", "Source", "step_into", "steps"]

_TOKEN = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


class Source:
    """A text, and the nodes of the piece of it that was asked about last."""

    def __init__(self, text: bytes | str) -> None:
        self.text = text
        self._last: tuple[Piece, tuple[yaml.Node, ...]] | None = None

    def whole(self) -> Piece:
        """All of the text."""
        return Piece(self, 0, len(self.text))

    def roots(self, piece: Piece) -> tuple[yaml.Node, ...]:
        """The documents of a piece."""
        if self._last is None or self._last[0] != piece:
            self._last = (piece, tuple(yaml.documents(piece.text())))
        return self._last[1]


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text that can be read by itself.

    Args:
        source: The text.
        start: Where the piece begins.
        end: Where it ends.
        lines: How many lines of the source come before it.
        column: How many columns of its first line come before it.
        item: It is one item of a list, with its dash: what counts is the one value in it.
    """

    source: Source
    start: int
    end: int
    lines: int = 0
    column: int = 0
    item: bool = False

    def text(self) -> bytes | str:
        """What is parsed."""
        return self.source.text[self.start : self.end]

    def place(self, node: yaml.Node) -> tuple[int, int]:
        """Line and column of a node of the piece in the source, counted from 1."""
        mark = node.start_mark
        return self.lines + mark.line + 1, mark.column + 1 + (0 if mark.line else self.column)

    def node(self, number: int, path: str) -> yaml.Node:
        """What is at a path of a document of the piece."""
        node = self.source.roots(self)[number]
        if self.item:
            node = node.value[0]
        for name in steps(path):
            step = step_into(node, name)
            assert step is not None, "an object was read from there"
            node = step[1]
        return node


def steps(path: str) -> list[str]:
    """The names and indexes of a field path such as ``spec.devices[3].attributes[index].int``."""
    return [name or index for name, index in _TOKEN.findall(path)]


def step_into(node: yaml.Node, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Where a field or item of a node is marked, and its value; None if there is none of that name or index."""
    if isinstance(node, yaml.SequenceNode):
        if not name.isdecimal() or int(name) >= len(node.value):
            return None
        return node.value[int(name)], node.value[int(name)]
    if isinstance(node, yaml.MappingNode):
        return next(((key, child) for key, child in node.value if key.value == name), None)
    return None
