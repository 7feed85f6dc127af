"""Servers of any age: callers see v1, servers see what they speak."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from draht.api import resource
from draht.api.meta import ObjectMeta
from draht.kube import CLAIMS, SLICES, TAINT_RULES, AnswerError, Client, Config, Kind, KubeError
from draht.kube.discovery import Discovery
from draht.kube.transport import Call, Transport
from draht.kube.versions import GROUP
from fake_apiserver import FakeApiServer

ALL = ("resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses")
SLICE = resource.ResourceSlice(
    metadata=ObjectMeta(name="s"),
    spec=resource.ResourceSliceSpec(
        driver="gpu.example.com",
        pool=resource.ResourcePool(name="p", resource_slice_count=1),
        node_name="n",
        devices=(resource.Device(name="gpu-0", attributes={"model": resource.DeviceAttribute(string="H100")}),),
    ),
)
CLAIM = resource.ResourceClaim(
    metadata=ObjectMeta(name="c"),
    spec=resource.ResourceClaimSpec(
        devices=resource.DeviceClaim(
            requests=(
                resource.DeviceRequest(
                    name="r", exactly=resource.ExactDeviceRequest(device_class_name="gpu.example.com", count=2)
                ),
            )
        )
    ),
)


@asynccontextmanager
async def serving(versions: dict[str, tuple[str, ...]]) -> AsyncIterator[tuple[FakeApiServer, Client]]:
    """A server of some versions and a client of it."""
    async with FakeApiServer(versions) as server, Client(Config(server.address)) as client:
        yield server, client


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        ({"v1beta1": ALL}, "v1beta1"),
        ({"v1beta1": ALL, "v1beta2": ALL}, "v1beta2"),
        ({"v1beta1": ALL, "v1beta2": ALL, "v1": ALL}, "v1"),
        ({"v1": ("deviceclasses",), "v1beta1": ALL}, "v1beta1"),
        ({"v2": ALL, "v1": ALL}, "v1"),
    ],
)
def test_the_newest_version_that_has_the_kind_is_spoken(versions: dict[str, tuple[str, ...]], chosen: str) -> None:
    """A group may serve a version without serving this kind in it."""

    async def main() -> None:
        async with serving(versions) as (server, client):
            await client.list(SLICES)
            assert server.requests[-1].path == f"/apis/resource.k8s.io/{chosen}/resourceslices"

    asyncio.run(main())


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1"])
def test_objects_are_converted_on_the_way_in_and_out(version: str) -> None:
    """What is created, read, listed and watched is v1 here, and the server's version there."""

    async def main() -> None:
        async with serving({version: ALL}) as (server, client):
            pairs: list[tuple[Kind[Any], Any]] = [(SLICES, SLICE), (CLAIMS, CLAIM)]
            for kind, obj in pairs:
                start = str(server.version)
                made = await client.create(kind, obj)
                sent = json.loads(server.requests[-1].body)
                assert sent["apiVersion"] == f"resource.k8s.io/{version}"
                assert made.spec == obj.spec
                assert made.api_version == "resource.k8s.io/v1"
                assert await client.get(kind, obj.metadata.name) == made
                assert (await client.list(kind)).items == (made,)
                watch = client.watch(kind, resource_version=start)
                assert (await anext(watch)).type == "bookmark"
                event = await anext(watch)
                assert (event.type, event.object) == ("added", made)
                await watch.aclose()
            stored = server.objects["resourceslices", "", "s"]["spec"]["devices"][0]
            assert ("basic" in stored) == (version == "v1beta1")

    asyncio.run(main())


def test_partial_objects_are_rewritten_for_v1beta1() -> None:
    """A merge patch in v1's shape replaces devices and requests in the old one; other fields stay as they are."""
    devices = {
        "spec": {"devices": [{"name": "d", "attributes": {"a": {"int": 1}}}]},
        "metadata": {"labels": {"x": None}},
    }
    requests = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}], "config": []}}}

    async def main() -> None:
        async with serving({"v1beta1": ALL}) as (server, client):
            await client.create(SLICES, SLICE)
            await client.create(CLAIMS, CLAIM)
            made = await client.patch(SLICES, "s", devices)
            assert json.loads(server.requests[-1].body) == {
                "spec": {"devices": [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}}}]},
                "metadata": {"labels": {"x": None}},
            }
            assert made.spec.devices[0].attributes["a"].int_ == 1
            await client.patch(CLAIMS, "c", requests)
            assert json.loads(server.requests[-1].body) == {
                "spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "c"}], "config": []}}
            }
            await client.patch(CLAIMS, "c", {"status": {"reservedFor": []}}, subresource="status")
            assert json.loads(server.requests[-1].body) == {"status": {"reservedFor": []}}

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/spec/devices", "/spec/devices/0/attributes", "/spec", ""])
def test_a_json_patch_of_what_moved_is_refused(path: str) -> None:
    """A path of v1 would change something else in v1beta1, or nothing."""
    operations: list[dict[str, Any]] = [{"op": "replace", "path": path or "/spec/devices/0/x", "value": {}}]

    async def main() -> None:
        async with serving({"v1beta1": ALL}) as (server, client):
            await client.create(SLICES, SLICE)
            with pytest.raises(KubeError, match=r"has another place in resource\.k8s\.io/v1beta1") as raised:
                await client.patch(SLICES, "s", operations, type="json")
            assert raised.value.hint == "use a merge patch"
            before = len(server.requests)
            await client.patch(SLICES, "s", [{"op": "add", "path": "/metadata/labels", "value": {}}], type="json")
            assert len(server.requests) == before + 1

    asyncio.run(main())


def test_taint_rules_are_found_where_they_are() -> None:
    """They came to v1 later than the other kinds."""

    async def main() -> None:
        async with serving({"v1": ALL, "v1alpha3": ("devicetaintrules",)}) as (server, client):
            await client.list(TAINT_RULES)
            assert server.requests[-1].path == "/apis/resource.k8s.io/v1alpha3/devicetaintrules"

    asyncio.run(main())


class Strange(Transport):
    """Answers everything with one body."""

    def __init__(self, body: bytes) -> None:
        self.server = "http://strange.example"
        self._body = body

    async def request(self, call: Call) -> bytes:
        """See `Transport`."""
        return self._body


@pytest.mark.parametrize(
    ("asked", "body"),
    [
        (lambda discovery: discovery.version(), b'{"gitVersion": 7}'),
        (lambda discovery: discovery.served(""), b'{"versions": 7}'),
        (lambda discovery: discovery.served(GROUP), b'{"versions": [7]}'),
        (lambda discovery: discovery.served(GROUP), b'{"versions": [], "preferredVersion": 7}'),
        (lambda discovery: discovery.version_of(CLAIMS), b'{"versions": [{"version": "v1"}], "resources": 7}'),
        (lambda discovery: discovery.can_i("get", CLAIMS, "", "", ""), b'{"status": 7}'),
        (lambda discovery: discovery.version(), b"[]"),
        (lambda discovery: discovery.version(), b"hello"),
    ],
)
def test_an_answer_of_another_shape_is_no_traceback(asked: Callable[[Discovery], Any], body: bytes) -> None:
    """Something else than an API server may answer at the address."""
    with pytest.raises(AnswerError, match=r"the answer (can't be read|is no JSON object)"):
        asyncio.run(asked(Discovery(Strange(body))))
