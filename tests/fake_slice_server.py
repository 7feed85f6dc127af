"""`FakeApiServer` with what a publisher of slices needs besides: generated names, selectors, dry runs, feature gates.

Also the publisher's side of a test: a client, short delays, and waiting for what is to be seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Self, cast

import msgspec

from draht.api.resource import Device, ResourceSlice
from draht.driver.framework import Offer, Offered, Pool
from draht.kube import Backoff, Client, Config
from draht.node.slices.publisher import Delays, Publisher
from draht.validation import Gates, validate
from draht.validation.gates import drop
from fake_apiserver import FakeApiServer, Fault, Object, _place, _verb
from fake_http import Request, chunk, head

DRIVER = "gpu.example.com"
NODE = "node-1"
AT_ONCE = Delays(
    repair=Backoff(initial=0.01, maximum=0.02), retry=Backoff(initial=0.01, maximum=0.02), lag=60.0, doubt=600.0
)


class SliceServer(FakeApiServer):
    """A server with one node that treats ResourceSlices as kube-apiserver does.

    Args:
        gates: Its feature gates.
        release: Its version.
    """

    def __init__(self, gates: Gates | None = None, release: str = "v1.37.2") -> None:
        super().__init__()
        self.gates = gates or Gates()
        self.release = release
        self.names = 0
        self.dry_runs = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self) -> None:
        """Listen; the node is there."""
        await super().start()
        if ("nodes", "", NODE) not in self.objects:
            self.put("nodes", {"metadata": {"name": NODE}})

    def slices(self) -> list[ResourceSlice]:
        """The slices by name."""
        found = [obj for (plural, _, _), obj in sorted(self.objects.items()) if plural == "resourceslices"]
        return [msgspec.convert({**obj, **_KIND}, ResourceSlice) for obj in found]

    def names_of_devices(self) -> list[list[str]]:
        """The devices of each slice, by the slice's name."""
        return [[device.name for device in each.spec.devices] for each in self.slices()]

    def devices(self) -> list[str]:
        """All devices, sorted."""
        return sorted(name for names in self.names_of_devices() for name in names)

    def change(self, index: int, change: Callable[[Object], None]) -> None:
        """Somebody else changes a slice."""
        name = self.slices()[index].metadata.name
        obj = json.loads(json.dumps(self.objects["resourceslices", "", name]))
        change(obj)
        self.put("resourceslices", obj)

    def take(self, index: int) -> None:
        """Somebody else deletes a slice."""
        self.remove("resourceslices", self.slices()[index].metadata.name)

    def writes(self) -> list[str]:
        """The verbs of requests that write slices, dry runs left out."""
        return [
            _verb(request)
            for request in self.requests
            if "resourceslices" in request.path
            and _verb(request) in {"create", "update", "patch", "delete"}
            and "dryRun" not in request.query
        ]

    def watched(self) -> bool:
        """Whether somebody has begun to watch."""
        return any(_verb(request) == "watch" for request in self.requests)

    # what the base class leaves out

    def _discover(self, path: str) -> tuple[int, bytes]:
        if path == "/version":
            return 200, json.dumps({"gitVersion": self.release}).encode()
        return super()._discover(path)

    def _list(self, place: Any, query: dict[str, str]) -> tuple[int, bytes]:
        code, body = super()._list(place, {**query, "limit": "0"})
        answer = json.loads(body)
        answer["items"] = [item for item in answer["items"] if _selected(item, query)]
        return code, json.dumps(answer).encode()

    async def _watch(self, request: Request, writer: asyncio.StreamWriter, fault: Fault | None) -> None:
        place, after, position = _place(request.path), int(request.query["resourceVersion"]), 0
        assert place is not None
        writer.write(head(200, {"Transfer-Encoding": "chunked"}))
        await writer.drain()
        while True:
            for version, type_, plural, obj in self.history[position:]:
                position += 1
                if version > after and plural == place.plural and _selected(obj, request.query):
                    event = {"type": type_, "object": self._whole(place, obj)}
                    await chunk(writer, json.dumps(event).encode() + b"\n")
            async with self._changed:
                if position == len(self.history):
                    await self._changed.wait()

    def _create(self, place: Any, request: Any) -> tuple[int, bytes]:
        obj = json.loads(request.body)
        if place.plural != "resourceslices":
            return super()._create(place, request)
        self.names += 1
        obj["metadata"]["name"] = f"{obj['metadata'].pop('generateName')}{self.names:05}"
        judged = self._judged(obj)
        if isinstance(judged, tuple):
            return judged
        if request.query.get("dryRun"):
            self.dry_runs += 1
            judged["metadata"] |= {"uid": "dry", "resourceVersion": ""}
            return 201, json.dumps(self._whole(place, judged)).encode()
        return 201, json.dumps(self._whole(place, self.put(place.plural, judged))).encode()

    def _change(self, place: Any, found: Object, request: Any) -> tuple[int, bytes]:
        if place.plural == "resourceslices" and request.method == "PUT":
            obj = json.loads(request.body)
            judged = self._judged(obj)
            if isinstance(judged, tuple):
                return judged
            if judged["metadata"].get("resourceVersion") == found["metadata"]["resourceVersion"]:
                return 200, json.dumps(self._whole(place, self.put(place.plural, judged))).encode()
            # The base class keeps an object's metadata; what is left to it here is to refuse.
            request.body = json.dumps(judged).encode()
        return super()._change(place, found, request)

    def _judged(self, obj: Object) -> Object | tuple[int, bytes]:
        """The object as it is stored, or the refusal."""
        whole = msgspec.convert(obj, ResourceSlice)
        errors = validate(whole, gates=self.gates)
        if errors:
            causes = [{"reason": f"FieldValue{e.kind}", "message": e.text, "field": e.path} for e in errors]
            status = {
                "kind": "Status",
                "code": 422,
                "reason": "Invalid",
                "message": f'ResourceSlice "{whole.metadata.name}" is invalid',
                "details": {"causes": causes},
            }
            return 422, json.dumps(status).encode()
        kept, _ = drop(whole, self.gates)
        stored = cast("Object", msgspec.to_builtins(kept))
        for device in stored["spec"].get("devices", ()):
            for taint in device.get("taints", ()):
                taint.setdefault("timeAdded", "2026-01-01T00:00:00Z")
        return stored


def _selected(obj: Object, query: dict[str, str]) -> bool:
    wanted = (part.split("=", 1) for part in query.get("fieldSelector", "").split(",") if part)
    return all(obj["spec"].get(path.removeprefix("spec."), "") == value for path, value in wanted)


_KIND = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}


def offer(*names: str, groups: int = 64) -> Offer:
    """Devices by name; every so many of them are a group that stays together, and so fill a slice."""
    devices = [Offered(device=Device(name=name)) for name in names]
    parts = [tuple(devices[at : at + groups]) for at in range(0, len(devices), groups)]
    return Offer(pools=(Pool(groups=tuple(parts)),))


def many(count: int, prefix: str = "gpu") -> list[str]:
    """Names of devices."""
    return [f"{prefix}-{number}" for number in range(count)]


@contextlib.asynccontextmanager
async def publishing(server: FakeApiServer, delays: Delays = AT_ONCE, **options: Any) -> AsyncIterator[Publisher]:
    """A publisher that runs."""
    quick = Backoff(initial=0.01, maximum=0.05)
    async with Client(Config(server.address), backoff=quick, source=random.Random(1)) as client:
        publisher = Publisher(client, DRIVER, NODE, delays=delays, **options)
        running = asyncio.create_task(publisher.run())
        try:
            yield publisher
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Wait until something holds; a test that waits for ever fails by its time-out, with these words."""
    try:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - the other side of the test tells nobody
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"it never came to it: {what or condition}") from None


async def settled(publisher: Publisher) -> None:
    """Wait until the publisher has nothing to do."""
    await until(lambda: publisher.synced, f"settled; problems: {[str(each) for each in publisher.problems]}")


def run(test: Callable[[], Any]) -> None:
    """Run an asynchronous test."""
    asyncio.run(test())
