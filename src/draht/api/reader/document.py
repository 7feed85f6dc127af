"""From a document to objects: which kind it is, lists taken apart, foreign kinds set aside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from draht.api import scalar, yaml
from draht.api.kinds import KINDS, LISTS, item_type
from draht.api.meta import Object, ObjectList
from draht.api.reader import hint as hints
from draht.api.reader.shape import StructShape, shape
from draht.api.reader.strict import BAD, Walker, join

__all__ = ["Foreign", "Located", "read_document"]

_TOKEN = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Located:
    """An object and where it was written.

    Attributes:
        object: The object.
        source: The file.
        line: Where it starts, counted from 1.
        column: Where it starts, counted from 1.
        path: Its place in the document: empty, or ``items[3]`` inside a list.
    """

    object: Object
    source: str
    line: int
    column: int
    path: str
    _node: yaml.Node = field(repr=False, compare=False)

    def where(self, path: str = "") -> str:
        """``file:line:column`` of a field of the object, or of the nearest thing around it that is written.

        Args:
            path: A field path from the object's root, as ``spec.devices[3].attributes[index].int``.
        """
        node, key = self._node, self._node
        for name, index in _TOKEN.findall(path):
            step = _step(node, name or index)
            if step is None:
                break
            key, node = step
        line = self.line + key.start_mark.line - self._node.start_mark.line
        return f"{self.source}:{line}:{key.start_mark.column + 1}"


@dataclass(frozen=True, slots=True)
class Foreign:
    """An object of a kind that draht doesn't read, as it was written."""

    api_version: str
    kind: str
    value: Mapping[str, Any]
    source: str
    line: int
    column: int
    path: str


class _AnyList(ObjectList, frozen=True, kw_only=True):
    """``v1 List``: items of any kind."""

    items: tuple[Any, ...] = ()


_LIST = ("v1", "List")
_ITEMS = frozenset({"items"})


def read_document(root: yaml.Node, walker: Walker, source: str) -> list[Located | Foreign]:
    """The objects of a document; what is wrong with it is reported to the walker."""
    if isinstance(root, yaml.ScalarNode) and root.tag == scalar.NULL:
        return []
    return _Reading(walker, source).document(root, "")


class _Reading:
    def __init__(self, walker: Walker, source: str) -> None:
        self._walker = walker
        self._source = source

    def document(self, node: yaml.Node, path: str) -> list[Located | Foreign]:
        if not isinstance(node, yaml.MappingNode):
            self._walker.mismatch(node, path, "an object with apiVersion and kind")
            return []
        version, kind = self._identity(node, path)
        if version is None or kind is None:
            return []
        struct = KINDS.get((version, kind))
        if struct is not None:
            return self._object(node, shape(struct), path)
        if (version, kind) == _LIST:
            return self._list(node, shape(_AnyList), path, None)
        listing = LISTS.get((version, kind))
        if listing is not None:
            return self._list(node, shape(listing), path, item_type(listing))
        return self._foreign(node, version, kind, path)

    def _identity(self, node: yaml.MappingNode, path: str) -> tuple[str | None, str | None]:
        found: dict[str, str | None] = {}
        for key, child in node.value:
            if key.value in ("apiVersion", "kind") and key.value not in found:
                text = child.value if isinstance(child, yaml.ScalarNode) and child.tag == scalar.STR else None
                if not text:
                    self._walker.mismatch(child, join(path, key.value), "a string")
                found[key.value] = text or None
        for name in ("apiVersion", "kind"):
            if name not in found:
                hint = self._missing_hint(node, found, name)
                message = f'"{name}" is required and missing'
                self._walker.report(node, join(path, name), "missing-field", message, hint=hint)
        return found.get("apiVersion"), found.get("kind")

    @staticmethod
    def _missing_hint(node: yaml.MappingNode, found: Mapping[str, str | None], name: str) -> str | None:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if "cdiVersion" in keys:
            return "this is a CDI spec: use `draht cdi validate`"
        near = hints.closest(name, [str(key) for key in keys if key not in ("apiVersion", "kind")])
        if near is not None:
            return f'did you mean it by "{near}"?'
        kind = found.get("kind")
        if name == "apiVersion" and kind is not None:
            versions = [version for version, known in (*KINDS, *LISTS) if known == kind]
            return f"write apiVersion: {versions[0]}" if versions else None
        return None

    def _object(self, node: yaml.Node, known: StructShape, path: str) -> list[Located | Foreign]:
        value = self._walker.struct(node, known, path)
        if value is BAD:
            return []
        line, column = self._walker.position(node)
        return [Located(value, self._source, line, column, path, node)]

    def _list(
        self, node: yaml.MappingNode, known: StructShape, path: str, item: type[Object] | None
    ) -> list[Located | Foreign]:
        self._walker.struct(node, known, path, skip=_ITEMS)
        items = next((child for key, child in node.value if key.value == "items"), None)
        place = join(path, "items")
        if items is None or (isinstance(items, yaml.ScalarNode) and items.tag == scalar.NULL):
            return []
        if not isinstance(items, yaml.SequenceNode):
            self._walker.mismatch(items, place, "a list")
            return []
        objects: list[Located | Foreign] = []
        for index, child in enumerate(items.value):
            below = f"{place}[{index}]"
            if item is None:
                objects += self.document(child, below)
            elif self._is_item(child, item, below):
                objects += self._object(child, shape(item), below)
        return objects

    def _is_item(self, node: yaml.Node, item: type[Object], path: str) -> bool:
        """Whether a member of a typed list says nothing else about its kind than the list does."""
        good = True
        entries = node.value if isinstance(node, yaml.MappingNode) else []
        expected = dict(zip(("apiVersion", "kind"), next(k for k, v in KINDS.items() if v is item), strict=True))
        for key, child in entries:
            wanted = expected.get(key.value) if isinstance(key, yaml.ScalarNode) else None
            if wanted is not None and isinstance(child, yaml.ScalarNode) and child.value not in ("", wanted):
                message = f'"{child.value}" in a list of {expected["apiVersion"]} {expected["kind"]}'
                hint = "use apiVersion: v1, kind: List for a mixed list"
                self._walker.report(child, join(path, key.value), "bad-value", message, hint=hint)
                good = False
        return good

    def _foreign(self, node: yaml.Node, version: str, kind: str, path: str) -> list[Located | Foreign]:
        misspelt = hints.misspelt(version, kind)
        self._walker.report(
            node,
            path,
            "unknown-kind",
            f"{version} {kind} is not known" if misspelt else f"{version} {kind} is not read by draht",
            hint=hints.unknown_kind(version, kind),
            warning=not misspelt,
        )
        if misspelt:
            return []
        value = self._walker.untyped(node, path)
        line, column = self._walker.position(node)
        return [] if value is BAD else [Foreign(version, kind, value, self._source, line, column, path)]


def _step(node: yaml.Node, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Where a field or item of a node is marked, and its value."""
    if isinstance(node, yaml.SequenceNode):
        if not name.isdecimal() or int(name) >= len(node.value):
            return None
        return node.value[int(name)], node.value[int(name)]
    if isinstance(node, yaml.MappingNode):
        return next(((key, child) for key, child in node.value if key.value == name), None)
    return None
