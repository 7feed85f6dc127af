"""The node tree of a spec's text: tags, aliases and scalar texts as they are written, nothing resolved.

Owns the step from YAML events to nodes. The Go library decodes a scalar by the type of the field it lands in and by an
explicit tag, compares keys before it follows aliases, and lets an anchor be defined twice; so a tree that has resolved
tags and replaced aliases, as YAML libraries give it, would have lost what decides.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Literal

from draht.api import yaml
from draht.cdi.errors import SpecError

__all__ = ["Node", "compose"]

_TAG_PREFIX = "tag:yaml.org,2002:"
_COLON = "\uf8ff"
"""Stands in for a colon that libyaml refuses; a private-use character without a meaning of its own."""
_MOST_FINAL_COLONS = 50
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_SLASH_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\/")


class Node:
    """One node.

    Attributes:
        kind: What it is; an alias has its target in `target`.
        tag: The explicit tag in short form, as ``!!str``; empty if there is none (or only ``!``).
        text: The source text of a scalar after its quotes and escapes; the anchor's name of an alias; else empty.
        quoted: A scalar that is not plain.
        children: Items of a sequence; keys and values in turn of a mapping.
        target: What an alias stands for.
        line: Counted from 1.
        column: Counted from 1.
    """

    __slots__ = ("children", "column", "kind", "line", "quoted", "tag", "target", "text")

    def __init__(
        self, kind: Literal["scalar", "mapping", "sequence", "alias"], event: yaml.NodeEvent, text: str = ""
    ) -> None:
        self.kind = kind
        self.tag = ""
        self.text = text
        self.quoted = False
        self.children: list[Node] = []
        self.target: Node | None = None
        assert event.start_mark is not None
        self.line: int = event.start_mark.line + 1
        self.column: int = event.start_mark.column + 1

    def resolved(self) -> Node:
        """The node itself, or what the alias stands for."""
        return self.target if self.target is not None else self


def compose(data: bytes, *, source: str) -> Node | None:
    """The root of the first document; None where there is no document.

    Raises:
        draht.api.yaml.YamlError: The text isn't YAML or is beyond a bound.
        SpecError: An alias has no anchor, or it is YAML that engines don't read.
    """
    text: bytes | str = data
    for _ in range(_MOST_FINAL_COLONS):
        try:
            return _compose(text, source)
        except yaml.YamlError as error:
            if "found unexpected ':'" not in error.message or error.line is None or error.column is None:
                raise
            if not isinstance(text, str):
                text = _as_text(text)
                if _COLON in text:
                    raise
            text = _keep_colon(text, error.line, error.column)
    return _compose(text, source)


def _keep_colon(text: str, line: int, column: int) -> str:
    """Put a stand-in for the colon at a place.

    ``[A=b:]`` is a text that ends in a colon for engines, and a mistake for libyaml.
    """
    start = 0
    for found, _ in zip(_LINE_END.finditer(text), range(line - 1), strict=False):
        start = found.end()
    at = start + column - 1
    return f"{text[:at]}{_COLON}{text[at + 1 :]}"


def _compose(data: bytes | str, source: str) -> Node | None:
    events = yaml.first_document_events(data, source=source)
    start = next(events, None)
    if not isinstance(start, yaml.DocumentStartEvent):
        return None
    if start.version not in {None, (1, 1)}:
        raise SpecError(
            "the %YAML directive names a version other than 1.1",
            where=f"{source}:1",
            hint="remove the directive: engines refuse any other",
        )
    if isinstance(data, str):
        composer = _Composer(source, data, has_colons=True)
    else:
        composer = _Composer(source, _as_text(data) if b"\\" in data else "", has_colons=False)
    root = composer.node(next(events), events)
    # The document has to end, too: whether it does shows in what comes next, which may be no YAML.
    after = next(events, None)
    assert after is None
    return root


class _Composer:
    """The state of one composition: the anchors so far, and the text if escapes have to be looked at."""

    def __init__(self, source: str, text: str, *, has_colons: bool) -> None:
        self.source = source
        self.has_colons = has_colons
        self.text = text
        self.anchors: dict[str, Node] = {}
        self.flow = 0

    def node(self, event: yaml.Event, events: Iterator[yaml.Event]) -> Node:
        """The node that begins with an event."""
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.AliasEvent):
            assert event.anchor is not None
            node = Node("alias", event, event.anchor)
            node.target = self.anchors.get(event.anchor)
            if node.target is None:
                raise SpecError(f"there is no anchor &{event.anchor} before this alias", where=self._where(node))
            return node
        assert isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent))
        node = Node("mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence", event)
        self._annotate(node, event.tag, event.anchor)
        self.flow += bool(event.flow_style)
        for part in events:
            if isinstance(part, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                break
            node.children.append(self.node(part, events))
        self.flow -= bool(event.flow_style)
        return node

    def _scalar(self, event: yaml.ScalarEvent) -> Node:
        node = Node("scalar", event, event.value.replace(_COLON, ":") if self.has_colons else event.value)
        node.quoted = bool(event.style)
        self._annotate(node, event.tag, event.anchor)
        if self.flow and not event.style and "?" in event.value:
            # libyaml reads it as part of the text, engines as the mark of a key.
            raise SpecError(
                "a question mark in an unquoted text inside brackets", where=self._where(node), hint="put it in quotes"
            )
        if self.text and event.style == '"':
            assert event.start_mark is not None
            assert event.end_mark is not None
            # libyaml reads the JSON escape \\/, engines refuse it.
            if _SLASH_ESCAPE.search(self.text[event.start_mark.index : event.end_mark.index]):
                raise SpecError("the escape \\/ is not known", where=self._where(node), hint="write / without \\")
        return node

    def _annotate(self, node: Node, tag: str | None, anchor: str | None) -> None:
        node.tag = _short(tag)
        if anchor is not None:
            self.anchors[anchor] = node

    def _where(self, node: Node) -> str:
        return f"{self.source}:{node.line}:{node.column}"


def _as_text(data: bytes) -> str:
    """The characters as libyaml counts them, without the byte order mark; the parser has accepted the bytes."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def _short(tag: str | None) -> str:
    if tag is None or tag == "!":
        return ""
    return f"!!{tag.removeprefix(_TAG_PREFIX)}" if tag.startswith(_TAG_PREFIX) else tag
