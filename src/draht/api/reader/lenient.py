"""Servers' objects: what is needed is taken, what is new is ignored, and one bad item never hides the others.

Bytes go straight into structs. Only where that fails, the item is walked value by value as Go's decoder sees it: null
and absent are zero values, and each value of a wrong type is reported with its path.

What is read here is never written back whole, because unknown fields are gone; writes are patches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from draht.api.errors import DrahtError
from draht.api.kinds import identity
from draht.api.meta import ListMeta, Object
from draht.api.reader.problem import Problem
from draht.api.reader.shape import ListShape, MapShape, ScalarShape, Shape, StructShape, shape
from draht.api.reader.strict import BAD, join
from draht.api.reader.text import EXPECTED
from draht.api.scalar import json_number

__all__ = ["ServerError", "ServerList", "read_list", "read_object"]

_T = TypeVar("_T", bound=Object)


class ServerError(DrahtError):
    """A server's answer can't be read.

    Attributes:
        problems: What is wrong with which field; empty where the bytes are no JSON.
    """

    def __init__(self, message: str, *, where: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message, where=where, hint="compare the object with `kubectl get -o json`")
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ServerList(Generic[_T]):
    """The items of a list answer that could be read, and what is wrong with the others."""

    metadata: ListMeta
    objects: tuple[_T, ...]
    problems: tuple[Problem, ...] = ()


def read_object(data: bytes | msgspec.Raw, struct: type[_T], *, source: str = "<server>") -> _T:
    """Read one object.

    Args:
        data: JSON.
        struct: Its type; ``apiVersion`` and ``kind`` must fit it where they are given.
        source: What errors call the answer.

    Raises:
        ServerError: The bytes are no JSON or a field has a wrong type.
    """
    try:
        direct: _T = _decoder(struct).decode(data)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _no_json(error, source) from None
    else:
        return direct
    problems: list[Problem] = []
    try:
        value = _Walk(source, problems).item(data, struct, "")
    except (msgspec.DecodeError, RecursionError) as error:
        raise _no_json(error, source) from None
    if value is BAD:
        raise ServerError(str(problems[0]).removeprefix(f"{source}: "), where=source, problems=tuple(problems))
    found: _T = value
    return found


def read_list(data: bytes, struct: type[_T], *, source: str = "<server>") -> ServerList[_T]:
    """Read a list answer; items that can't be read are reported and left out.

    Args:
        data: JSON of the kind's list, or a ``v1 List``.
        struct: The type of the items.
        source: What problems call the answer.

    Raises:
        ServerError: The bytes are no JSON, or no list.
    """
    try:
        listed = _list_decoder(struct).decode(data)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _no_json(error, source) from None
    else:
        _check_kind(listed.api_version, listed.kind, struct, source)
        return ServerList(listed.metadata, listed.items)
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except msgspec.ValidationError as error:
        raise ServerError(f"it is no list: {str(error)[:1].lower()}{str(error)[1:]}", where=source) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _no_json(error, source) from None
    _check_kind(envelope.api_version, envelope.kind, struct, source)
    objects: list[Any] = []
    problems: list[Problem] = []
    walk = _Walk(source, problems)
    for index, item in enumerate(envelope.items or ()):
        value = walk.item(item, struct, f"items[{index}]")
        if value is not BAD:
            objects.append(value)
    metadata = walk.struct(envelope.metadata or {}, shape(ListMeta), "metadata")
    return ServerList(ListMeta() if metadata is BAD else metadata, tuple(objects), tuple(problems))


class _Envelope(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] | None = None
    items: tuple[msgspec.Raw, ...] | None = None


@cache
def _decoder(struct: type[Object]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


@cache
def _list_decoder(struct: type[Object]) -> msgspec.json.Decoder[Any]:
    """A decoder of the kind's list that leaves ``kind`` to the caller: ``v1 List`` has the same form."""
    fields: list[tuple[str, Any, Any]] = [
        ("api_version", str, ""),
        ("kind", str, ""),
        ("metadata", ListMeta, ListMeta()),
        ("items", tuple[struct, ...], ()),  # type: ignore[valid-type]  # a run-time type
    ]
    return msgspec.json.Decoder(msgspec.defstruct("Listed", fields, frozen=True, rename="camel"))


def _check_kind(version: str, kind: str, struct: type[Object], source: str) -> None:
    """Refuse an answer that says it is something else; a refusal of the server must not look like an empty list."""
    wanted_version, wanted = identity(struct)
    if (version, kind) not in {(wanted_version, f"{wanted}List"), ("v1", "List"), ("", "")}:
        raise ServerError(f"expected {wanted_version} {wanted}List, got {version} {kind}", where=source)


class _Walk:
    """Builtin values to structs, as Go's JSON decoder would."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        self._source = source
        self._problems = problems

    def item(self, data: bytes | msgspec.Raw, struct: type[Object], path: str) -> Any:
        try:
            return _decoder(struct).decode(data)
        except msgspec.ValidationError:
            value = msgspec.json.decode(data)
        known = shape(struct)
        if isinstance(value, dict):
            for name, wanted in zip(("apiVersion", "kind"), identity(struct), strict=True):
                # The server leaves both out inside lists; another kind than asked for is another answer.
                if value.get(name) not in (None, "", wanted):
                    return self._wrong(join(path, name), f'"{wanted}"', value[name])
        return self.struct(value, known, path, skip=frozenset({"apiVersion", "kind"}))

    def struct(self, value: Any, known: StructShape, path: str, *, skip: frozenset[str] = frozenset()) -> Any:
        if not isinstance(value, dict):
            return self._wrong(path, "an object", value)
        values: dict[str, Any] = {}
        for name, field in known.fields.items():
            if name in skip:
                continue
            given = value.get(name)
            if given is not None:
                values[field.name] = self.value(given, field.shape, join(path, name))
            elif field.required:
                values[field.name] = self.zero(field.shape, join(path, name))
        return BAD if any(part is BAD for part in values.values()) else known.struct(**values)

    def zero(self, known: Shape, path: str) -> Any:
        match known:
            case StructShape():
                return self.struct({}, known, path)
            case ListShape():
                return ()
            case MapShape():
                return {}
            case ScalarShape(kind="bool"):
                return False
            case ScalarShape(kind="int" | "int-or-string"):
                return 0
            case ScalarShape(kind="quantity"):
                return "0"
            case ScalarShape():
                return ""
            case _:
                return None

    def value(self, value: Any, known: Shape, path: str) -> Any:
        match known:
            case ScalarShape():
                return self._scalar(value, known, path)
            case StructShape():
                return self.struct(value, known, path)
            case ListShape(item=item):
                if not isinstance(value, list):
                    return self._wrong(path, "a list", value)
                items = tuple(
                    self.zero(item, f"{path}[{index}]") if part is None else self.value(part, item, f"{path}[{index}]")
                    for index, part in enumerate(value)
                )
                return BAD if any(part is BAD for part in items) else items
            case MapShape(value=below):
                if not isinstance(value, dict):
                    return self._wrong(path, "an object", value)
                parts = {
                    name: self.zero(below, f"{path}[{name}]")
                    if part is None
                    else self.value(part, below, f"{path}[{name}]")
                    for name, part in value.items()
                }
                return BAD if any(part is BAD for part in parts.values()) else parts
            case _:
                return value

    def _scalar(self, value: Any, known: ScalarShape, path: str) -> Any:
        match known.kind:
            case "bool":
                good = isinstance(value, bool)
            case "int" | "int-or-string":
                number = isinstance(value, int) and not isinstance(value, bool)
                good = number and known.minimum <= value <= known.maximum
                good = good or (known.kind == "int-or-string" and isinstance(value, str))
            case "quantity":
                if isinstance(value, float):
                    return json_number(value)
                good = isinstance(value, (str, int)) and not isinstance(value, bool)
            case _:
                good = isinstance(value, str)
        return value if good else self._wrong(path, EXPECTED[known.kind], value)

    def _wrong(self, path: str, expected: str, value: object) -> Any:
        text = msgspec.json.encode(value).decode()
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        self._problems.append(Problem("wrong-type", f"expected {expected}, got {shown}", self._source, path=path))
        return BAD


def _no_json(error: Exception, source: str) -> ServerError:
    text = "nested too deep" if isinstance(error, RecursionError) else str(error)
    return ServerError(f"not readable as JSON: {text[:1].lower()}{text[1:]}", where=source)
