"""From a document to objects: which kind it is, lists taken apart, foreign kinds set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from draht.api import scalar, yaml
from draht.api.kinds import KINDS, LISTS, item_type
from draht.api.meta import Object, ObjectList
from draht.api.reader import hint as hints
from draht.api.reader.shape import StructShape, shape
from draht.api.reader.strict import BAD, Walker, join
from draht.api.reader.written import Piece, step_into, steps

__all__ = ["Foreign", "Located", "Reading"]


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
    _piece: Piece = field(repr=False, compare=False)
    _number: int = field(default=0, repr=False, compare=False)
    _prefix: str = field(default="", repr=False, compare=False)

    def where(self, path: str = "") -> str:
        """``file:line:column`` of a field of the object, or of the nearest thing around it that is written.

        Args:
            path: A field path from the object's root, as ``spec.devices[3].attributes[index].int``.
        """
        if not path:
            return f"{self.source}:{self.line}:{self.column}"
        node = key = self._piece.node(self._number, self.path.removeprefix(self._prefix))
        for name in steps(path):
            step = step_into(node, name)
            if step is None:
                break
            key, node = step
        line, column = self._piece.place(key)
        return f"{self.source}:{line}:{column}"


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


class Reading:
    """Reads the documents of one text.

    Args:
        walker: Is told what is wrong.
        source: What the text is called.
    """

    def __init__(self, walker: Walker, source: str) -> None:
        self._walker = walker
        self._source = source
        # What is being read: where it stands, which document of it, and the path of its root.
        self._at: tuple[Piece, int, str] | None = None

    def root(self, node: yaml.Node, piece: Piece, number: int = 0) -> list[Located | Foreign]:
        """The objects of a document, given where it stands."""
        if isinstance(node, yaml.ScalarNode) and node.tag == scalar.NULL:
            return []
        self._at = (piece, number, "")
        return self._document(node, "")

    def envelope(self, node: yaml.Node) -> tuple[bool, type[Object] | None]:
        """Whether an object is a list, judged without its items; and the type of its items if they have one."""
        if not isinstance(node, yaml.MappingNode):
            return False, None
        identity = self._identity(node, "")
        listing = LISTS.get(identity) if None not in identity else None  # type: ignore[arg-type]  # no None in it
        if listing is None and identity != _LIST:
            return False, None
        self._walker.struct(node, shape(listing or _AnyList), "", skip=_ITEMS)
        return True, None if listing is None else item_type(listing)

    def item(self, node: yaml.Node, piece: Piece, index: int, item: type[Object] | None) -> list[Located | Foreign]:
        """The objects of one item of a list that stands apart from it."""
        below = f"items[{index}]"
        self._at = (piece, 0, below)
        if item is None:
            return self._document(node, below)
        return self._object(node, shape(item), below) if self._is_item(node, item, below) else []

    def _document(self, node: yaml.Node, path: str) -> list[Located | Foreign]:
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
        assert self._at is not None
        return [Located(value, self._source, line, column, path, *self._at)]

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
                objects += self._document(child, below)
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
        if misspelt:
            message = f"{version} {kind} is not known"
            self._walker.report(node, path, "unknown-kind", message, hint=hints.unknown_kind(version, kind))
            return []
        value = self._walker.untyped(node, path)
        line, column = self._walker.position(node)
        return [] if value is BAD else [Foreign(version, kind, value, self._source, line, column, path)]
