"""The node tree of a spec's text: tags, aliases and scalar texts as they are written, nothing resolved.

Owns the step from YAML events to nodes. The Go library decodes a scalar by the type of the field it lands in and by an
explicit tag, compares keys before it follows aliases, and lets an anchor be defined twice; so a tree that has resolved
tags and replaced aliases, as YAML libraries give it, would have lost what decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from draht.api import yaml
from draht.cdi.errors import SpecError

__all__ = ["Node", "compose"]

_TAG_PREFIX = "tag:yaml.org,2002:"


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
        SpecError: An alias has no anchor.
    """
    events = yaml.first_document_events(data, source=source)
    first = next(events, None)
    return None if first is None else _node(first, events, {}, source)


def _node(event: yaml.Event, events: Iterator[yaml.Event], anchors: dict[str, Node], source: str) -> Node:
    if isinstance(event, yaml.ScalarEvent):
        node = Node("scalar", event, event.value)
        node.tag = _short(event.tag)
        node.quoted = bool(event.style)
        if event.anchor is not None:
            anchors[event.anchor] = node
        return node
    if isinstance(event, yaml.AliasEvent):
        assert event.anchor is not None
        node = Node("alias", event, event.anchor)
        if event.anchor not in anchors:
            raise SpecError(f"no anchor &{event.anchor} before this alias", where=f"{source}:{node.line}:{node.column}")
        node.target = anchors[event.anchor]
        return node
    assert isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent))
    node = Node("mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence", event)
    node.tag = _short(event.tag)
    if event.anchor is not None:
        anchors[event.anchor] = node
    for part in events:
        if isinstance(part, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            break
        node.children.append(_node(part, events, anchors, source))
    return node


def _short(tag: str | None) -> str:
    if tag is None or tag == "!":
        return ""
    return f"!!{tag.removeprefix(_TAG_PREFIX)}" if tag.startswith(_TAG_PREFIX) else tag
