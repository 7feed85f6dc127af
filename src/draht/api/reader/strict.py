"""People's objects: a walk over YAML nodes along the shape of a struct that reports everything at once.

It accepts what the API server accepts with strict field validation after kubectl has turned YAML into JSON, with five
differences on purpose: a null as a list's item or as an amount and a float as a key are refused, fields that the API
requires must be there, duplicates are refused inside drivers' parameters too, and an explicit field wins over a merged
one (``<<``) wherever it stands.
"""

from __future__ import annotations

from typing import Any

from draht.api import scalar, yaml
from draht.api.reader import hint as hints
from draht.api.reader.problem import Code, Problem
from draht.api.reader.shape import ListShape, MapShape, ScalarShape, Shape, StructShape, UntypedShape
from draht.api.reader.text import EXPECTED, is_quantity, time_problem
from draht.api.reader.written import Piece

__all__ = ["BAD", "MAX_PROBLEMS", "Bad", "Entry", "Walker", "join"]

MAX_PROBLEMS = 500
"""Most problems kept of one text; nobody fixes more at once, and a hostile file has a million."""

_SHOWN = 60
"""How many characters of a value a message repeats."""


class Bad:
    """What a value that has a problem becomes."""


BAD = Bad()

Entry = tuple[str, yaml.Node, yaml.Node]
"""Name, key node and value node of one entry of a mapping."""


def join(path: str, name: str) -> str:
    """The path of a field below a path."""
    return f"{path}.{name}" if path else name


def _below(path: str, name: str, *, keyed: bool) -> str:
    return f"{path}[{name}]" if keyed else join(path, name)


class Walker:
    """Turns nodes into values and collects the problems met on the way.

    Attributes:
        problems: In the order they were met; at most `MAX_PROBLEMS`.
        dropped: How many more there were.
        piece: The part of the source that the nodes were made from.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self.piece: Piece | None = None
        self.problems: list[Problem] = []
        self.dropped = 0

    def report(
        self,
        node: yaml.Node,
        path: str,
        code: Code,
        message: str,
        *,
        hint: str | None = None,
        warning: bool = False,
    ) -> Bad:
        """Record a problem at a node."""
        line, column = self.position(node)
        self.add(Problem(code, message, self._source, line, column, path, hint, warning))
        return BAD

    def add(self, problem: Problem) -> None:
        """Record a problem."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
        else:
            self.dropped += 1

    def position(self, node: yaml.Node) -> tuple[int, int]:
        """Line and column of a node in the source, counted from 1."""
        if self.piece is not None:
            return self.piece.place(node)
        return node.start_mark.line + 1, node.start_mark.column + 1

    def value(self, node: yaml.Node, shape: Shape, path: str) -> Any:
        """The value of a node, or `BAD`."""
        match shape:
            case ScalarShape():
                return self._scalar(node, shape, path)
            case StructShape():
                return self.struct(node, shape, path)
            case ListShape():
                return self._list(node, shape, path)
            case MapShape():
                return self._map(node, shape, path)
            case UntypedShape():
                return self.untyped(node, path)

    def struct(self, node: yaml.Node, shape: StructShape, path: str, *, skip: frozenset[str] = frozenset()) -> Any:
        """A struct from a mapping node, or `BAD`; fields named in `skip` are left to their defaults."""
        if not isinstance(node, yaml.MappingNode):
            return self.mismatch(node, path, "an object with fields")
        entries, good = self.entries(node, path)
        values: dict[str, Any] = {}
        for name, key, child in entries:
            if name in skip:
                continue
            field = shape.fields.get(name)
            if field is None:
                near = hints.unknown_field(shape, name) if len(self.problems) < MAX_PROBLEMS else None
                self.report(key, join(path, name), "unknown-field", f'unknown field "{_shown(name)}"', hint=near)
                good = False
            elif not _is_null(child):
                values[field.name] = self.value(child, field.shape, join(path, name))
        for name, field in shape.fields.items():
            if field.required and field.name not in values and name not in skip:
                self.report(node, join(path, name), "missing-field", f'"{name}" is required and missing')
                good = False
        if not good or any(value is BAD for value in values.values()):
            return BAD
        return shape.struct(**values)

    def entries(self, node: yaml.MappingNode, path: str, *, keyed: bool = False) -> tuple[list[Entry], bool]:
        """The entries of a mapping without duplicates, merged ones last; False if a key has a problem.

        Args:
            node: The mapping.
            path: Its place.
            keyed: Its keys are data, shown as ``path[key]``, and not fields, shown as ``path.field``.
        """
        entries: dict[str, Entry] = {}
        merged: list[yaml.Node] = []
        good = True
        for key, child in node.value:
            if key.tag == scalar.MERGE:
                merged.extend(child.value if isinstance(child, yaml.SequenceNode) else [child])
                continue
            name = self._key(key, path, keyed=keyed)
            if name is None:
                good = False
            elif name in entries:
                line, _ = self.position(entries[name][1])
                message = f'duplicate field "{_shown(name)}", first given on line {line}'
                self.report(key, _below(path, name, keyed=keyed), "duplicate-field", message)
                good = False
            else:
                entries[name] = (name, key, child)
        for part in merged:
            if not isinstance(part, yaml.MappingNode):
                self.mismatch(part, join(path, "<<"), "an object to merge")
                good = False
                continue
            below, below_good = self.entries(part, path, keyed=keyed)
            good = good and below_good
            for entry in below:
                entries.setdefault(entry[0], entry)
        return list(entries.values()), good

    def untyped(self, node: yaml.Node, path: str) -> Any:
        """What JSON would say, in plain Python values, or `BAD`."""
        if isinstance(node, yaml.SequenceNode):
            items = [self.untyped(child, f"{path}[{index}]") for index, child in enumerate(node.value)]
            return BAD if any(item is BAD for item in items) else items
        if isinstance(node, yaml.MappingNode):
            entries, good = self.entries(node, path)
            values = {name: self.untyped(child, join(path, name)) for name, _, child in entries}
            return values if good and not any(value is BAD for value in values.values()) else BAD
        return self.plain(node, path)

    def plain(self, node: yaml.Node, path: str) -> Any:
        """The value of a scalar node by its tag, or `BAD`."""
        if node.tag == scalar.STR:
            return node.value
        tag, value = scalar.resolve(node.value)
        if not node.tag.startswith(_STANDARD) or tag == scalar.MERGE:
            return node.value
        if node.tag == scalar.FLOAT and tag == scalar.INT:
            return float(str(value))
        if node.tag != tag:
            kind = node.tag.removeprefix(_STANDARD)
            return self.report(node, path, "bad-value", f'"{_shown(node.value)}" is no YAML !!{kind}')
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return self.report(node, path, "bad-value", f"{node.value} has no form in JSON")
        return value

    def mismatch(self, node: yaml.Node, path: str, expected: str, *, hint: str | None = None) -> Bad:
        """Report a node of another type than its field has."""
        return self.report(node, path, "wrong-type", f"expected {expected}, got {_described(node)}", hint=hint)

    def _key(self, key: yaml.Node, path: str, *, keyed: bool) -> str | None:
        """The name a key stands for in JSON; None if it can't stand for any."""
        if not isinstance(key, yaml.ScalarNode):
            self.report(key, path, "wrong-type", "a key must be a string, not a list or an object")
            return None
        if key.tag == scalar.STR:
            return str(key.value)
        value = self.plain(key, path)
        if value is BAD:
            return None
        quoted = f'put it in quotes: "{_shown(key.value)}"'
        if value is None or isinstance(value, float) or (isinstance(value, int) and value >= 2**63):
            # Go renders a float key with seven digits and refuses the other two; none of them was meant.
            self.report(key, path, "wrong-type", f"a key must be a string, got {_described(key)}", hint=quoted)
            return None
        name = str(value).lower() if isinstance(value, bool) else str(value)
        if name != key.value:
            message = f'the key {_shown(key.value)} is read as "{name}"'
            self.report(key, _below(path, name, keyed=keyed), "surprise", message, hint=quoted, warning=True)
        return name

    def _list(self, node: yaml.Node, shape: ListShape, path: str) -> Any:
        if not isinstance(node, yaml.SequenceNode):
            inner = isinstance(shape.item, StructShape) and isinstance(node, yaml.MappingNode)
            return self.mismatch(node, path, "a list", hint='start each item with "- "' if inner else None)
        items = tuple(self.value(child, shape.item, f"{path}[{index}]") for index, child in enumerate(node.value))
        return BAD if any(item is BAD for item in items) else items

    def _map(self, node: yaml.Node, shape: MapShape, path: str) -> Any:
        if not isinstance(node, yaml.MappingNode):
            return self.mismatch(node, path, "an object with names and values")
        entries, good = self.entries(node, path, keyed=True)
        values: dict[str, Any] = {}
        for name, key, child in entries:
            place = _below(path, name, keyed=True)
            if isinstance(shape.value, ScalarShape) and shape.value.kind == "quantity":
                meant = hints.resource_name(name)
                if meant is not None:
                    message = f'"{name}" is no resource that anybody offers'
                    self.report(key, place, "surprise", message, hint=f'did you mean "{meant}"?', warning=True)
            if _is_null(child) and shape.value == _TEXT:
                values[name] = ""  # as the server reads it
            else:
                values[name] = self.value(child, shape.value, place)
        return values if good and not any(value is BAD for value in values.values()) else BAD

    def _scalar(self, node: yaml.Node, shape: ScalarShape, path: str) -> Any:
        expected = EXPECTED[shape.kind]
        if not isinstance(node, yaml.ScalarNode):
            return self.mismatch(node, path, expected)
        value = self.plain(node, path)
        if value is BAD:
            return BAD
        match shape.kind:
            case "str" | "time" | "micro-time":
                if not isinstance(value, str):
                    hint = None if value is None else f'put it in quotes: "{_shown(node.value)}"'
                    return self.mismatch(node, path, expected, hint=hint)
                wrong = None if shape.kind == "str" else time_problem(value, micro=shape.kind == "micro-time")
            case "bool":
                if not isinstance(value, bool):
                    quoted = isinstance(value, str) and scalar.resolve(value)[0] == scalar.BOOL
                    return self.mismatch(node, path, expected, hint="remove the quotes" if quoted else None)
                wrong = None
            case "quantity":
                if isinstance(value, bool) or value is None:
                    return self.mismatch(node, path, expected)
                value = scalar.json_number(value) if isinstance(value, float) else value
                wrong = None if is_quantity(value) else ""
            case "int" | "int-or-string":
                if isinstance(value, float) and value.is_integer():
                    value = int(value)  # kubectl's JSON has no point for it either
                if isinstance(value, str) and shape.kind == "int-or-string":
                    return value
                if isinstance(value, bool) or not isinstance(value, int):
                    quoted = isinstance(value, str) and scalar.resolve(value)[0] == scalar.INT
                    return self.mismatch(node, path, expected, hint="remove the quotes" if quoted else None)
                within = shape.minimum <= value <= shape.maximum
                wrong = None if within else f"it isn't between {shape.minimum} and {shape.maximum}"
        if wrong is not None:
            hint = hints.unit(node.value) if shape.kind == "quantity" else None
            message = f'"{_shown(node.value)}" is not {expected}{": " * bool(wrong)}{wrong}'
            return self.report(node, path, "bad-value", message, hint=hint)
        return value


_STANDARD = "tag:yaml.org,2002:"
_TEXT = ScalarShape("str")
_NAMES = {scalar.BOOL: "the boolean", scalar.INT: "the integer", scalar.FLOAT: "the number", scalar.STR: "the string"}


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == scalar.NULL


def _described(node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if isinstance(node, yaml.MappingNode):
        return "an object"
    if node.tag == scalar.NULL:
        return "null"
    text = f'"{_shown(node.value)}"' if node.tag == scalar.STR else _shown(node.value)
    return f"{_NAMES.get(node.tag, 'the value')} {text}"


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
