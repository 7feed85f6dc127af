"""The verbs: what is sent, what comes back, what is tried again, and what a person is told when it fails."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from draht.api import resource
from draht.api.errors import DrahtError
from draht.kube import (
    CLAIMS,
    NODES,
    PODS,
    SLICES,
    AlreadyExistsError,
    AnswerError,
    Client,
    Config,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    Kind,
    KubeError,
    NotFoundError,
    NotServedError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
    errors,
)
from fake_apiserver import FakeApiServer, Fault, slice_of
from kube_session import connected, run

QUEUES = Kind("draht.dev/v1alpha1", "queues", True, dict[str, Any])


def test_an_object_is_created_read_changed_and_deleted() -> None:
    """Every verb works on structs, and gives back what the server has."""

    async def test(_: FakeApiServer, client: Client) -> None:
        spec = resource.ResourceSliceSpec(
            driver="gpu.example.com", pool=resource.ResourcePool(name="a", resource_slice_count=1), all_nodes=True
        )
        made = await client.create(SLICES, resource.ResourceSlice(metadata=_named("a"), spec=spec))
        assert made.spec == spec
        assert await client.get(SLICES, "a") == made
        patched = await client.patch(
            SLICES, "a", {"metadata": {"labels": {"x": "y"}}}, resource_version=made.metadata.resource_version
        )
        assert patched.metadata.labels == {"x": "y"}
        updated = await client.update(SLICES, patched)
        assert updated.metadata.uid == made.metadata.uid
        await client.delete(SLICES, "a", uid=made.metadata.uid)
        with pytest.raises(NotFoundError, match=r'resourceslices a: resourceslices.resource.k8s.io "a" not found'):
            await client.get(SLICES, "a")

    run(test)


def _named(name: str) -> Any:
    return resource.ResourceSlice.__struct_defaults__[2].__class__(name=name)


def test_a_kind_without_a_struct_is_read_as_it_came() -> None:
    """Objects of kinds that draht doesn't know are dictionaries, and items of lists say what they are."""

    async def test(_: FakeApiServer, client: Client) -> None:
        made = await client.create(QUEUES, {"metadata": {"name": "q"}, "spec": {"deep": [1, {"a": None}]}})
        assert made["spec"] == {"deep": [1, {"a": None}]}
        (item,) = (await client.list(QUEUES)).items
        assert item == made
        assert (item["apiVersion"], item["kind"]) == ("draht.dev/v1alpha1", "Queue")

    run(test)


def test_objects_without_a_namespace_go_to_the_configured_one() -> None:
    """What a person leaves out is what the context says; a list without one is over all namespaces."""

    async def main() -> None:
        async with FakeApiServer() as server, Client(Config(server.address, namespace="team-a")) as client:
            await client.create(QUEUES, {"metadata": {"name": "q"}})
            await client.create(QUEUES, {"metadata": {"name": "q", "namespace": "team-b"}})
            assert (await client.get(QUEUES, "q"))["metadata"]["namespace"] == "team-a"
            assert len((await client.list(QUEUES)).items) == 2
            assert len((await client.list(QUEUES, namespace="team-b")).items) == 1

    asyncio.run(main())


def test_a_list_is_fetched_in_pages_of_one_moment() -> None:
    """Pages are joined; what changes meanwhile isn't in them."""

    async def test(server: FakeApiServer, client: Client) -> None:
        for number in range(25):
            server.put("resourceslices", slice_of(f"s{number:02}"))
        listed = await client.list(SLICES, limit=10)
        assert [item.metadata.name for item in listed.items] == [f"s{number:02}" for number in range(25)]
        assert listed.resource_version == str(server.version)
        assert sum(request.path.endswith("/resourceslices") for request in server.requests) == 3

    run(test)


def test_a_page_that_expired_begins_the_list_again_in_one_answer() -> None:
    """The second list can't expire, because it has no pages."""

    async def test(server: FakeApiServer, client: Client) -> None:
        for number in range(25):
            server.put("resourceslices", slice_of(f"s{number:02}"))
        await client.list(SLICES, limit=10)
        server.faults = [Fault("status", times=1, code=410)]
        server.requests.clear()
        assert len((await client.list(SLICES, limit=10)).items) == 25
        assert [request.query.get("limit") for request in server.requests] == ["10", None]

    run(test)


def test_one_bad_item_hides_no_other() -> None:
    """An object with a field of a wrong type is named beside the good ones."""

    async def test(server: FakeApiServer, client: Client) -> None:
        for name in ("a", "b", "c"):
            server.put("resourceslices", slice_of(name))
        server.objects["resourceslices", "", "b"]["spec"]["driver"] = 7
        listed = await client.list(SLICES)
        assert [item.metadata.name for item in listed.items] == ["a", "c"]
        (bad,) = listed.unreadable
        assert bad.key == ("", "b")
        assert "spec.driver" in str(bad.problem)

    run(test)


STATUS = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"ResourceClaim \\"x\\" is invalid",'
    b'"reason":"Invalid","details":{"name":"x","kind":"ResourceClaim",'
    b'"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: -1",'
    b'"field":"spec.devices.requests[0].exactly.count"}]},"code":422}'
)


@pytest.mark.parametrize(
    ("code", "body", "error", "words"),
    [
        (400, b"", StatusError, "the answer is HTTP 400 without a word"),
        (401, b"", UnauthorizedError, "401"),
        (403, b'{"kind":"Status","message":"no","reason":"Forbidden","code":403}', ForbiddenError, "no"),
        (404, b"404 page not found\n", NotFoundError, "HTTP 404: 404 page not found"),
        (409, b'{"kind":"Status","message":"m","reason":"AlreadyExists","code":409}', AlreadyExistsError, "m"),
        (409, b'{"kind":"Status","message":"m","reason":"Conflict","code":409}', ConflictError, "m"),
        (410, b'{"kind":"Status","message":"m","reason":"Expired","code":410}', GoneError, "m"),
        (422, STATUS, InvalidError, 'ResourceClaim "x" is invalid'),
        (429, b"", TooManyRequestsError, "HTTP 429"),
        (500, b'{"kind":', StatusError, 'HTTP 500: {"kind":'),
        (502, b"<html><h1>Bad Gateway</h1></html>", StatusError, "a web page, which no API server sends"),
        (503, b"\x00\xff\x1b[31m", StatusError, "HTTP 503: ·"),
        (504, b'{"kind":"Status","message":"timeout","details":null,"code":504}', StatusError, "timeout"),
        (302, b"", StatusError, "HTTP 302"),
        (500, b"[" * 10_000, StatusError, "HTTP 500"),
        (500, b'{"kind":"Status","details":{"causes":7}}', StatusError, "HTTP 500"),
    ],
)
def test_a_refusal_becomes_the_error_of_its_code(code: int, body: bytes, error: type[StatusError], words: str) -> None:
    """Whatever the body is, the error has the code, and one sentence that a terminal can show."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault("body", "get", times=9, code=code, body=body)]
        with pytest.raises(error, match=r"^nodes n: ") as raised:
            await client.get(NODES, "n")
        assert type(raised.value) is error
        assert raised.value.code == code
        assert words in raised.value.message
        assert all(character.isprintable() for character in str(raised.value))

    run(test)


def test_causes_name_their_fields() -> None:
    """What the server said about each field is kept."""
    error = errors.status_error(422, STATUS)
    assert [(cause.field, cause.reason) for cause in error.causes] == [
        ("spec.devices.requests[0].exactly.count", "FieldValueInvalid")
    ]


def test_an_object_quoted_in_a_refusal_is_cut_out() -> None:
    """Under strict field validation, servers quote all of the object before they say what is wrong with it."""
    quoted = json.dumps(json.dumps({"a": "x" * 500}))
    message = f'"" is invalid: patch: Invalid value: {quoted}: strict decoding error: unknown field "spec.nonsense"'
    error = errors.status_error(422, json.dumps({"kind": "Status", "message": message}).encode())
    assert (
        error.message
        == '"" is invalid: patch: Invalid value: "…": strict decoding error: unknown field "spec.nonsense"'
    )


HTML = {"Content-Type": "text/html"}


@pytest.mark.parametrize(
    "fault",
    [
        Fault("body", code=200, body=b"<html>log in first</html>", headers=HTML),
        Fault("body", code=200, body=b"{}"),
        Fault("body", code=200, body=b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"}}'),
        Fault("body", code=200, body=b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}'),
        Fault("body", code=200, body=b""),
        Fault("body", code=200, body=b"null"),
        Fault("body", code=200, body=b"\xff\xfe"),
        Fault("body", code=200, body=b"[" * 100_000),
        Fault("body", code=200, body=b'{"metadata":{"resourceVersion":"1"},"items":{}}'),
        Fault("noise"),
    ],
    ids=lambda fault: repr(fault.body[:20]),
)
@pytest.mark.parametrize("kind", [SLICES, QUEUES], ids=["struct", "dict"])
def test_an_answer_that_no_server_gives_is_said_to_be_one(fault: Fault, kind: Kind[Any]) -> None:
    """A proxy's page or half an answer never looks like an empty list."""

    async def test(server: FakeApiServer, client: Client) -> None:
        await client.list(SLICES)
        server.faults = [Fault(fault.what, times=9, code=200, body=fault.body, headers=fault.headers)]
        with pytest.raises((AnswerError, UnreachableError)):
            await client.list(kind)

    run(test)


@pytest.mark.parametrize("what", ["close", "reset", "truncate"])
def test_a_read_is_tried_again_when_the_connection_is_lost(what: str) -> None:
    """Reading twice does no harm."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.put("resourceslices", slice_of("a"))
        server.faults = [Fault(what, times=2)]
        assert len((await client.list(SLICES)).items) == 1
        server.faults = [Fault(what, times=99)]
        with pytest.raises(UnreachableError, match=r"http://localhost:\d+: the connection was lost"):
            await client.list(SLICES)

    run(test)


def test_a_write_whose_connection_was_lost_is_not_repeated() -> None:
    """It may have been done; who wrote it must look."""

    async def test(server: FakeApiServer, client: Client) -> None:
        await client.list(SLICES)
        server.faults = [Fault("done-and-reset", "create", times=9)]
        with pytest.raises(UnreachableError, match="the connection was lost"):
            await client.create(SLICES, slice_of("a"))
        assert sum(request.method == "POST" for request in server.requests) == 1
        assert ("resourceslices", "", "a") in server.objects

    run(test)


@pytest.mark.parametrize("code", [429, 503])
def test_a_write_that_is_asked_to_come_back_does(code: int) -> None:
    """The server says that it hasn't done it, and for how long to wait."""
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault("status", "create", times=2, code=code, headers={"Retry-After": "7"})]
        await client.create(SLICES, slice_of("a"))
        assert waited == [7, 7]

    run(test, sleep=note)


def test_nobody_listens() -> None:
    """The error says where, and what to look at."""

    async def main() -> None:
        server = FakeApiServer()
        await server.start()
        await server.stop()
        async with connected(server) as client:
            with pytest.raises(UnreachableError, match=r"^http://localhost:\d+: no connection: ") as raised:
                await client.version()
            assert "kubectl version" in (raised.value.hint or "")

    asyncio.run(main())


def test_a_name_that_nobody_knows() -> None:
    """Name resolution is told from a refused connection."""

    async def main() -> None:
        async with Client(Config("http://no-such-host.invalid"), sleep=lambda _: asyncio.sleep(0)) as client:
            with pytest.raises(UnreachableError, match=r"the name no-such-host.invalid isn't known"):
                await client.version()

    asyncio.run(main())


@pytest.mark.parametrize("name", ["", ".."])
def test_a_name_can_not_lead_elsewhere(name: str) -> None:
    """An empty name isn't the collection, and dots don't climb."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.put("resourceslices", slice_of("a"))
        with pytest.raises(KubeError):
            await client.delete(SLICES, name)
        assert server.objects

    run(test)


def test_names_are_quoted() -> None:
    """A slash in a name is part of the name."""

    async def test(server: FakeApiServer, client: Client) -> None:
        with pytest.raises(NotFoundError):
            await client.get(PODS, "a/b?c#d%", namespace="x/y")
        assert server.requests[-1].path == "/api/v1/namespaces/x%2Fy/pods/a%2Fb%3Fc%23d%25"

    run(test)


def test_a_precondition_goes_along() -> None:
    """A patch or deletion that is bound to a version or uid fails when it is another one."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.put("resourceslices", slice_of("a"))
        with pytest.raises(ConflictError) as raised:
            await client.patch(SLICES, "a", {"metadata": {"labels": {"x": "y"}}}, resource_version="1")
        assert "read it again" in (raised.value.hint or "")
        for wanted in ({"uid": "other"}, {"resource_version": "1"}):
            with pytest.raises(ConflictError):
                await client.delete(SLICES, "a", **wanted)  # type: ignore[arg-type]

    run(test)


def test_options_are_sent() -> None:
    """Dry runs, owners and strict fields are query parameters."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.put("resourceslices", slice_of("a"))
        await client.patch(SLICES, "a", {"metadata": {}}, type="apply", force=True, dry_run=True, field_manager="me")
        request = server.requests[-1]
        assert request.query == {
            "dryRun": "All",
            "fieldManager": "me",
            "fieldValidation": "Strict",
            "force": "true",
        }
        assert request.headers["content-type"] == "application/apply-patch+yaml"
        assert request.headers["user-agent"].startswith("draht/")

    run(test)


def test_versions_and_groups_are_told() -> None:
    """Programs that judge a cluster ask for them."""

    async def test(_: FakeApiServer, client: Client) -> None:
        assert await client.version() == "v1.0.0-fake"
        assert await client.served("resource.k8s.io") == ("v1",)
        assert await client.served("nobody.example.com") == ()

    run(test)


def test_a_server_without_dra_is_told_from_one_without_slices() -> None:
    """Where the group isn't served, the hint says from when on it is."""

    async def main() -> None:
        async with FakeApiServer(versions={"v1alpha2": ("resourceslices",)}) as server, connected(server) as client:
            with pytest.raises(NotServedError, match=r"only v1alpha2 of resource\.k8s\.io") as raised:
                await client.list(SLICES)
            assert "1.34" in (raised.value.hint or "")

    asyncio.run(main())


def test_a_replaced_server_is_asked_again_for_its_versions() -> None:
    """A downgrade while a client is connected costs one failed request."""

    async def main() -> None:
        async with FakeApiServer() as server, connected(server) as client:
            await client.list(CLAIMS)
            server.versions = {"v1beta1": ("resourceclaims",)}
            with pytest.raises(NotFoundError):
                await client.list(CLAIMS)
            await client.list(CLAIMS)
            assert server.requests[-1].path.startswith("/apis/resource.k8s.io/v1beta1/")

    asyncio.run(main())


def test_every_error_is_one_for_people() -> None:
    """Each error of the package has draht's base and is drawn in the docstring."""
    import draht.kube

    for name in errors.__all__:
        value = getattr(errors, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, DrahtError)
            assert name in (draht.kube.__doc__ or "")
            assert name in draht.kube.__all__


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}', "7"),  # the stream ends here
        (b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n', "an event has no resourceVersion"),
        (b'{"type":"ADDED","object":{}}\n', "an event has no resourceVersion"),
    ],
)
@pytest.mark.parametrize("kind", [PODS, QUEUES], ids=["struct", "dict"])
def test_an_event_without_version_is_none(kind: Kind[Any], body: bytes, outcome: str) -> None:
    """A watch couldn't go on from it; a last line without line break is whole all the same."""

    async def test(server: FakeApiServer, client: Client) -> None:
        server.faults = [Fault("line", "watch", body=body)]
        watch = client.watch(kind, resource_version=str(server.version))
        await anext(watch)
        if outcome == "7":
            assert (await anext(watch)).resource_version == outcome
        else:
            with pytest.raises(AnswerError, match=outcome):
                await anext(watch)
        await watch.aclose()

    run(test)
