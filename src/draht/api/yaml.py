"""YAML and JSON text to node trees and back: the only module that knows PyYAML.

Why nodes: people's files are read with file, line and column for every problem, and CDI decodes the *source text* of a
scalar by the type of its target field, so resolved Python values would lose what is needed. A node's tag says what an
untyped scalar means by the rules of `draht.api.scalar`. Input is bounded: size, number of values, nesting depth and
alias expansion are checked while the tree grows.

It does not know any model; `draht.api.reader` turns nodes into wire structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from draht.api import scalar
from draht.api.errors import DrahtError

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "AliasEvent",
    "DocumentStartEvent",
    "Event",
    "MappingEndEvent",
    "MappingNode",
    "MappingStartEvent",
    "Node",
    "NodeEvent",
    "ScalarEvent",
    "ScalarNode",
    "SequenceEndEvent",
    "SequenceNode",
    "SequenceStartEvent",
    "YamlError",
    "documents",
    "dump",
    "first_document_events",
    "size",
    "where",
]

MAX_BYTES = 8 * 1024 * 1024
"""Largest text that is parsed; a Kubernetes object is at most 1.5 MiB, a CDI spec a few hundred KiB."""

MAX_DEPTH = 100
"""Deepest nesting; the deepest real object (a Pod template) uses about 20 levels."""

MAX_NODES = 1_000_000
"""Most values of a text, and of a document once its aliases are expanded, so that an alias bomb costs nothing.

The cost of reading is in the number of values, not of bytes: a million take about three seconds and 330 MB, the four
million that fit into `MAX_BYTES` would take 24 s and 1.8 GB. 8 MiB of ResourceSlices hold about 840,000.
"""


class YamlError(DrahtError):
    """The text is not YAML, or is beyond a bound.

    Attributes:
        line: The line of the problem, counted from 1, where there is one.
        column: The column of the problem, counted from 1, where there is one.
        resumable: Other documents of the text may be all right; False where a bound was met.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
        resumable: bool = False,
    ) -> None:
        place = source if line is None else f"{source}:{line}:{column}"
        super().__init__(message, where=place, hint=hint)
        self.line = line
        self.column = column
        self.resumable = resumable


class _TooLargeError(Exception):
    """Raised inside the composer, which knows no source."""

    def __init__(self, message: str, node: Node | None, *, resumable: bool) -> None:
        super().__init__(message)
        self.mark = None if node is None else node.start_mark
        self.resumable = resumable


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BaseDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_CONTAINERS = {SequenceNode: "tag:yaml.org,2002:seq", MappingNode: "tag:yaml.org,2002:map"}


class _Loader(_Base):  # type: ignore[misc]  # libyaml's loader has no types
    """libyaml's composer with Kubernetes' meaning of scalars, and with bounds that act before memory is used."""

    nodes = 0
    depth = 0

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        if kind is not ScalarNode:
            return _CONTAINERS[kind]  # type: ignore[index]  # the composer passes no other kinds
        return scalar.resolve(value or "")[0] if implicit[0] else scalar.STR

    # PyYAML calls this for every node with its parent and its key or index.
    def descend_resolver(self, current_node: Node | None, current_index: object) -> None:  # noqa: ARG002
        self.nodes += 1
        self.depth += 1
        if self.nodes > MAX_NODES:
            raise _TooLargeError(f"holds more than {MAX_NODES} values", None, resumable=False)
        if self.depth > MAX_DEPTH:
            raise _TooLargeError(f"nested deeper than {MAX_DEPTH} levels", current_node, resumable=True)

    def ascend_resolver(self) -> None:
        self.depth -= 1


class _Dumper(_BaseDumper):  # type: ignore[misc]  # libyaml's dumper has no types
    """libyaml's emitter with quotes around what Kubernetes, and not only PyYAML, would take for something else."""

    def represent_text(self, text: str) -> Any:
        style = None if scalar.resolve(text)[0] == scalar.STR else "'"
        return self.represent_scalar(scalar.STR, text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def where(node: Node, source: str) -> str:
    """``source:line:column`` of a node, both counted from 1."""
    return _place(node.start_mark, source)


def documents(data: bytes | str, *, source: str = "<input>", max_bytes: int | None = None) -> Iterator[Node]:
    """Yield the root node of every non-empty document of a YAML or JSON text.

    Args:
        data: The text.
        source: What errors call it.
        max_bytes: Largest text; None for `MAX_BYTES`.

    Raises:
        YamlError: The text is larger than allowed, isn't UTF-8/UTF-16, isn't YAML, nests deeper than `MAX_DEPTH`
            or holds or expands to more than `MAX_NODES` values. Documents before the broken one have been yielded.
    """
    loader = _loader(data, source, max_bytes)
    has_aliases = b"*" in data if isinstance(data, bytes) else "*" in data
    try:
        while True:
            try:
                if not loader.check_node():
                    return
                node = loader.get_node()
            except (yaml.YAMLError, UnicodeError, ValueError) as error:
                raise _syntax(error, source, data) from None
            except _TooLargeError as error:
                mark = error.mark
                line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
                raise YamlError(
                    str(error),
                    source=source,
                    line=line,
                    column=column,
                    hint=None if error.resumable else "split the file",
                    resumable=error.resumable,
                ) from None
            except RecursionError:
                raise YamlError(f"nested deeper than {MAX_DEPTH} levels", source=source) from None
            if node is not None:
                if has_aliases:
                    _bounded(node, source)
                yield node
    finally:
        loader.dispose()


def first_document_events(data: bytes | str, *, source: str = "<input>") -> Iterator[Event]:
    """Yield the document's start, then its node events: scalars, aliases, starts and ends, explicit tags as written.

    For readers whose rules need what composing takes away: which values were aliases, which tags were explicit.

    Raises:
        YamlError: As `documents`, but an alias without anchor is left to the caller. Sizes count aliases expanded.
    """
    loader = _loader(data, source)
    bounds = _EventBounds(source)
    try:
        while True:
            try:
                event = loader.get_event() if loader.check_event() else None
            except (yaml.YAMLError, UnicodeError, ValueError) as error:
                raise _syntax(error, source, data) from None
            if isinstance(event, (NodeEvent, MappingEndEvent, SequenceEndEvent)):
                bounds.count(event)
                yield event
            elif isinstance(event, DocumentStartEvent):
                yield event
            elif event is None or isinstance(event, DocumentEndEvent):
                return
    finally:
        loader.dispose()


class _EventBounds:
    """Counts a stream of events as the tree it stands for, so that a bomb is refused before anybody builds it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._size = 0
        self._anchors: dict[str, tuple[int, int]] = {}
        self._open: list[tuple[str | None, int, int]] = []  # anchor, size before, height so far

    def count(self, event: Event) -> None:
        if isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            self._open.append((event.anchor, self._size, 0))
            self._size += 1
            if event.anchor is not None:
                self._anchors.pop(event.anchor, None)
            self._check(event, 0)
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            anchor, before, height = self._open.pop()
            if anchor is not None:
                self._anchors[anchor] = (self._size - before, height + 1)
            self._grow(height + 1)
        elif isinstance(event, AliasEvent):
            assert event.anchor is not None
            if any(anchor == event.anchor for anchor, _, _ in self._open) and event.anchor not in self._anchors:
                raise self._refusal(event, "an alias refers to a value that contains it", None)
            size, height = self._anchors.get(event.anchor, (1, 1))
            self._size += size
            self._check(event, height)
            self._grow(height)
        else:
            assert isinstance(event, ScalarEvent)
            self._size += 1
            if event.anchor is not None:
                self._anchors[event.anchor] = (1, 1)
            self._check(event, 1)
            self._grow(1)

    def _grow(self, height: int) -> None:
        if self._open and self._open[-1][2] < height:
            anchor, before, _ = self._open[-1]
            self._open[-1] = (anchor, before, height)

    def _check(self, event: Event, height: int) -> None:
        if self._size > MAX_NODES:
            raise self._refusal(event, f"holds more than {MAX_NODES} values, aliases expanded", "split the file")
        if len(self._open) + height > MAX_DEPTH:
            raise self._refusal(event, f"nested deeper than {MAX_DEPTH} levels", None)

    def _refusal(self, event: Event, message: str, hint: str | None) -> YamlError:
        mark = event.start_mark
        assert mark is not None
        return YamlError(message, source=self._source, line=mark.line + 1, column=mark.column + 1, hint=hint)


def dump(value: object, *, explicit_start: bool = False) -> str:
    """YAML text of builtin values in block style, keys in the order given."""
    return str(
        yaml.dump(
            value,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
            explicit_start=explicit_start,
            width=120,
        )
    )


def _loader(data: bytes | str, source: str, max_bytes: int | None = None) -> Any:
    most = MAX_BYTES if max_bytes is None else max_bytes
    if len(data) > most:
        raise YamlError(
            f"the text has {len(data)} bytes, more than the {most} that are read",
            source=source,
            hint="split the file",
        )
    try:
        return _Loader(data)
    except (yaml.YAMLError, UnicodeError) as error:
        raise _syntax(error, source, data) from None


def _place(mark: Any, source: str) -> str:
    return f"{source}:{mark.line + 1}:{mark.column + 1}"


def _syntax(error: Exception, source: str, data: bytes | str) -> YamlError:
    mark = getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    offset = getattr(error, "position", None)
    if mark is None and isinstance(offset, int) and isinstance(data, bytes):
        before = data[:offset]
        line, column = before.count(b"\n") + 1, offset - before.rfind(b"\n")
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    message = f"not readable as YAML or JSON: {problem}"
    return YamlError(message, source=source, line=line, column=column, resumable=True)


def size(root: Node) -> int:
    """How many nodes a tree has; a node that several aliases share counts once."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            stack.extend(_children(node))
    return len(seen)


def _children(node: Node) -> list[Node]:
    if isinstance(node, SequenceNode):
        return list(node.value)
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    return []


def _bounded(root: Node, source: str) -> None:
    """Refuse a tree whose aliases make it cyclic, too deep or too large."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]

    def refuse(node: Node, message: str, hint: str | None = None) -> YamlError:
        mark = node.start_mark
        return YamlError(message, source=source, line=mark.line + 1, column=mark.column + 1, hint=hint, resumable=True)

    while stack:
        node, done = stack.pop()
        key = id(node)
        if done:
            open_nodes.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in _children(node))
            if sizes[key] > MAX_NODES:
                raise refuse(node, f"expands to more than {MAX_NODES} values", "write aliases out")
            continue
        if key in open_nodes:
            raise refuse(node, "an alias refers to a value that contains it")
        if key in sizes:
            continue
        open_nodes.add(key)
        if len(open_nodes) > MAX_DEPTH:
            raise refuse(node, f"nested deeper than {MAX_DEPTH} levels", "write aliases out")
        stack.append((node, True))
        stack.extend((child, False) for child in _children(node))
