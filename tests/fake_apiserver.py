"""An API server on loopback that keeps its word about versions, and breaks everything else when told to.

It stores objects, counts resourceVersions, answers lists in pages of one moment and watches from any moment that isn't
compacted. Only what a client can't do without is there: no schema, no selectors, no admission. `Fault` values say what
goes wrong with the next requests they fit.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import ssl
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import fake_http
from fake_http import Request

__all__ = ["FakeApiServer", "Fault", "Request", "slice_of"]

Object = dict[str, Any]
Key = tuple[str, str, str]
"""Plural, namespace, name."""

RESOURCES = {
    "resource.k8s.io": {
        "resourceslices": ("ResourceSlice", False),
        "resourceclaims": ("ResourceClaim", True),
        "resourceclaimtemplates": ("ResourceClaimTemplate", True),
        "deviceclasses": ("DeviceClass", False),
        "devicetaintrules": ("DeviceTaintRule", False),
    },
    "": {"pods": ("Pod", True), "nodes": ("Node", False), "namespaces": ("Namespace", False)},
    "draht.dev": {"queues": ("Queue", True)},
}


@dataclass
class Fault:
    """Something that goes wrong.

    Args:
        what: A name of `FakeApiServer.FAULTS`.
        verb: With which requests.
        times: With how many of them.
        code: For ``status``.
        headers: Sent with the answer.
        body: Sent instead of the answer's.
        after: For streams: how many events are sent before.
    """

    what: str
    verb: str = "list"
    times: int = 1
    code: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    after: int = 0


@dataclass(frozen=True)
class _Place:
    group: str
    version: str
    plural: str
    namespace: str
    name: str | None
    subresource: str


def _place(path: str) -> _Place | None:
    steps = [unquote(step) for step in path.strip("/").split("/")]
    if steps[:1] == ["api"] and len(steps) > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[:1] == ["apis"] and len(steps) > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return _Place(
        group, version, rest[0], namespace, rest[1] if len(rest) > 1 else None, rest[2] if len(rest) > 2 else ""
    )


def _verb(request: Request) -> str:
    """As role-based access control calls it."""
    if request.method != "GET":
        return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]
    if request.query.get("watch") == "true":
        return "watch"
    place = _place(request.path)
    return "discover" if place is None else "list" if place.name is None else "get"


def slice_of(name: str, **labels: str) -> Object:
    """A small ResourceSlice."""
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"driver": "gpu.example.com", "pool": {"name": name, "resourceSliceCount": 1}, "allNodes": True},
    }


class _CutError(Exception):
    """Ends a connection without a word."""


class FakeApiServer:
    """See the module.

    Args:
        versions: Of resource.k8s.io that it serves, with the plurals of each; all by default.
        tls: For https.
        authorize: Answers whether a request may go on (401 otherwise).
    """

    def __init__(
        self,
        versions: Mapping[str, tuple[str, ...]] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        authorize: Callable[[Request], bool] = lambda _: True,
    ) -> None:
        self.versions = dict(versions or {"v1": tuple(RESOURCES["resource.k8s.io"])})
        self.objects: dict[Key, Object] = {}
        self.version = 100
        self.compacted = 0
        self.history: list[tuple[int, str, str, Object]] = []
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.authorize = authorize
        self.refusing = False
        self._tls = tls
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._changed = asyncio.Condition()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """What clients connect to."""
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}"

    async def __aenter__(self) -> FakeApiServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self._tls, limit=1 << 24)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop as a killed process does: everything is cut."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    # what others do

    def put(self, plural: str, obj: Object) -> Object:
        """Create or change an object."""
        group = next(group for group, plurals in RESOURCES.items() if plural in plurals)
        namespaced = RESOURCES[group][plural][1]
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "default") if namespaced else ""
        key = (plural, namespace, metadata["name"])
        before = self.objects.get(key)
        self.version += 1
        stored = copy.deepcopy(obj)
        stored["metadata"] |= {
            "uid": before["metadata"]["uid"] if before else str(uuid.uuid4()),
            "resourceVersion": str(self.version),
        }
        if namespaced:
            stored["metadata"]["namespace"] = namespace
        self.objects[key] = stored
        self._tell("MODIFIED" if before else "ADDED", plural, stored)
        return stored

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        gone = copy.deepcopy(self.objects.pop((plural, namespace, name)))
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._tell("DELETED", plural, gone)

    def compact(self) -> None:
        """Forget what happened so far: older watches are refused with 410, and pages expire."""
        self.compacted = self.version
        self._pages.clear()

    def bookmark(self, plural: str) -> None:
        """Tell every watch how far it is."""
        empty = {"kind": "Bookmark", "metadata": {"resourceVersion": str(self.version)}}
        self._tell("BOOKMARK", plural, empty)

    def _tell(self, type_: str, plural: str, obj: Object) -> None:
        self.history.append((self.version, type_, plural, obj))
        task = asyncio.get_running_loop().create_task(self._wake())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # connections

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            return writer.transport.abort()
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while (request := await fake_http.read(reader)) is not None:
                self.requests.append(request)
                await self._answer(request, writer)
        except (_CutError, ConnectionError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError):
            pass
        except asyncio.CancelledError:
            pass  # the stream's own callback would complain
        finally:
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.transport.abort()
        return None

    def _fault(self, request: Request) -> Fault | None:
        for fault in self.faults:
            if fault.verb in {_verb(request), "any"}:
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                return fault
        return None

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        fault = self._fault(request)
        if fault is not None and _verb(request) != "watch":
            return await self._break(fault, request, writer)
        if fault is not None and fault.what in {"status", "close", "reset", "hang", "body"}:
            return await self._break(fault, request, writer)
        if not self.authorize(request):
            return await fake_http.send(writer, *fake_http.status(401, "Unauthorized", "Unauthorized"))
        if _verb(request) == "watch":
            return await self._watch(request, writer, fault)
        code, body = self._respond(request)
        return await fake_http.send(writer, code, body)

    async def _break(self, fault: Fault, request: Request, writer: asyncio.StreamWriter) -> None:
        match fault.what:
            case "status":
                body = fault.body or fake_http.status(fault.code, "", f"asked to answer {fault.code}")[1]
                await fake_http.send(writer, fault.code, body, fault.headers)
            case "body":
                await fake_http.send(writer, fault.code, fault.body, fault.headers)
            case "truncate":
                _, body = self._respond(request)
                writer.write(fake_http.head(200, {"Content-Length": str(len(body))}) + body[: len(body) // 2])
                await writer.drain()
                raise _CutError
            case "drip":
                _, body = self._respond(request)
                writer.write(fake_http.head(200, {"Content-Length": str(len(body))}))
                for byte in body:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.02)
            case "done-and-reset":
                self._respond(request)
                raise _CutError
            case "hang":
                await asyncio.sleep(3600)
            case "noise":
                writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
                await writer.drain()
                raise _CutError
            case _:
                raise _CutError

    # verbs

    def _respond(self, request: Request) -> tuple[int, bytes]:
        place = _place(request.path)
        if place is None:
            return self._discover(request.path)
        served = (
            place.plural in self.versions.get(place.version, ())
            if place.group == "resource.k8s.io"
            else place.plural in RESOURCES.get(place.group, {})
        )
        if not served:
            return fake_http.status(404, "NotFound", "the server could not find the requested resource")
        if place.name is None and request.method == "GET":
            return self._list(place, request.query)
        if place.name is None:
            return self._create(place, request)
        key = (place.plural, place.namespace, place.name)
        found = self.objects.get(key)
        if found is None:
            return fake_http.status(404, "NotFound", f'{place.plural}.{place.group} "{place.name}" not found')
        match request.method:
            case "PATCH" | "PUT":
                return self._change(place, found, request)
            case "DELETE":
                wanted = json.loads(request.body or b"{}").get("preconditions", {})
                if any(found["metadata"][name] != value for name, value in wanted.items()):
                    return fake_http.status(409, "Conflict", "the preconditions don't hold")
                self.remove(place.plural, place.name, place.namespace)
                return fake_http.status(200, "", "")
        return 200, fake_http.encoded(self._whole(place, found))

    def _discover(self, path: str) -> tuple[int, bytes]:
        if path == "/version":
            return 200, fake_http.encoded({"gitVersion": "v1.0.0-fake"})
        group, _, version = path.removeprefix("/apis/").partition("/")
        if group == "resource.k8s.io" and not version and self.versions:
            versions = [{"groupVersion": f"{group}/{one}", "version": one} for one in self.versions]
            return 200, fake_http.encoded({"kind": "APIGroup", "versions": versions, "preferredVersion": versions[0]})
        if group == "resource.k8s.io" and version in self.versions:
            names = [{"name": plural} for plural in self.versions[version]]
            return 200, fake_http.encoded({"kind": "APIResourceList", "resources": names})
        return fake_http.status(404, "NotFound", "the server could not find the requested resource")

    def _whole(self, place: _Place, obj: Object) -> Object:
        version = f"{place.group}/{place.version}" if place.group else place.version
        return {"apiVersion": version, "kind": RESOURCES[place.group][place.plural][0], **obj}

    def _list(self, place: _Place, query: dict[str, str]) -> tuple[int, bytes]:
        limit = int(query.get("limit", 0))
        token = query.get("continue", "")
        if token:
            if token not in self._pages:
                return fake_http.status(410, "Expired", "the provided continue parameter is too old")
            version, items = self._pages[token]
        else:
            version = self.version
            items = [
                copy.deepcopy(obj)
                for (plural, namespace, _), obj in sorted(self.objects.items())
                if plural == place.plural and place.namespace in {"", namespace}
            ]
        metadata: Object = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            following = str(uuid.uuid4())
            self._pages[following] = (version, items[limit:])
            items = items[:limit]
            metadata["continue"] = following
        kind = RESOURCES[place.group][place.plural][0]
        api_version = f"{place.group}/{place.version}" if place.group else place.version
        return 200, fake_http.encoded(
            {"kind": f"{kind}List", "apiVersion": api_version, "metadata": metadata, "items": items}
        )

    def _create(self, place: _Place, request: Request) -> tuple[int, bytes]:
        obj = json.loads(request.body)
        name = obj["metadata"]["name"]
        if (place.plural, place.namespace, name) in self.objects:
            return fake_http.status(409, "AlreadyExists", f'{place.plural} "{name}" already exists')
        if place.namespace:
            obj["metadata"]["namespace"] = place.namespace
        return 201, fake_http.encoded(self._whole(place, self.put(place.plural, obj)))

    def _change(self, place: _Place, found: Object, request: Request) -> tuple[int, bytes]:
        change = json.loads(request.body)
        if isinstance(change, list):
            return 200, fake_http.encoded(self._whole(place, found))
        wanted = change.get("metadata", {}).pop("resourceVersion", None)
        if wanted is not None and wanted != found["metadata"]["resourceVersion"]:
            return fake_http.status(409, "Conflict", "the object has been modified; please apply your changes")
        new = _merged(found, change) if request.method == "PATCH" else {**change, "metadata": found["metadata"]}
        return 200, fake_http.encoded(self._whole(place, self.put(place.plural, new)))

    async def _watch(self, request: Request, writer: asyncio.StreamWriter, fault: Fault | None) -> None:
        place = _place(request.path)
        assert place is not None
        after = int(request.query["resourceVersion"])
        if after < self.compacted:
            code, body = fake_http.status(410, "Expired", f"too old resource version: {after} ({self.compacted})")
            return await fake_http.send(writer, code, body)
        writer.write(fake_http.head(200, {"Transfer-Encoding": "chunked"}))
        await writer.drain()
        sent = 0
        position = 0
        seconds = float(request.query.get("timeoutSeconds", 3600))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    while position < len(self.history):
                        version, type_, plural, obj = self.history[position]
                        position += 1
                        if version <= after or plural != place.plural or place.namespace not in {"", _owner(obj)}:
                            continue
                        if fault is not None and sent >= fault.after:
                            await self._break_stream(fault, writer, type_, obj)
                        await fake_http.chunk(
                            writer, fake_http.encoded({"type": type_, "object": self._whole(place, obj)}) + b"\n"
                        )
                        sent += 1
                    if fault is not None and sent >= fault.after:
                        await self._break_stream(fault, writer, "MODIFIED", slice_of("nobody"))
                    async with self._changed:
                        if position == len(self.history):
                            await self._changed.wait()
        writer.write(b"0\r\n\r\n")
        return await writer.drain()

    async def _break_stream(self, fault: Fault, writer: asyncio.StreamWriter, type_: str, obj: Object) -> None:
        line = fake_http.encoded({"type": type_, "object": obj}) + b"\n"
        match fault.what:
            case "gone":
                status = json.loads(fake_http.status(410, "Expired", "too old resource version")[1])
                await fake_http.chunk(writer, fake_http.encoded({"type": "ERROR", "object": status}) + b"\n")
            case "error":
                status = json.loads(fake_http.status(500, "InternalError", "etcdserver: leader changed")[1])
                await fake_http.chunk(writer, fake_http.encoded({"type": "ERROR", "object": status}) + b"\n")
            case "garbage":
                await fake_http.chunk(writer, b"<html>not an event</html>\n")
            case "line":
                await fake_http.chunk(writer, fault.body)
            case "cut":  # inside an event
                await fake_http.chunk(writer, line[: len(line) // 2])
                raise _CutError
            case "half":  # as "cut", but the stream says that this is its end
                await fake_http.chunk(writer, line[: len(line) // 2])
            case "silent":
                await asyncio.sleep(3600)
            case "drip":
                for byte in line:
                    await fake_http.chunk(writer, bytes([byte]))
                    await asyncio.sleep(0.002)
            case "end":
                pass
            case _:
                raise _CutError
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        raise _CutError


def _owner(obj: Object) -> str:
    return str(obj["metadata"].get("namespace", ""))


def _merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), part)
    return result
