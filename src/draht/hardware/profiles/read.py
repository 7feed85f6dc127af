"""YAML nodes to structs of the profile format, with every problem and its line.

Owns the strict walk over a document whose shape the structs in `draht.hardware.profiles.format` give: unknown keys,
keys given twice, missing keys and wrong types are all found in one go. Scalars are read from their source text by the
type of the field, so that ``0000:15:01.0`` needs no quotes although YAML 1.1 sees a number in base 60.

It isn't `draht.api.reader`, which reads Kubernetes objects with the API server's rules: there a number is no text, and
null is a value left out. It doesn't know the rules between values; that is `draht.hardware.profiles.check`.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from draht.api import yaml
from draht.hardware.errors import MOST_SHOWN
from draht.hardware.near import near
from draht.hardware.profiles.check import Fault

__all__ = ["locate", "read", "spell"]

_Value = TypeVar("_Value")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NULL = {"", "~", "null", "Null", "NULL"}
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def read(node: yaml.Node, type_: type[_Value]) -> tuple[_Value | None, list[Fault]]:
    """The value a node stands for, or None and everything that is wrong with it."""
    faults: list[Fault] = []
    plain = _walk(node, inspect.type_info(type_), (), faults)
    if faults:
        return None, faults
    return msgspec.convert(plain, type_), []


def locate(root: yaml.Node, fault: Fault, source: str) -> str:
    """``source:line:column`` of the deepest node on a fault's path that exists."""
    if fault.mark is not None:
        return f"{source}:{fault.mark[0]}:{fault.mark[1]}"
    node = root
    for step in fault.path:
        below = _child(node, step)
        if below is None:
            break
        node = below
    return yaml.where(node, source)


def spell(path: tuple[str | int, ...]) -> str:
    """A path as a person reads it: ``pcie[0].below[1].device``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.lstrip(".") or "the document"


def _child(node: yaml.Node, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                found: yaml.Node = value
                return found
    return None


def _walk(node: yaml.Node, kind: inspect.Type, path: tuple[str | int, ...], faults: list[Fault]) -> Any:
    match kind:
        case inspect.UnionType(types=types):
            if isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NULL:
                return None
            wanted = [option for option in types if not isinstance(option, inspect.NoneType)]
            return _walk(node, wanted[0], path, faults)
        case inspect.StructType():
            return _struct(node, kind, path, faults)
        case inspect.DictType(value_type=value_type):
            return {key: _walk(value, value_type, (*path, key), faults) for key, value in _items(node, path, faults)}
        case inspect.VarTupleType(item_type=item_type):
            if not isinstance(node, yaml.SequenceNode):
                faults.append(Fault(path, f"must be a list, not {_what(node)}"))
                return ()
            return [_walk(item, item_type, (*path, number), faults) for number, item in enumerate(node.value)]
        case _:
            return _scalar(node, kind, path, faults)


def _struct(
    node: yaml.Node, kind: inspect.StructType, path: tuple[str | int, ...], faults: list[Fault]
) -> dict[str, Any]:
    fields = {field.encode_name: field for field in kind.fields}
    plain: dict[str, Any] = {}
    before = len(faults)
    for key, value in _items(node, path, faults):
        if key in fields:
            plain[key] = _walk(value, fields[key].type, (*path, key), faults)
        else:
            meant = near(key, fields) if len(faults) < MOST_SHOWN else ""
            faults.append(Fault((*path, key), f'unknown field "{key}"{meant}'))
    missing = [name for name, field in fields.items() if field.required and name not in plain]
    if missing and (isinstance(node, yaml.MappingNode) or before == len(faults)):
        faults.append(Fault(path, f"misses {', '.join(missing)}"))
    return plain


def _items(node: yaml.Node, path: tuple[str | int, ...], faults: list[Fault]) -> list[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        faults.append(Fault(path, f"must be a mapping, not {_what(node)}"))
        return []
    items: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            faults.append(Fault(path, "a key must be a plain word"))
        elif key.value in items:
            mark = (key.start_mark.line + 1, key.start_mark.column + 1)
            faults.append(Fault((*path, key.value), f'field "{key.value}" is given twice', mark))
        else:
            items[key.value] = value
    return list(items.items())


def _scalar(node: yaml.Node, kind: inspect.Type, path: tuple[str | int, ...], faults: list[Fault]) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        faults.append(Fault(path, f"must be a single value, not {_what(node)}"))
        return None
    text: str = node.value
    match kind:
        case inspect.IntType():
            if not node.style and _INTEGER.fullmatch(text):
                return int(text)
            faults.append(Fault(path, f'must be an integer, not "{text}"'))
        case inspect.BoolType():
            if not node.style and text in _TRUTH:
                return _TRUTH[text]
            faults.append(Fault(path, f'must be true or false, not "{text}"'))
        case inspect.LiteralType(values=values):
            if text in values:
                return text
            choices = ", ".join(str(value) for value in values if value != "")
            faults.append(Fault(path, f'must be one of {choices}, not "{text}"'))
        case _:
            if not node.style and text in _NULL:
                faults.append(Fault(path, "must be a text, not nothing"))
            return text
    return None


def _what(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else f'"{node.value}"'
