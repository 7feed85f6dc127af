"""The verbs of an API server on typed objects.

Owns get, list, create, patch, update, delete and watch for any `Kind`. It keeps nothing but which version the server
speaks of each (`draht.kube.discovery`); a store that follows a server is `draht.kube.reflector`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

import msgspec

from draht import __version__
from draht.kube.backoff import Backoff
from draht.kube.codec import Codec, Event, Page, Unreadable
from draht.kube.config import Config
from draht.kube.discovery import NO_SERVER, Discovery
from draht.kube.errors import AnswerError, GoneError, KubeError, NotFoundError
from draht.kube.kinds import Kind, identify
from draht.kube.versions import refuse_paths

if TYPE_CHECKING:
    from draht.kube.transport import Call, Transport

__all__ = ["Client", "FieldValidation", "Listed", "PatchType", "Propagation"]

T = TypeVar("T")

FieldValidation = Literal["Strict", "Warn", "Ignore"]
"""What the server does with fields it doesn't know."""
PatchType = Literal["merge", "json", "strategic", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]

_CONTENT: Mapping[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",  # JSON is YAML
}
_WATCH = 300
"""Seconds after which the server is asked to end a watch; half of it is added at random, as all clients do."""
_GRACE = 30.0


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """All objects of a kind at one moment.

    Attributes:
        items: Those that could be read.
        resource_version: The moment; a watch goes on from it.
        unreadable: Those that couldn't.
    """

    items: tuple[T, ...]
    resource_version: str
    unreadable: tuple[Unreadable, ...] = ()


class Client:
    """Talks to one API server; an async context manager.

    Args:
        config: Where and as whom.
        timeout: Seconds that one attempt of a request may take.
        backoff: Delays between the attempts of a request.
        clock: Seconds, for bounds that a server may break.
        sleep: Waits.
        source: Of the random part of delays; a seeded one makes them repeatable.
        user_agent: How it names itself to the server.
    """

    def __init__(
        self,
        config: Config,
        *,
        timeout: float = 60.0,
        backoff: Backoff = Backoff(),  # noqa: B008 - an immutable value
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        source: random.Random | None = None,
        user_agent: str = f"draht/{__version__}",
    ) -> None:
        self.config = config
        self.clock = clock
        self.sleep = sleep
        self.random = source or random.Random()  # noqa: S311 - spreads delays, guards nothing
        self._timeout = timeout
        self._backoff = backoff
        self._user_agent = user_agent
        self._connected: Transport | None = None
        self._codecs: dict[Kind[Any], Codec[Any]] = {}

    async def __aenter__(self) -> Client:
        # aiohttp takes longer to load than a command without a cluster may take to start.
        try:
            from draht.kube.transport import Transport
        except ModuleNotFoundError as error:
            raise KubeError(
                f"talking to a cluster needs the package {error.name}", hint="pip install 'draht[cluster]'"
            ) from None
        self._connected = Transport(
            self.config,
            user_agent=self._user_agent,
            timeout=self._timeout,
            backoff=self._backoff,
            sleep=self.sleep,
            source=self.random,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connected is not None:
            await self._connected.close()
            self._connected = None

    @property
    def _transport(self) -> Transport:
        if self._connected is None:
            raise RuntimeError("the client isn't connected; use `async with`")
        return self._connected

    # reading

    async def get(self, kind: Kind[T], name: str, *, namespace: str | None = None) -> T:
        """One object.

        Args:
            kind: Its kind.
            name: Its name.
            namespace: Its namespace; the configuration's if None.

        Raises:
            NotFoundError: There is none of that name.
            KubeError: Anything else that went wrong.
        """
        codec = await self._codec(kind)
        return codec.object(await self._send("GET", codec, namespace=self._namespace(kind, namespace), name=name))

    async def list(
        self,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
    ) -> Listed[T]:
        """All objects at one moment, fetched in pages.

        Args:
            kind: The kind.
            namespace: None for all namespaces.
            label_selector: As kubectl's ``-l``.
            field_selector: As kubectl's ``--field-selector``.
            limit: Objects of one page; 0 for all in one answer.

        Raises:
            KubeError: It couldn't be done. A page that expired is no error: the list begins again, in one answer.
        """
        codec = await self._codec(kind)
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        try:
            return await self._pages(codec, namespace, query, limit)
        except GoneError:
            return await self._pages(codec, namespace, query, 0)

    async def _pages(self, codec: Codec[T], namespace: str | None, query: Mapping[str, str], limit: int) -> Listed[T]:
        items: list[T] = []
        unreadable: list[Unreadable] = []
        more = ""
        seen: set[str] = set()
        while True:
            asked = {**query, "limit": str(limit) if limit else "", "continue": more}
            body = await self._send("GET", codec, namespace=namespace, query=asked)
            page: Page[T] = codec.page(body)
            items += page.items
            unreadable += page.unreadable
            more = page.metadata.continue_
            if not page.metadata.resource_version:
                raise AnswerError("the list has no resourceVersion", where=codec.kind.plural, hint=NO_SERVER)
            if not more:
                return Listed(tuple(items), page.metadata.resource_version, tuple(unreadable))
            if more in seen:
                raise AnswerError("the list has no end: a page names itself as the next", where=codec.kind.plural)
            seen.add(more)

    async def watch(
        self,
        kind: Kind[T],
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = True,
        silence: float = 90.0,
    ) -> AsyncGenerator[Event[T], None]:
        """What happens after a moment, until the server ends the watch, which it does every few minutes.

        The first event is a bookmark of the moment itself: the server has begun to answer.

        Args:
            kind: The kind.
            resource_version: The moment, of a `Listed` or an `Event`.
            namespace: None for all namespaces.
            label_selector: As for `list`.
            field_selector: As for `list`.
            bookmarks: Whether the server tells now and then how far it is (about once a minute).
            silence: Seconds without a byte after which the connection is taken for dead.

        Raises:
            GoneError: The moment is too long ago; list again.
            KubeError: The connection failed, or the server did.
        """
        codec = await self._codec(kind)
        seconds = int(_WATCH * (1 + self.random.random() / 2))
        call = self._call(
            "GET",
            codec,
            namespace=namespace,
            query={
                "watch": "true",
                "resourceVersion": resource_version,
                "allowWatchBookmarks": "true" if bookmarks else "",
                "timeoutSeconds": str(seconds),
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
            },
        )
        try:
            async with (
                self._transport.lines(call, silence=silence, longest=seconds + _GRACE) as lines,
                aclosing(lines),
            ):
                yield Event("bookmark", None, ("", ""), resource_version)
                async for line in lines:
                    yield codec.event(line)
        except NotFoundError:
            self._codecs.pop(kind, None)
            raise

    # writing

    async def create(
        self,
        kind: Kind[T],
        obj: T | Mapping[str, Any],
        *,
        dry_run: bool = False,
        field_validation: FieldValidation = "Strict",
        field_manager: str = "draht",
    ) -> T:
        """Make an object; returns it as the server has it.

        Args:
            kind: Its kind.
            obj: The object; without a namespace it goes to the configuration's.
            dry_run: Do everything but store it.
            field_validation: What happens with unknown fields.
            field_manager: Who owns the fields.

        Raises:
            AlreadyExistsError: There is one of that name.
            InvalidError: It breaks rules.
            KubeError: Anything else that went wrong.
        """
        codec = await self._codec(kind)
        namespace = self._namespace(kind, identify(obj)[0] or None)
        query = _options(dry_run, field_manager, field_validation)
        body = codec.encode(obj)
        return codec.object(await self._send("POST", codec, namespace=namespace, query=query, body=body))

    async def update(
        self,
        kind: Kind[T],
        obj: T | Mapping[str, Any],
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: FieldValidation = "Strict",
        field_manager: str = "draht",
    ) -> T:
        """Replace an object as a whole, for objects that are draht's own; others are patched.

        Args:
            kind: Its kind.
            obj: The object; with a ``resourceVersion``, the one that is replaced must have it.
            subresource: ``status`` to replace that only.
            dry_run: Do everything but store it.
            field_validation: What happens with unknown fields.
            field_manager: Who owns the fields.

        Raises:
            ConflictError: Somebody else changed it.
            KubeError: Anything else that went wrong.
        """
        codec = await self._codec(kind)
        namespace, name, _, _ = identify(obj)
        query = _options(dry_run, field_manager, field_validation)
        body = await self._send(
            "PUT",
            codec,
            namespace=self._namespace(kind, namespace or None),
            name=name,
            subresource=subresource,
            query=query,
            body=codec.encode(obj),
        )
        return codec.object(body)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: T | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        namespace: str | None = None,
        subresource: str = "",
        type: PatchType = "merge",  # noqa: A002 - the word of the API for it
        resource_version: str | None = None,
        field_manager: str = "draht",
        field_validation: FieldValidation = "Strict",
        force: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Change parts of an object; returns it as the server has it then.

        Args:
            kind: Its kind.
            name: Its name.
            patch: What changes: a part of the object, or for ``json`` a list of operations.
            namespace: Its namespace; the configuration's if None.
            subresource: ``status`` and the like.
            type: How the patch is meant; ``apply`` is server-side apply.
            resource_version: The object must still have this version.
            field_manager: Who owns the fields.
            field_validation: What happens with unknown fields.
            force: Take fields of ``apply`` from other owners.
            dry_run: Do everything but store it.

        Raises:
            ConflictError: It has another version, or with ``apply`` a field belongs to somebody else.
            NotFoundError: There is none of that name.
            KubeError: Anything else that went wrong.
        """
        codec = await self._codec(kind)
        query = _options(dry_run, field_manager, field_validation)
        if type == "json":
            operations = [dict(operation) for operation in cast("Sequence[Mapping[str, Any]]", patch)]
            refuse_paths(kind, codec.version, operations)
            if resource_version is not None:
                # A failed "test" would be an invalid request; another version put in its place is a conflict.
                operations.insert(0, {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version})
            body = msgspec.json.encode(operations)
        else:
            part = cast("T | Mapping[str, Any]", patch)
            body = codec.encode_part(part, resource_version, applied=type == "apply")
        if type == "apply" and force:
            query["force"] = "true"
        answer = await self._send(
            "PATCH",
            codec,
            namespace=self._namespace(kind, namespace),
            name=name,
            subresource=subresource,
            query=query,
            body=body,
            content_type=_CONTENT[type],
        )
        return codec.object(answer)

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period: int | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> None:
        """Remove an object; with finalizers or a grace period it is only marked, and goes later.

        Args:
            kind: Its kind.
            name: Its name.
            namespace: Its namespace; the configuration's if None.
            uid: It must still be this one and not a later one of the same name.
            resource_version: It must still have this version.
            grace_period: Seconds for a pod to end; 0 doesn't wait.
            propagation: What happens with the objects it owns.
            dry_run: Do everything but remove it.

        Raises:
            NotFoundError: There is none of that name.
            ConflictError: It isn't the one that was meant.
            KubeError: Anything else that went wrong.
        """
        codec = await self._codec(kind)
        wanted = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions := {field: value for field, value in wanted.items() if value is not None}:
            options["preconditions"] = preconditions
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if dry_run:
            options["dryRun"] = ["All"]
        await self._send(
            "DELETE", codec, namespace=self._namespace(kind, namespace), name=name, body=msgspec.json.encode(options)
        )

    # about the server

    async def version(self) -> str:
        """The server's version, such as ``v1.37.2``."""
        return await Discovery(self._transport).version()

    async def served(self, group: str) -> tuple[str, ...]:
        """The versions of an API group that the server speaks, the preferred one first; none if it has no such."""
        return await Discovery(self._transport).served(group)

    async def can_i(
        self, verb: str, kind: Kind[Any], *, namespace: str | None = None, name: str = "", subresource: str = ""
    ) -> bool:
        """Whether who asks may do something, as the server's authorizers see it.

        Args:
            verb: ``get``, ``list``, ``watch``, ``create``, ``patch``, ``update``, ``delete``.
            kind: On which kind.
            namespace: In which namespace; None for all.
            name: On which object; empty for all.
            subresource: ``status`` and the like.
        """
        where = (namespace or "") if kind.namespaced else ""
        return await Discovery(self._transport).can_i(verb, kind, where, name, subresource)

    # one request

    async def _codec(self, kind: Kind[T]) -> Codec[T]:
        codec = self._codecs.get(kind)
        if codec is None:
            version = await Discovery(self._transport).version_of(kind)
            codec = self._codecs[kind] = Codec(kind, version)
        return codec

    def _namespace(self, kind: Kind[Any], given: str | None) -> str | None:
        return (given or self.config.namespace) if kind.namespaced else None

    def _call(
        self,
        method: str,
        codec: Codec[Any],
        *,
        namespace: str | None,
        name: str | None = None,
        subresource: str = "",
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Call:
        from draht.kube.transport import Call  # loads aiohttp

        kind = codec.kind
        if name in {"", ".", ".."}:  # these would be paths of something else
            raise KubeError(f'"{name}" is no name', where=kind.describe(namespace), hint="name an object")
        path = kind.path(version=codec.version, namespace=namespace, name=name, subresource=subresource)
        return Call(method, path, query or {}, body, content_type, kind.describe(namespace, name))

    async def _send(self, method: str, codec: Codec[Any], **parts: Any) -> bytes:
        call = self._call(method, codec, **parts)
        try:
            return await self._transport.request(call)
        except NotFoundError:
            # A server that was replaced by an older or newer one says the same; the next request finds out.
            self._codecs.pop(codec.kind, None)
            raise


def _options(dry_run: bool, field_manager: str, field_validation: FieldValidation) -> dict[str, str]:
    return {
        "dryRun": "All" if dry_run else "",
        "fieldManager": field_manager,
        "fieldValidation": field_validation,
    }
