"""YAML and JSON text to node trees and back: the only module that knows PyYAML.

Why nodes: people's files are read with file, line and column for every problem, and CDI decodes the *source text* of a
scalar by the type of its target field, so resolved Python values would lose what is needed. Input is bounded: size,
nesting depth and alias expansion are checked before anything is built from it.

It does not know any model; `draht.api.reader` turns nodes into wire structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from draht.api.errors import DrahtError

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "MappingNode",
    "Node",
    "ScalarNode",
    "SequenceNode",
    "YamlError",
    "documents",
    "dump",
    "where",
]

MAX_BYTES = 8 * 1024 * 1024
"""Largest text that is parsed; a Kubernetes object is at most 1.5 MiB, a CDI spec a few hundred KiB."""

MAX_DEPTH = 100
"""Deepest nesting; the deepest real object (a Pod template) uses about 20 levels."""

MAX_NODES = 1_000_000
"""Most nodes after aliases are expanded, so that an alias bomb costs nothing."""


class YamlError(DrahtError):
    """The text is not YAML, or is beyond a bound."""


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def where(node: Node, source: str) -> str:
    """``source:line:column`` of a node, both counted from 1."""
    return f"{source}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def documents(data: bytes | str, *, source: str = "<input>") -> Iterator[Node]:
    """Yield the root node of every non-empty document of a YAML or JSON text.

    Raises:
        YamlError: The text is larger than `MAX_BYTES`, isn't UTF-8/UTF-16, isn't YAML, nests deeper than `MAX_DEPTH`
            or expands to more than `MAX_NODES` nodes. Documents before the broken one have been yielded.
    """
    if len(data) > MAX_BYTES:
        raise YamlError(
            f"the text has {len(data)} bytes, more than the {MAX_BYTES} that are read",
            where=source,
            hint="split the file",
        )
    try:
        loader = _Loader(data)
    except (yaml.YAMLError, UnicodeError) as error:
        raise _syntax(error, source) from None
    try:
        while True:
            try:
                if not loader.check_node():
                    return
                node = loader.get_node()
            except (yaml.YAMLError, UnicodeError, ValueError) as error:
                raise _syntax(error, source) from None
            except RecursionError:
                raise YamlError(f"nested deeper than {MAX_DEPTH} levels", where=source) from None
            if node is not None:
                _bounded(node, source)
                yield node
    finally:
        loader.dispose()


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


def _syntax(error: Exception, source: str) -> YamlError:
    mark = getattr(error, "problem_mark", None)
    place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark is not None else source
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return YamlError(f"not readable as YAML or JSON: {problem}", where=place)


def _children(node: Node) -> list[Node]:
    if isinstance(node, SequenceNode):
        return list(node.value)
    if isinstance(node, MappingNode):
        return [part for pair in node.value for part in pair]
    return []


def _bounded(root: Node, source: str) -> None:
    """Refuse a tree that nests too deep, is cyclic, or grows too large once aliases are expanded."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        key = id(node)
        if done:
            open_nodes.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in _children(node))
            if sizes[key] > MAX_NODES:
                raise YamlError(
                    f"expands to more than {MAX_NODES} values", where=where(node, source), hint="write aliases out"
                )
            continue
        if key in sizes:
            continue
        if key in open_nodes:
            raise YamlError("an alias refers to a value that contains it", where=where(node, source))
        open_nodes.add(key)
        if len(open_nodes) > MAX_DEPTH:
            raise YamlError(f"nested deeper than {MAX_DEPTH} levels", where=where(node, source))
        stack.append((node, True))
        stack.extend((child, False) for child in _children(node))
