"""A spec file's text to a `Spec`, accepting exactly what the Go library accepts.

Owns the step from nodes to structs, field by field as ``go.yaml.in/yaml/v3`` with known fields does: JSON and YAML go
the same way, keys must be spelled right and appear once, null leaves a field alone, ``<<`` merges, only the first
document counts. Text without any surprise takes a short cut in ``quick``; what that refuses is decoded here.

A null inside a list of objects is refused at once; the Go library reads it and then refuses it or crashes on it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec

from draht.api.yaml import YamlError
from draht.cdi import quick
from draht.cdi.errors import SpecError
from draht.cdi.nodes import Node, compose
from draht.cdi.scalars import ScalarError, as_bool, as_integer, as_text, is_null, key_is_text
from draht.cdi.spec import Int64, Spec, UInt32

__all__ = ["decode", "decode_nodes", "decode_tree"]

_T = TypeVar("_T")
_Reader = Callable[["_Decoder", Node], Any]
"""Turns a node into a field's value, or `_NOTHING` where the field keeps its default."""

_NOTHING: Any = object()


def decode(data: bytes, *, source: str = "<spec>") -> Spec:
    """The spec in a file's text, JSON or YAML, not yet validated.

    Args:
        data: The file's bytes.
        source: What to call it in errors.

    Raises:
        SpecError: It isn't YAML or JSON, has no document, or a field is unknown, repeated or of a wrong type. The
            error's `where` is ``source:line:column``.
    """
    spec = quick.decode(data)
    return spec if spec is not None else decode_nodes(data, source=source)


def decode_nodes(data: bytes, *, source: str = "<spec>") -> Spec:
    """As `decode`, without the short cut; the two differ in speed only."""
    try:
        root = compose(data, source=source)
    except YamlError as error:
        raise SpecError(error.message, where=error.where, hint=error.hint) from None
    return decode_tree(root, source=source)


def decode_tree(root: Node | None, *, source: str = "<spec>") -> Spec:
    """The second half of `decode_nodes`: from the nodes of a text to the spec."""
    if root is None or is_null(root.resolved()):
        raise SpecError("there is no spec in it", where=source, hint="a spec has cdiVersion, kind and devices")
    try:
        spec = _Decoder(source).read(_struct(Spec), root)
    except RecursionError:
        raise SpecError("aliases lead through too many levels", where=source, hint="write the aliases out") from None
    assert isinstance(spec, Spec)
    return spec


class _Decoder:
    """The state of one decoding: how much was read through aliases, and which ones are being followed."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.reads = 0
        self.alias_reads = 0
        self.following: set[Node] = set()
        self.merged: set[str] | None = None

    def fail(self, node: Node, problem: str, hint: str | None = None) -> NoReturn:
        raise SpecError(problem, where=f"{self.source}:{node.line}:{node.column}", hint=hint)

    def read(self, reader: _Reader, node: Node) -> Any:
        """Read a node, following an alias; counts as the Go library does to find alias bombs."""
        self.count(node)
        if node.target is None:
            return reader(self, node)
        if node in self.following:
            self.fail(node, f"the alias *{node.text} stands for a value that contains it")
        self.following.add(node)
        try:
            return self.read(reader, node.target)
        finally:
            self.following.discard(node)

    def count(self, node: Node) -> None:
        self.reads += 1
        if self.following:
            self.alias_reads += 1
            if (
                self.alias_reads > 100
                and self.reads > 1000
                and self.alias_reads / self.reads > _alias_share(self.reads)
            ):
                self.fail(node, "too much of the text is aliases", "write the aliases out")


def _alias_share(reads: int) -> float:
    """The part of all reads that may come through aliases; yaml.v3's `allowedAliasRatio`."""
    low, high = 400_000, 4_000_000
    if reads <= low:
        return 0.99
    return 0.10 if reads >= high else 0.99 - 0.89 * (reads - low) / (high - low)


def _scalar(convert: Callable[[Node], Any], wanted: str) -> _Reader:
    def read(decoder: _Decoder, node: Node) -> Any:
        if node.kind != "scalar":
            decoder.fail(node, f"a {wanted} is wanted here, not a {_WORDS[node.kind]}")
        try:
            value = convert(node)
        except ScalarError as error:
            decoder.fail(node, f"{_shown(node.text)} is {error}; a {wanted} is wanted here")
        return _NOTHING if value is None else value

    return read


def _list(item: _Reader, *, keeps_null: bool) -> _Reader:
    def read(decoder: _Decoder, node: Node) -> Any:
        if node.kind != "sequence":
            return _nothing_if_null(decoder, node, "list")
        values = []
        for child in node.children:
            if keeps_null and is_null(child.resolved()) and child.resolved().kind == "scalar":
                decoder.fail(child, "an item of this list is null", "remove it, or write what it should be")
            value = decoder.read(item, child)
            if value is not _NOTHING:
                values.append(value)
        return tuple(values)

    return read


def _struct(type_: type[Any], *, pointer: bool = False) -> _Reader:
    def read(decoder: _Decoder, node: Node) -> Any:
        # The Go library doesn't look behind a pointer for what is tagged null, so it finds no object there.
        if node.kind != "mapping" or (pointer and is_null(node)):
            return _nothing_if_null(decoder, node, "object")
        fields: dict[str, Any] = {}
        _read_fields(decoder, node, type_.__name__, _readers(type_), fields)
        return type_(**fields)

    return read


def _text_map(decoder: _Decoder, node: Node) -> Any:
    if node.kind != "mapping":
        return _nothing_if_null(decoder, node, "object")
    values: dict[str, str] = {}
    _read_texts(decoder, node, values, new=True)
    return values


def _nothing_if_null(decoder: _Decoder, node: Node, wanted: str) -> Any:
    """`_NOTHING` for a null where a list or object is wanted; anything else is refused."""
    try:
        if node.kind != "scalar" or not is_null(node) or as_text(node) is not None:
            article = "an" if wanted == "object" else "a"
            decoder.fail(node, f"{article} {wanted} is wanted here, not a {_WORDS[node.kind]}")
    except ScalarError as error:
        decoder.fail(node, f"{_shown(node.text)} is {error}")
    return _NOTHING


def _read_fields(
    decoder: _Decoder,
    node: Node,
    type_name: str,
    readers: Mapping[str, tuple[str, _Reader]],
    fields: dict[str, Any],
) -> None:
    """Read a mapping, and what it merges, into `fields`."""
    seen: set[str] = set()

    def take(name: str, key: Node, value: Node) -> None:
        if name not in readers:
            decoder.fail(key, f"there is no field {_shown(name)} in a {type_name}", _spelling(name, readers))
        if name in seen:
            decoder.fail(key, f"the field {name} is set twice")
        seen.add(name)
        attribute, reader = readers[name]
        read = decoder.read(reader, value)
        if read is not _NOTHING:
            fields[attribute] = read

    _each_entry(decoder, node, take, lambda part: _read_fields(decoder, part, type_name, readers, fields))


def _read_texts(decoder: _Decoder, node: Node, values: dict[str, str], *, new: bool) -> None:
    """Read a mapping of texts, and what it merges, into `values`."""

    def take(name: str, _: Node, value: Node) -> None:
        read = decoder.read(_TEXT, value)
        if read is not _NOTHING:
            values[name] = read
        elif new or name not in values:
            values[name] = ""

    _each_entry(decoder, node, take, lambda part: _read_texts(decoder, part, values, new=False))


def _each_entry(
    decoder: _Decoder, node: Node, take: Callable[[str, Node, Node], None], read_merged: Callable[[Node], None]
) -> None:
    """Give each entry of a mapping that counts to `take`, with its name; then what it merges to `read_merged`."""
    _refuse_repeated_keys(decoder, node)
    merged, decoder.merged = decoder.merged, None
    merge: Node | None = None
    for key, value in zip(node.children[::2], node.children[1::2], strict=True):
        if _is_merge(key):
            merge = value
            continue
        name = decoder.read(_TEXT, key)
        if name is _NOTHING:
            continue
        if merged is not None:
            if name in merged:
                continue
            merged.add(name)
        take(name, key, value)
    decoder.merged = merged
    if merge is not None:
        _merge(decoder, node, merge, read_merged)


def _merge(decoder: _Decoder, parent: Node, merge: Node, read: Callable[[Node], None]) -> None:
    """Merge one mapping, or each of a list of them, where the keys read so far win."""
    before = decoder.merged
    if before is None:
        decoder.merged = set()
        for key in parent.children[::2]:
            name = decoder.read(_key, key)
            if name is not None:
                decoder.merged.add(name)
    parts = merge.children if merge.kind == "sequence" else [merge]
    for part in parts:
        if part.resolved().kind != "mapping":
            decoder.fail(part, "only an object, or a list of objects, can be merged with <<")
        decoder.read(lambda _, mapping: read(mapping), part)
    decoder.merged = before


def _key(decoder: _Decoder, node: Node) -> str | None:
    if node.kind != "scalar":
        decoder.fail(node, "a key that is not a text")
    try:
        return key_is_text(node)
    except ScalarError as error:
        decoder.fail(node, f"{_shown(node.text)} is {error}")


def _is_merge(key: Node) -> bool:
    return key.kind == "scalar" and key.text == "<<" and (key.tag == "!!merge" or (not key.tag and not key.quoted))


def _refuse_repeated_keys(decoder: _Decoder, node: Node) -> None:
    """Keys are compared as they are written: an alias differs from the text it stands for."""
    seen: dict[tuple[str, str], Node] = {}
    for key in node.children[::2]:
        first = seen.setdefault((key.kind, key.text), key)
        if first is not key:
            decoder.fail(key, f"the key {_shown(key.text)} is already there in line {first.line}", "keep one of them")


def _spelling(name: str, readers: Mapping[str, Any]) -> str | None:
    for known in readers:
        if known.lower() == name.lower():
            return f"it is spelled {known}"
    return f"it has {', '.join(readers)}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


_WORDS: Mapping[Literal["scalar", "mapping", "sequence", "alias"], str] = {
    "scalar": "single value",
    "mapping": "group of fields",
    "sequence": "list",
    "alias": "reference",
}

_TEXT = _scalar(as_text, "text")
_BOOL = _scalar(as_bool, "truth value")
_INT64 = _scalar(lambda node: as_integer(node, 64), "whole number")
_UINT32 = _scalar(lambda node: as_integer(node, 32), "whole number")

_READERS: dict[type[Any], dict[str, tuple[str, _Reader]]] = {}


def _readers(type_: type[Any]) -> Mapping[str, tuple[str, _Reader]]:
    """Field name in the file → attribute of the struct and how it is read, from the struct's own types."""
    if type_ not in _READERS:
        _READERS[type_] = {
            field.encode_name: (field.name, _reader(field.type)) for field in msgspec.structs.fields(type_)
        }
    return _READERS[type_]


def _reader(type_: Any, *, pointer: bool = False) -> _Reader:
    simple: dict[Any, _Reader] = {str: _TEXT, bool: _BOOL, Int64: _INT64, UInt32: _UINT32, dict[str, str]: _text_map}
    if type_ in simple:
        return simple[type_]
    if get_origin(type_) in {Union, types.UnionType}:
        (inner,) = (part for part in get_args(type_) if part is not types.NoneType)
        return _reader(inner, pointer=True)
    if get_origin(type_) is tuple:
        item = get_args(type_)[0]
        # Only `devices` holds objects; the other lists of objects hold pointers to them.
        is_pointer = isinstance(item, type) and issubclass(item, msgspec.Struct) and item.__name__ != "Device"
        return _list(_reader(item, pointer=is_pointer), keeps_null=is_pointer)
    return _struct(type_, pointer=pointer)
