"""How the kubelet finds a plugin: sockets and their names, who else is there, and what if they are taken away."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from draht.driver.framework import Offer
from draht.node.errors import DriverRegisteredError, SocketError
from draht.node.kubelet import registration
from draht.node.kubelet.dra_service import DRAService
from draht.node.kubelet.health_service import HealthService
from draht.node.kubelet.registered import SERVICE, registered_plugins
from draht.node.kubelet.registration import KUBELET, KubeletPlugin, registration_names, service_names
from draht.node.kubelet.socket_server import LONGEST_PATH, SocketServer, listens
from draht.node.wire.registration_pb2 import InfoRequest, PluginInfo
from fake_kubelet import FakeKubelet, claim, eventually
from fake_preparer import ApiServer, FakePreparer, Prepared

DRIVER = "gpu.example.com"
FIRST = "0b5cf4bf-6b2c-4ba2-9e3f-0a6f7c5d0001"
SECOND = "0b5cf4bf-6b2c-4ba2-9e3f-0a6f7c5d0002"


def plugin(root: Path, *, driver: str = DRIVER, preparer: FakePreparer | None = None, **options: Any) -> KubeletPlugin:
    """A plugin that looks at its sockets often."""
    service: DRAService[Prepared] = DRAService(driver, preparer or FakePreparer(), ApiServer().fetch)
    return KubeletPlugin(service, kubelet=root, **{"interval": 0.02, "grace": 0.2, **options})


def foreign(root: Path, file: str, **info: Any) -> SocketServer:
    """A plugin that isn't draht's."""

    async def get_info(_request: Any, _context: Any) -> PluginInfo:
        return PluginInfo(**{"type": "DRAPlugin", "name": DRIVER, "endpoint": "/somewhere/dra.sock", **info})

    method = grpc.unary_unary_rpc_method_handler(get_info, InfoRequest.FromString, PluginInfo.SerializeToString)
    handler = grpc.method_handlers_generic_handler(SERVICE, {"GetInfo": method})
    return SocketServer(root / "plugins_registry" / file, [handler])


def babbling(path: Path) -> SocketServer:
    """A server that answers with bytes that are no message."""

    async def get_info(_request: Any, _context: Any) -> bytes:
        return b"\xff\xff\xff"

    method: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(get_info)
    return SocketServer(path, [grpc.method_handlers_generic_handler(SERVICE, {"GetInfo": method})])


@contextmanager
def bound(path: Path) -> Iterator[socket.socket]:
    """A socket that accepts connections and never answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield listener


def leave_dead(path: Path) -> None:
    """The socket of a process that was killed."""
    with bound(path):
        pass


def test_a_plugin_is_registered_with_all_its_services(root: Path) -> None:
    """The kubelet learns name, endpoint and versions, newest first; directories and sockets are for root only."""

    async def main() -> None:
        health = HealthService("node-0")
        health.set(Offer(), ())
        async with FakeKubelet(root) as kubelet, plugin(root, health=health) as ours:
            await ours.wait_until_registered()
            found = await kubelet.plugin(DRIVER)
            assert found.services == (
                "v1.DRAPlugin",
                "v1beta1.DRAPlugin",
                "v1.DRAResourceHealth",
                "v1alpha1.DRAResourceHealth",
            )
            assert found.socket == root / "plugins_registry" / f"{DRIVER}-reg.sock"
            assert found.endpoint == root / "plugins" / DRIVER / "dra.sock"
            assert stat.S_IMODE(found.endpoint.parent.stat().st_mode) == 0o750
            assert stat.S_IMODE(found.endpoint.stat().st_mode) == 0o600
            assert ours.problem is None
        assert not found.socket.exists()
        assert not found.endpoint.exists()
        assert not ours.registered

    asyncio.run(main())


def test_health_is_announced_only_where_it_is_served(root: Path) -> None:
    """A driver that watches no health isn't asked for it."""

    async def main() -> None:
        async with FakeKubelet(root) as kubelet, plugin(root):
            assert (await kubelet.plugin(DRIVER)).services == ("v1.DRAPlugin", "v1beta1.DRAPlugin")

    asyncio.run(main())


def test_a_kubelet_that_refuses_is_a_problem_with_its_words(root: Path) -> None:
    """What the kubelet says is shown, and the plugin stays ready for the next try."""

    async def main() -> None:
        async with FakeKubelet(root, refuse={DRIVER: "unsupported version"}) as kubelet, plugin(root) as ours:
            await eventually(lambda: "unsupported" in (ours.problem or ""))
            assert ours.problem == "the kubelet refuses the plugin: unsupported version"
            kubelet.refuse.clear()
            await kubelet.restart()
            await ours.wait_until_registered()

    asyncio.run(main())


def test_a_kubelet_that_restarts_finds_the_plugin_again(root: Path) -> None:
    """Nothing has to be done for it: the sockets are still there."""

    async def main() -> None:
        async with FakeKubelet(root) as kubelet, plugin(root):
            await kubelet.plugin(DRIVER)
            await kubelet.restart()
            assert not (await kubelet.prepare(DRIVER, claim("a")))["a"].error
            assert kubelet.registrations == [DRIVER, DRIVER]

    asyncio.run(main())


@pytest.mark.parametrize("gone", ["plugins_registry", "plugins", "both"])
def test_sockets_that_are_wiped_are_made_again(root: Path, gone: str) -> None:
    """The kubelet's directory is emptied below the plugin; it registers again, and calls go on."""

    async def main() -> None:
        async with FakeKubelet(root) as kubelet, plugin(root) as ours:
            old = await kubelet.plugin(DRIVER)
            for directory in ("plugins_registry", "plugins") if gone == "both" else (gone,):
                for path in sorted((root / directory).rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
            await eventually(lambda: kubelet.registrations == [DRIVER, DRIVER])
            assert await kubelet.plugin(DRIVER) is not old
            await ours.wait_until_registered()
            assert not (await kubelet.prepare(DRIVER, claim("a")))["a"].error

    asyncio.run(main())


def test_sockets_that_cant_be_made_again_are_a_problem_until_they_can(root: Path) -> None:
    """The loop that looks after the sockets survives what it can't mend."""

    async def main() -> None:
        async with FakeKubelet(root) as kubelet, plugin(root) as ours:
            await kubelet.plugin(DRIVER)
            endpoint = root / "plugins" / DRIVER / "dra.sock"
            endpoint.unlink()
            endpoint.mkdir()
            await eventually(lambda: "in the way" in (ours.problem or ""))
            assert not ours.registered
            endpoint.rmdir()
            await ours.wait_until_registered()

    asyncio.run(main())


def test_another_plugin_of_the_same_name_is_refused_with_the_way_out(root: Path) -> None:
    """Whoever serves the driver already keeps it, and stays untouched."""

    async def main() -> None:
        other = foreign(root, f"{DRIVER}-vendor-reg.sock", endpoint=str(root / "plugins" / DRIVER / "dra-1.sock"))
        await other.start()
        with pytest.raises(DriverRegisteredError) as refused:
            await plugin(root, instance=FIRST).start()
        assert await listens(other.path)
        await other.stop()
        assert refused.value.where == str(other.path)
        assert str(refused.value.message) == (
            f"another plugin serves the driver {DRIVER} on this node, at {root}/plugins/{DRIVER}/dra-1.sock"
        )
        assert "docs/kubelet.md" in str(refused.value.hint)
        assert [path.name for path in (root / "plugins_registry").iterdir()] == []

    asyncio.run(main())


@pytest.mark.parametrize(
    "info", [{"name": "nic.example.com"}, {"type": "CSIPlugin"}, {"type": "DevicePlugin", "name": DRIVER}]
)
def test_other_drivers_and_other_types_may_be_there(root: Path, info: dict[str, str]) -> None:
    """Only a DRA plugin of the same name is in the way."""

    async def main() -> None:
        other = foreign(root, "other-reg.sock", **info)
        await other.start()
        async with plugin(root):
            assert len(await registered_plugins(root / "plugins_registry")) == 2
        await other.stop()

    asyncio.run(main())


def test_garbage_in_the_registry_is_no_plugin_and_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead sockets, peers that never answer, servers that speak something else, files and links: none keeps us out."""
    registry = root / "plugins_registry"
    leave_dead(registry / "dead-reg.sock")
    (registry / "file-reg.sock").write_text("no socket")
    (registry / "link-reg.sock").symlink_to("nowhere")
    (registry / "directory-reg.sock").mkdir()
    monkeypatch.setattr(registration, "registered_plugins", partial(registered_plugins, patience=0.2))

    async def main() -> None:
        with bound(registry / "silent-reg.sock"):
            others = [SocketServer(registry / "wrong-reg.sock", []), babbling(registry / "babbling-reg.sock")]
            for other in others:
                await other.start()
            async with FakeKubelet(root) as kubelet, plugin(root):
                await kubelet.plugin(DRIVER)
            for other in others:
                await other.stop()

    asyncio.run(main())
    left = {path.name for path in registry.iterdir()}
    assert left == {f"{name}-reg.sock" for name in ("dead", "file", "link", "directory", "silent")}


def test_a_rolling_update_has_two_instances_for_a_while(root: Path) -> None:
    """The new instance gets the calls as soon as it is registered; the old one leaves without a gap."""

    async def main() -> None:
        old, new = FakePreparer(), FakePreparer()
        first, second = plugin(root, preparer=old, instance=FIRST), plugin(root, preparer=new, instance=SECOND)
        async with FakeKubelet(root) as kubelet:
            await first.start()
            await kubelet.prepare(DRIVER, claim("a"))
            await second.start()
            await kubelet.plugin(DRIVER, instances=2)
            await kubelet.prepare(DRIVER, claim("b"))
            await first.stop()
            await kubelet.plugin(DRIVER, instances=1)
            await kubelet.prepare(DRIVER, claim("c"))
            await second.stop()
        assert (list(old.prepared), list(new.prepared)) == (["a"], ["b", "c"])

    asyncio.run(main())


def test_the_same_instance_isnt_started_twice(root: Path) -> None:
    """A second `draht node` beside the first one is refused instead of taking its socket away."""

    async def main() -> None:
        async with FakeKubelet(root) as kubelet, plugin(root):
            with pytest.raises(DriverRegisteredError, match=r"draht [\d.]+ serves the driver"):
                await plugin(root).start()
            assert not (await kubelet.prepare(DRIVER, claim("a")))["a"].error

    asyncio.run(main())


def test_two_that_start_at_once_end_with_one(root: Path) -> None:
    """Looking around and binding is one step for every instance of a driver."""

    async def main() -> None:
        both = [plugin(root), plugin(root)]
        results = await asyncio.gather(*(each.start() for each in both), return_exceptions=True)
        assert [type(result) for result in results].count(DriverRegisteredError) == 1
        for each in both:
            await each.stop()

    asyncio.run(main())


def test_a_lock_that_is_never_released_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who holds the driver's lock for ever is found by its file."""
    monkeypatch.setattr(registration, "LOCK_PATIENCE", 0.1)
    monkeypatch.setattr(registration, "LOCK_TRIES", 2)

    async def main() -> None:
        holder = plugin(root)
        async with holder._starts_alone():
            with pytest.raises(SocketError, match="another instance of the driver has held its lock") as refused:
                await plugin(root).start()
        assert "serialize.lock" in str(refused.value.hint)

    asyncio.run(main())


PROGRAM = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from test_registration import plugin

    async def main():
        await plugin(Path(sys.argv[1]), instance=sys.argv[2]).start()
        print("started", flush=True)
        await asyncio.sleep(60)

    asyncio.run(main())
""")


@pytest.mark.parametrize("instance", ["", FIRST])
def test_a_plugin_that_was_killed_is_replaced(root: Path, instance: str) -> None:
    """Its sockets stay behind; the next instance, whatever its name, removes them and is registered."""

    def start_and_kill() -> None:
        search = [str(Path(__file__).parent), *sys.path]
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, root, instance],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search)},
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"started\n"
            process.send_signal(signal.SIGKILL)

    start_and_kill()
    left = {path.name for path in (root / "plugins" / DRIVER).iterdir()} - {"serialize.lock"}
    assert left == {f"dra-{instance}.sock" if instance else "dra.sock"}

    async def main() -> None:
        async with FakeKubelet(root) as kubelet, plugin(root, instance=SECOND):
            assert not (await kubelet.prepare(DRIVER, claim("a")))["a"].error
            names = sorted(path.name for path in (root / "plugins" / DRIVER).iterdir())
            assert names == [f"dra-{SECOND}.sock", "serialize.lock"]

    asyncio.run(main())


def test_names_of_registration_sockets() -> None:
    """As upstream's Go library names them, so that one look at the directory is enough whoever wrote the driver."""
    assert registration_names(DRIVER)[0] == "gpu.example.com-reg.sock"
    assert registration_names(DRIVER, FIRST) == (
        f"gpu.example.com-{FIRST}-reg.sock",
        "gpu.example.com-hUo74V6tRBs-reg.sock",  # printf <uid> | openssl dgst -sha256 -binary | head -c 8 | base64
        "dra-lF5F78g-ZTcsQdA2K8A_Tw-reg.sock",
    )


@pytest.mark.parametrize("length", [20, 40, 58])
def test_long_names_get_shorter_sockets(root: Path, length: int) -> None:
    """The first name that fits is taken; the driver is registered under its full name all the same."""
    driver = "d" * length

    async def main() -> None:
        async with FakeKubelet(root) as kubelet, plugin(root, driver=driver, instance=FIRST) as ours:
            found = await kubelet.plugin(driver)
            assert max(len(str(found.socket)), len(str(found.endpoint))) <= LONGEST_PATH
            await ours.wait_until_registered()

    asyncio.run(main())


def test_the_longest_name_of_a_driver_fits_where_kubelets_are() -> None:
    """A driver's name has at most 63 characters, and the kubelet's directory is the same nearly everywhere."""
    name = "d" * 63
    assert len(str(KUBELET / "plugins" / name / service_names(FIRST)[-1])) <= LONGEST_PATH
    assert len(str(KUBELET / "plugins_registry" / registration_names(name, FIRST)[-1])) <= LONGEST_PATH


def test_a_directory_that_is_too_long_is_refused_with_numbers(root: Path) -> None:
    """No name would fit, and the message says what would."""
    deep = root / ("x" * 90)
    with pytest.raises(SocketError, match=r"limited to 107 bytes, this has 1\d\d") as refused:
        plugin(deep)
    assert refused.value.where is not None
    assert "shorter directory" in str(refused.value.hint)


def test_a_directory_that_cant_be_written_is_a_sentence(root: Path) -> None:
    """The kubelet's root directory is a file: one sentence, no traceback."""
    (root / "plugins").write_text("")
    with pytest.raises(SocketError, match="the plugin's directory can't be used"):
        asyncio.run(plugin(root).start())


def test_a_plugin_may_be_stopped_at_any_time_and_started_again(root: Path) -> None:
    """Ending is never an error; what is started again serves everything again, health included."""

    async def main() -> None:
        health = HealthService("node-0")
        health.set(Offer(), ())
        ours = plugin(root, health=health)
        await ours.stop()
        async with FakeKubelet(root) as kubelet:
            for _ in range(2):
                await ours.start()
                stream = (await kubelet.plugin(DRIVER)).health()
                assert list((await anext(stream)).devices) == []
                await stream.aclose()
                await ours.stop()
                await ours.stop()
                await kubelet.restart()
        shutil.rmtree(root / "plugins")

    asyncio.run(main())
