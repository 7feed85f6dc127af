"""JSON of one kind in one version to objects and back.

Owns what stands between the bytes of an answer and the objects a caller sees: decoding straight into structs,
conversion from older versions, the frames of a watch, and the rule that an object which can't be read hides no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar, cast

import msgspec

from draht.api.conversion import Version, from_v1, to_v1
from draht.api.kinds import identity
from draht.api.meta import ListMeta, Object
from draht.api.reader import ServerError, read_list, read_object
from draht.kube.errors import AnswerError, status_error
from draht.kube.kinds import Kind, identify
from draht.kube.versions import downgrade, is_converted, wire_model

__all__ = ["Codec", "Event", "EventType", "Key", "Page", "Unreadable"]

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace (empty for kinds that lie in none) and name."""

EventType = Literal["added", "modified", "deleted", "bookmark"]

_TYPES: Final[Mapping[str, EventType]] = {
    "ADDED": "added",
    "MODIFIED": "modified",
    "DELETED": "deleted",
    "BOOKMARK": "bookmark",
}


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """What a watch tells.

    Attributes:
        type: What happened; a bookmark only says how far the watch has come.
        object: The object, after the change or as it last was; None for a bookmark and for what can't be read.
        key: Which object; empty for a bookmark.
        resource_version: From where a later watch goes on.
        problem: Why the object can't be read.
    """

    type: EventType
    object: T | None
    key: Key
    resource_version: str
    problem: ServerError | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item of a list that can't be read."""

    key: Key
    problem: ServerError


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One answer to a list request."""

    items: tuple[T, ...]
    metadata: ListMeta
    unreadable: tuple[Unreadable, ...] = ()


class _ObjectList(msgspec.Struct, frozen=True, rename="camel"):
    """A list whose items are taken as they are."""

    metadata: ListMeta = ListMeta()
    items: tuple[msgspec.Raw, ...] | None = ()
    api_version: str = ""
    kind: str = ""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _OnlyMeta(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _OnlyCode(msgspec.Struct, frozen=True):
    code: int = 500


class _RawFrame(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class Codec(Generic[T]):
    """Reads and writes one kind as a server speaks it.

    Args:
        kind: The kind.
        version: Of its group, as the server speaks it.
    """

    def __init__(self, kind: Kind[T], version: str) -> None:
        self.kind = kind
        self.version = version
        self._untyped = not kind.is_struct
        self._model = wire_model(kind, version)
        self._convert = is_converted(kind) and version != kind.version
        frame = msgspec.defstruct("Frame", [("type", str), ("object", self._model)])
        self._frames: msgspec.json.Decoder[Any] = msgspec.json.Decoder(frame)
        self._source = kind.plural
        self._api_version = f"{kind.group}/{version}" if kind.group else version

    def object(self, body: bytes | msgspec.Raw) -> T:
        """One object.

        Raises:
            AnswerError: It can't be read.
        """
        try:
            return self._object(body)
        except ServerError as error:
            raise AnswerError(error.message, where=error.where, hint=error.hint) from None

    def _object(self, body: bytes | msgspec.Raw) -> T:
        """As `object`, but raises the reader's error, which has the field's path."""
        if self._untyped:
            try:
                value = msgspec.json.decode(body, type=dict)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ServerError(f"not readable as an object: {error}", where=self._source) from None
            return cast("T", value)
        return self._v1(read_object(body, self._model, source=self._source))

    def _v1(self, value: Any) -> T:
        return cast("T", to_v1(value) if self._convert else value)

    def page(self, body: bytes) -> Page[T]:
        """A list.

        Raises:
            AnswerError: It is none.
        """
        try:
            if self._untyped:
                return self._untyped_page(body)
            listed = read_list(body, self._model, source=self._source)
        except ServerError as error:
            raise AnswerError(error.message, where=error.where, hint=error.hint) from None
        items = tuple(map(self._v1, listed.objects)) if self._convert else cast("tuple[T, ...]", listed.objects)
        unreadable = self._unreadable(body) if listed.problems else ()
        return Page(items, listed.metadata, unreadable)

    def _untyped_page(self, body: bytes) -> Page[T]:
        listed = self._raw_list(body)
        kind = listed.kind.removesuffix("List")
        # Items of a list don't repeat what they are; whole objects do.
        same = {"apiVersion": listed.api_version, "kind": kind}
        items = tuple(same | msgspec.json.decode(raw, type=dict) for raw in listed.items or ())
        return Page(cast("tuple[T, ...]", items), listed.metadata)

    def _raw_list(self, body: bytes) -> _ObjectList:
        try:
            listed = msgspec.json.decode(body, type=_ObjectList)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ServerError(f"not readable as a list: {error}", where=self._source) from None
        same = listed.api_version == self._api_version and listed.kind.endswith("List")
        if not same and (listed.api_version, listed.kind) != ("v1", "List"):
            raise ServerError(f"expected a list, got {listed.api_version} {listed.kind}", where=self._source)
        return listed

    def _unreadable(self, body: bytes) -> tuple[Unreadable, ...]:
        """Which items they were: problems know positions, callers need names."""
        found = []
        for raw in self._raw_list(body).items or ():
            try:
                self._object(raw)
            except ServerError as error:
                found.append(Unreadable(_meta(raw)[0], error))
        return tuple(found)

    def event(self, line: bytes) -> Event[T]:
        """One line of a watch.

        Raises:
            StatusError: The line is the server's error; `GoneError` if the version is too old.
            AnswerError: The line is no event.
        """
        try:
            frame = self._frames.decode(line)
        except (msgspec.ValidationError, RecursionError):
            return self._slow_event(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise AnswerError(f"an event isn't JSON: {str(error).lower()}", where=self._source) from None
        if frame.type not in _TYPES or frame.type == "BOOKMARK":
            return self._slow_event(line)
        namespace, name, _, version = identify(frame.object)
        if not version:
            return self._slow_event(line)
        return Event(_TYPES[frame.type], self._v1(frame.object), (namespace, name), version)

    def _slow_event(self, line: bytes) -> Event[T]:
        """Errors, bookmarks, and objects that don't decode at once."""
        try:
            frame = msgspec.json.decode(line, type=_RawFrame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AnswerError(f"a line of the watch is no event: {str(error).lower()}", where=self._source) from None
        if frame.type == "ERROR":
            raise status_error(_code(frame.object), bytes(frame.object), where=self._source)
        kind = _TYPES.get(frame.type)
        if kind is None:
            raise AnswerError(f'the watch tells "{frame.type[:40]}", which is no event', where=self._source)
        key, version = _meta(frame.object)
        if not version:
            raise AnswerError("an event has no resourceVersion", where=self._source)
        if kind == "bookmark":
            return Event(kind, None, ("", ""), version)
        try:
            return Event(kind, self._object(frame.object), key, version)
        except ServerError as error:
            return Event(kind, None, key, version, error)

    def encode(self, obj: T | Mapping[str, Any]) -> bytes:
        """An object for a request."""
        if isinstance(obj, Mapping):
            return msgspec.json.encode(self._part(obj))
        if self._convert:
            return msgspec.json.encode(from_v1(cast("Object", obj), cast("Version", self.version)))
        return msgspec.json.encode(obj)

    def encode_part(self, part: T | Mapping[str, Any], resource_version: str | None, *, applied: bool = False) -> bytes:
        """A merge patch or what is applied, perhaps bound to a version of the object.

        Args:
            part: The part; what is applied has to say its kind, which is added where draht knows it.
            resource_version: The version, or None.
            applied: Whether this is for server-side apply.
        """
        value: Mapping[str, Any]
        if not isinstance(part, Mapping):
            value = msgspec.json.decode(self.encode(part))
        elif applied and not self._untyped:
            api_version, kind = identity(self._model)
            value = {"apiVersion": api_version, "kind": kind, **self._part(part)}
        else:
            value = self._part(part)
        if resource_version is not None:
            metadata = {**(value.get("metadata") or {}), "resourceVersion": resource_version}
            value = {**value, "metadata": metadata}
        return msgspec.json.encode(value)

    def _part(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._convert:
            return part
        part = downgrade(self.kind, self.version, part)
        return {**part, "apiVersion": self._api_version} if "apiVersion" in part else part


def _meta(raw: bytes | msgspec.Raw) -> tuple[Key, str]:
    """Key and version of an object that perhaps can't be read otherwise."""
    try:
        metadata = msgspec.json.decode(raw, type=_OnlyMeta).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ("", ""), ""
    return (metadata.namespace, metadata.name), metadata.resource_version


def _code(raw: bytes | msgspec.Raw) -> int:
    try:
        return msgspec.json.decode(raw, type=_OnlyCode).code
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 500
