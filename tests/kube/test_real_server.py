"""The client and the reflector against a real API server: what it refuses, and what is left after it was killed."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cluster_programs
import gotoolchain
from cluster.cluster import Cluster
from cutting_proxy import cutting_proxy
from draht.api.resource import ResourceSlice
from draht.kube import (
    CLAIMS,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
    AlreadyExistsError,
    Change,
    Client,
    Config,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KubeError,
    NotFoundError,
    NotServedError,
    Reflector,
    StatusError,
    UnauthorizedError,
    versions,
)
from fake_apiserver import slice_of
from requirements import require

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # a cold cache builds the servers


def started(name: str, version: cluster_programs.Version) -> Iterator[Cluster]:
    """A control plane without nodes."""
    require(shutil.which("openssl"), "no openssl (Debian package openssl)")
    try:
        cluster_programs.ensure(version)
    except gotoolchain.GoMissingError as missing:
        require(False, str(missing))
        raise
    running = Cluster.up(name, nodes=0, version=version)
    yield running
    running.down()


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """Kubernetes 1.37."""
    yield from started("kube", "1.37")


@pytest.fixture(scope="module")
def old_server() -> Iterator[Cluster]:
    """Kubernetes 1.33, which has no v1 of the group."""
    yield from started("kube-old", "1.33")


def connect(kubeconfig: Path) -> Client:
    """A client with the identity of a file."""
    return Client(Config.load(kubeconfig=kubeconfig, environ={}))


def claim(name: str, **request: Any) -> dict[str, Any]:
    """A claim of one request."""
    exactly = {"deviceClassName": "gpu.example.com", **request}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }


def test_what_a_real_server_refuses_has_its_error(server: Cluster) -> None:
    """Codes, reasons and causes by field are the ones that callers decide by."""

    async def main() -> None:
        async with connect(server.kubeconfig) as client:
            made = await client.create(SLICES, slice_of("one"))
            stale = made.metadata.resource_version
            labels = {"metadata": {"labels": {"x": "y"}}}
            made = await client.patch(SLICES, "one", labels, resource_version=stale)
            operations = [{"op": "add", "path": "/metadata/labels/z", "value": "z"}]
            for patch, kind in ((labels, "merge"), (operations, "json"), (labels, "apply"), (labels, "strategic")):
                with pytest.raises(ConflictError, match="the object has been modified"):
                    await client.patch(SLICES, "one", patch, type=kind, resource_version=stale)  # type: ignore[arg-type]
            await client.patch(SLICES, "one", operations, type="json", resource_version=made.metadata.resource_version)
            mine, theirs = ({"metadata": {"labels": {"owned": value}}} for value in ("a", "b"))
            await client.patch(SLICES, "one", mine, type="apply")
            with pytest.raises(ConflictError) as raised:
                await client.patch(SLICES, "one", theirs, type="apply", field_manager="other")
            assert [cause.field for cause in raised.value.causes] == [".metadata.labels.owned"]
            assert "force" in (raised.value.hint or "")
            await client.patch(SLICES, "one", theirs, type="apply", field_manager="other", force=True)
            with pytest.raises(ConflictError):
                await client.update(SLICES, made)
            with pytest.raises(AlreadyExistsError):
                await client.create(SLICES, slice_of("one"))
            for wanted in ({"uid": "another"}, {"resource_version": stale}):
                with pytest.raises(ConflictError):
                    await client.delete(SLICES, "one", **wanted)  # type: ignore[arg-type]
            with pytest.raises(InvalidError, match=r'unknown field "spec\.nonsense"') as invalid:
                await client.patch(SLICES, "one", {"spec": {"nonsense": 1}})
            assert len(invalid.value.message) < 300
            with pytest.raises(StatusError, match=r'unknown field "spec\.nonsense"'):
                await client.create(SLICES, slice_of("two") | {"spec": {**slice_of("two")["spec"], "nonsense": 1}})
            await client.delete(SLICES, "one", uid=made.metadata.uid)
            with pytest.raises(NotFoundError):
                await client.get(SLICES, "one")
            with pytest.raises(InvalidError) as causes:
                await client.create(CLAIMS, claim("Bad_", count=-1))
            assert {(one.field, one.reason) for one in causes.value.causes} == {
                ("metadata.name", "FieldValueInvalid"),
                ("spec.devices.requests[0].exactly.count", "FieldValueInvalid"),
            }
            await client.create(CLAIMS, claim("dry"), dry_run=True)
            with pytest.raises(NotFoundError):
                await client.get(CLAIMS, "dry")
            assert (await client.version()).startswith("v1.37.")
            assert (await client.list(TAINT_RULES)).items == ()

    asyncio.run(main())


def test_who_may_not_or_is_not_known(server: Cluster) -> None:
    """A person without permission, and a token that nobody gave out."""

    async def main() -> None:
        async with connect(server.kubeconfig_for("jane")) as jane:
            with pytest.raises(ForbiddenError, match='User "jane" cannot list resource "nodes"'):
                await jane.list(NODES)
            assert not await jane.can_i("list", NODES)
        async with connect(server.kubeconfig) as admin:
            assert await admin.can_i("delete", PODS, namespace="default")
        async with connect(server.kubeconfig_for(token="made up")) as nobody:
            with pytest.raises(UnauthorizedError) as raised:
                await nobody.list(NODES)
            assert "kubectl auth whoami" in (raised.value.hint or "")

    asyncio.run(main())


class Reader:
    """Reads changes as they come, and checks that each fits what is known.

    Args:
        reflector: Where they come from.
    """

    def __init__(self, reflector: Reflector[ResourceSlice]) -> None:
        self.subscription = reflector.subscribe()
        self.objects: dict[Any, ResourceSlice] = {}
        self.versions: set[str] = set()
        self.deleted: set[str] = set()

    def take(self, change: Change[ResourceSlice]) -> None:
        """Apply a change."""
        assert change.old == self.objects.get(change.key), "a change was lost or told twice"
        if change.new is None:
            self.deleted.add(self.objects.pop(change.key).metadata.uid)
        else:
            assert change.old is None or change.old.metadata.uid == change.new.metadata.uid
            assert change.new.metadata.resource_version not in self.versions
            self.versions.add(change.new.metadata.resource_version)
            self.objects[change.key] = change.new

    async def follow(self) -> None:
        """Read until closed."""
        async for change in self.subscription:
            self.take(change)


class Writer:
    """Somebody else who writes, and goes on after trouble.

    Args:
        client: A client of its own.
        seed: Of what it does.
    """

    def __init__(self, client: Client, seed: int) -> None:
        self._client = client
        self._random = random.Random(seed)
        self.versions: set[str] = set()
        self.deleted: set[str] = set()
        self.troubles = 0
        self.writes = 0

    async def write(self, stop: Callable[[], bool]) -> None:
        """Create, change, delete and replace until told to stop."""
        while not stop():
            name = f"w-{self._random.randrange(12)}"
            try:
                await self._step(name)
                self.writes += 1
            except (NotFoundError, AlreadyExistsError):
                pass  # an earlier write was done although its answer was lost
            except KubeError:
                self.troubles += 1
                await asyncio.sleep(0.05)

    async def _step(self, name: str) -> None:
        found = None
        with suppress(NotFoundError):
            found = await self._client.get(SLICES, name)
        if found is None:
            made = await self._client.create(SLICES, slice_of(name))
            self.versions.add(made.metadata.resource_version)
        elif self._random.random() < 0.3:
            await self._client.delete(SLICES, name, uid=found.metadata.uid)
            self.deleted.add(found.metadata.uid)
        else:
            patch = {"metadata": {"labels": {"n": str(self._random.random())}}}
            made = await self._client.patch(SLICES, name, patch)
            self.versions.add(made.metadata.resource_version)


async def settled(reflector: Reflector[ResourceSlice], client: Client) -> None:
    """Wait until the store has what a fresh list says; fail when it doesn't get there."""

    def known(objects: Any) -> Mapping[str, str]:
        return {one.metadata.name: one.metadata.resource_version for one in objects}

    async with asyncio.timeout(60):
        # The server is asked, so there is no event to wait for.
        while known(reflector.store.all()) != known((await client.list(SLICES)).items):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.1)


def test_after_kill_9_of_the_server_nothing_is_lost_or_doubled(server: Cluster) -> None:
    """While somebody writes, the server dies twice: the store is what it has then, and the changes lead there."""

    async def main() -> None:
        async with connect(server.kubeconfig) as client, connect(server.kubeconfig) as other:
            reflector = Reflector(client, SLICES, indexers={"driver": lambda one: [one.spec.driver]})
            running = asyncio.create_task(reflector.run())
            await reflector.synced()
            reader = Reader(reflector)
            reading = asyncio.create_task(reader.follow())
            done = False
            writer = Writer(other, 1)
            writing = asyncio.create_task(writer.write(lambda: done))
            for _ in range(2):
                await asyncio.sleep(1)
                await asyncio.to_thread(server.restart_apiserver, kill=True)
            await asyncio.sleep(1)
            done = True
            await writing
            await settled(reflector, other)
            reader.subscription.close()
            await reading
            assert writer.writes > 20
            assert reflector.counters.reconnects >= 2
            assert reader.objects == {("", one.metadata.name): one for one in reflector.store.all()}
            assert len(reflector.store.by("driver", "gpu.example.com")) == len(reflector.store)
            # A new list skips what was overwritten meanwhile; what it shows is never something nobody wrote.
            if reflector.counters.relists == 0:
                assert writer.versions <= reader.versions
            running.cancel()

    asyncio.run(main())


def test_through_cut_connections_every_write_arrives_once(server: Cluster) -> None:
    """The server remembers what happened meanwhile, so a cut connection costs no list and loses nothing."""

    async def main() -> None:
        config = Config.load(kubeconfig=server.kubeconfig, environ={})
        async with cutting_proxy(int(config.server.rpartition(":")[2])) as (port, cut):
            through = replace(config, server=f"https://127.0.0.1:{port}")
            async with Client(through) as client, Client(config) as other:
                reflector = Reflector(client, SLICES)
                running = asyncio.create_task(reflector.run())
                await reflector.synced()
                reader = Reader(reflector)
                reading = asyncio.create_task(reader.follow())
                done = False
                writer = Writer(other, 2)
                writing = asyncio.create_task(writer.write(lambda: done))
                for _ in range(12):
                    await asyncio.sleep(0.3)
                    cut()
                done = True
                await writing
                await settled(reflector, other)
                reader.subscription.close()
                await reading
                assert writer.writes > 20
                assert (writer.troubles, reflector.counters.relists) == (0, 0)
                assert reflector.counters.reconnects >= 8
                assert reader.objects == {("", one.metadata.name): one for one in reflector.store.all()}
                # Changes of one object that wait for a reader are joined, so some versions are skipped.
                missed = writer.versions - reader.versions
                assert len(missed) <= len(writer.versions) / 2
                assert {one.metadata.uid for one in reader.objects.values()}.isdisjoint(writer.deleted)
                running.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("only", ["v1beta1", "v1beta2", "v1"])
def test_each_version_of_the_group_gives_the_same_objects(
    server: Cluster, only: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written through an old version reads back in v1 as it was meant."""
    monkeypatch.setattr(versions, "_VERSIONS", (only,))

    async def main() -> None:
        async with connect(server.kubeconfig) as client:
            await round_trip(client, only)

    asyncio.run(main())


def test_a_server_without_v1_is_spoken_to_in_what_it_has(old_server: Cluster) -> None:
    """On 1.33 the group ends with v1beta2; kinds that it lacks are said to be lacking."""

    async def main() -> None:
        async with connect(old_server.kubeconfig) as client:
            assert (await client.version()).startswith("v1.33.")
            assert "v1" not in await client.served("resource.k8s.io")
            await round_trip(client, "v1beta2")
            with pytest.raises(NotServedError, match="no devicetaintrules"):
                await client.list(TAINT_RULES)

    asyncio.run(main())


async def round_trip(client: Client, version: str) -> None:
    """Write, read, watch and delete a slice and a claim."""
    content = slice_of(f"trip-{version}")
    content["spec"]["devices"] = [{"name": "gpu-0", "attributes": {"model": {"string": "H100"}}}]
    start = (await client.list(SLICES)).resource_version
    made = await client.create(SLICES, content)
    assert made.api_version == "resource.k8s.io/v1"
    (device,) = made.spec.devices
    assert device.attributes["model"].string == "H100"
    changed = dict(content["spec"], devices=[{"name": "gpu-1", "attributes": {"model": {"string": "A100"}}}])
    patched = await client.patch(
        SLICES, made.metadata.name, {"spec": changed}, resource_version=made.metadata.resource_version
    )
    assert patched.spec.devices[0].attributes["model"].string == "A100"
    watch = client.watch(SLICES, resource_version=start)
    seen = [await anext(watch) for _ in range(3)]
    await watch.aclose()
    assert [event.object for event in seen] == [None, made, patched]
    await client.delete(SLICES, made.metadata.name)
    asked = await client.create(CLAIMS, claim(f"trip-{version}", count=2))
    exactly = asked.spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.count == 2
    await client.delete(CLAIMS, asked.metadata.name, namespace="default")
