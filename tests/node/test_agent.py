"""The agent as a whole: a kubelet on one side, an API server on the other, drivers of devices that don't exist."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent_bench import DRIVER, OTHER, TESTS, Bench, kubeconfig, on_node, sockets
from draht.api.errors import DrahtError
from draht.api.resource import DeviceTaint
from draht.driver.database import Database
from draht.driver.framework import Health, Offer
from draht.node import agent as agent_module
from draht.node.agent import Agent
from draht.node.errors import DriverRegisteredError
from draht.node.kubelet.registered import SERVICE
from draht.node.kubelet.socket_server import SocketServer
from draht.node.log import JsonLines
from draht.node.node_labels import NodeLabels
from draht.node.wire.registration_pb2 import PluginInfo
from fake_http import Request
from fake_kubelet import eventually
from fake_slice_server import NODE
from toy_driver import OtherToyDriver, ToyDriver, preparer
from toy_driver import claim as allocated


def test_what_was_left_is_put_right_before_the_kubelet_comes_and_slices_come_last(root: Path) -> None:
    """Recover, register, publish: in that order."""
    happened: list[str] = []
    driver = ToyDriver(root / f"effects-{DRIVER}")
    preparer(root, driver).prepare(allocated("c1", "toy-1"))
    with Database(root / "state").transaction() as tx:
        tx.connection.execute("UPDATE claims SET boot_id = 'the boot before'")

    def note(what: str) -> None:
        socket = root / "plugins_registry" / f"{DRIVER}-reg.sock"
        happened.append(f"{what}, {'with' if socket.exists() else 'without'} a socket")

    driver.hook = lambda what, _claim: note(f"{what} again")

    def asked(request: Request) -> bool:
        if request.method == "POST" and "resourceslices" in request.path and "dryRun" not in request.query:
            note("publish")
        return True

    async def test(bench: Bench) -> None:
        bench.server.authorize = asked
        async with bench.running(driver):
            await bench.ready()

    on_node(root, test)
    assert happened == ["prepare again, without a socket", "publish, with a socket"]


def test_a_driver_that_cant_start_is_named_and_tried_again_while_the_others_serve(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it raises, a bug included."""
    monkeypatch.setattr(agent_module, "RETRY_SECONDS", 0.05)
    error: list[Exception | None] = [DrahtError("the library isn't loaded", hint="load it")]

    class Stubborn(OtherToyDriver):
        def discover(self) -> Offer:
            if error[0] is not None:
                raise error[0]
            return super().discover()

    async def test(bench: Bench) -> None:
        async with bench.running(bench.driver(), bench.driver(Stubborn)):
            await bench.kubelet.plugin(DRIVER)
            await eventually(lambda: bool(bench.server.slices()))
            await eventually(lambda: bench.unready() == [f"{OTHER}: the library isn't loaded"])
            assert (await bench.get("/readyz")) == (503, f"{OTHER}: the library isn't loaded\n")
            error[0] = KeyError("gpu")
            await eventually(lambda: any("KeyError" in reason for reason in bench.unready()))
            prepared = bench.claim("toy-1")
            assert not (await bench.kubelet.prepare(DRIVER, prepared))[prepared.uid].error
            error[0] = None
            await bench.kubelet.plugin(OTHER)
            await bench.ready()

    on_node(root, test)


def test_another_plugin_of_the_name_ends_the_agent_with_a_hint(root: Path) -> None:
    """Two would prepare the same claims; only a person can say which one stays."""

    def foreign() -> SocketServer:
        info = PluginInfo(type="DRAPlugin", name=DRIVER, endpoint=str(root / "other.sock"), supported_versions=["v1"])

        async def get_info(_request: Any, _context: Any) -> bytes:
            return info.SerializeToString()

        method: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(get_info)
        handler = grpc.method_handlers_generic_handler(SERVICE, {"GetInfo": method})
        return SocketServer(root / "plugins_registry" / "other-reg.sock", [handler])

    async def test(bench: Bench) -> None:
        other = foreign()
        await other.start()
        async with bench.running(bench.driver(OtherToyDriver), bench.driver()) as task:
            with pytest.raises(DriverRegisteredError, match="another plugin serves the driver") as refused:
                await task
        assert "taking over" in (refused.value.hint or "")
        # The other driver left the kubelet, too.
        assert [path.name for path in sockets(root)] == ["other-reg.sock"]
        await other.stop()

    on_node(root, test)


def test_an_agent_that_is_told_to_end_leaves_slices_and_claims(root: Path) -> None:
    """Its sockets go, and the next one finds everything and writes nothing."""

    async def test(bench: Bench) -> None:
        async with bench.running(bench.driver()):
            await bench.ready()
            prepared = bench.claim("toy-1")
            await bench.kubelet.prepare(DRIVER, prepared)
        assert sockets(root) == []
        assert len(bench.server.slices()) == 1
        writes = bench.server.writes()
        async with bench.running(again := bench.driver()):
            await bench.ready()
            assert (await bench.numbers())["draht_dra_prepared_claims", DRIVER] == 1
        assert bench.server.writes() == writes
        assert again.prepared() == {prepared.uid: ["toy-1"]}

    on_node(root, test)


def test_a_process_ends_at_sigterm_and_logs_json_with_claims_and_pods(root: Path) -> None:
    """The command itself: status 0, sockets gone; every line of its log is an object."""
    file = root / "toy.py"
    file.write_text(
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from pathlib import Path\nimport toy_driver\n"
        "class Toy(toy_driver.ToyDriver):\n"
        f"    def __init__(self):\n        super().__init__(Path({str(root)!r}) / 'effects')\n",
        encoding="utf-8",
    )

    async def test(bench: Bench) -> None:
        config = root / "kubeconfig"
        config.write_text(kubeconfig(bench.server.address), encoding="utf-8")
        options = {"node-name": NODE, "driver": file, "kubelet-root": root, "cdi-dir": root / "cdi"}
        options |= {"state-dir": root / "state", "metadata-dir": root / "m", "kubeconfig": config}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        command = [sys.executable, "-m", "draht", "node", "--no-labels", "--listen", "127.0.0.1:0", *words]
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env={**os.environ})
        try:
            async with asyncio.timeout(60):
                await eventually(lambda: bool(bench.kubelet.plugins.get(DRIVER)))
                good, bad = bench.claim("toy-1"), bench.claim("no-such-toy")
                stored: Any = bench.server.objects["resourceclaims", bad.namespace, bad.name]
                user = {"resource": "pods", "name": "train", "uid": "p"}
                bench.server.put("resourceclaims", {**stored, "status": {**stored["status"], "reservedFor": [user]}})
                answers = await bench.kubelet.prepare(DRIVER, good, bad)
                assert not answers[good.uid].error
                assert "no-such-toy" in answers[bad.uid].error
                await eventually(lambda: bool(bench.server.slices()))
                process.send_signal(signal.SIGTERM)
                _, stderr = await process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        first, *lines = stderr.decode().splitlines()
        assert process.returncode == 0
        assert first.startswith("serving metrics and probes on port ")
        records = [json.loads(line) for line in lines]
        (failed,) = (each for each in records if each.get("claim_uid") == bad.uid)
        assert (failed["level"], failed["driver"], failed["operation"]) == ("warning", DRIVER, "prepare")
        assert (failed["claim"], failed["pods"]) == (f"default/{bad.name}", ["train"])
        assert records[-1]["message"] == "stopped; slices and prepared claims stay"
        assert sockets(root) == []
        assert len(bench.server.slices()) == 1

    on_node(root, test)


def test_the_endpoint_tells_why_the_agent_isnt_ready_until_it_is(root: Path) -> None:
    """First the kubelet is missing, then the API server refuses slices; being alive is something else."""

    async def test(bench: Bench) -> None:
        await bench.kubelet.stop()
        bench.server.closed = {"resourceslices"}
        async with bench.running(bench.driver()):
            await eventually(lambda: "not started" not in " ".join(bench.unready()))
            await eventually(lambda: len(bench.unready()) == 2)
            status, text = await bench.get("/readyz")
            assert status == 503
            kubelet, slices = text.splitlines()
            assert kubelet == f"{DRIVER}: the kubelet hasn't asked for the plugin yet"
            assert slices.startswith(f"{DRIVER}: ")
            assert (await bench.get("/healthz")) == (200, "ok\n")
            await bench.kubelet.start()
            bench.server.closed = set()
            await bench.ready()
            assert (await bench.get("/readyz")) == (200, "ok\n")
            assert (await bench.get("/nothing"))[0] == 404

    on_node(root, test)


def test_numbers_have_names_labels_and_values(root: Path) -> None:
    """What Prometheus reads after one claim came and went and another failed."""

    async def test(bench: Bench) -> None:
        driver = bench.driver()
        driver.healths = [Health(device="toy-3", state="Unhealthy", message="it is hot")]
        async with bench.running(driver):
            await bench.ready()
            good, bad, stays = bench.claim("toy-1"), bench.claim("no-such-toy"), bench.claim("toy-2", "toy-3")
            await bench.kubelet.prepare(DRIVER, good, bad, stays)
            await bench.kubelet.unprepare(DRIVER, good)
            found = await bench.numbers()
        assert found["draht_dra_requests_total", DRIVER, "", "prepare"] == 2
        assert found["draht_dra_requests_total", DRIVER, "DeviceMissingError", "prepare"] == 1
        assert found["draht_dra_requests_total", DRIVER, "", "unprepare"] == 1
        assert found["draht_dra_request_duration_seconds_count", DRIVER, "prepare"] == 3
        assert found["draht_dra_requests_inflight", DRIVER, "prepare"] == 0
        expected = {"devices": 8, "unhealthy_devices": 1, "prepared_claims": 1, "prepared_devices": 2}
        expected |= {"registered": 1, "resourceslices_synced": 1, "publishing_problems": 0}
        assert {name: found[f"draht_dra_{name}", DRIVER] for name in expected} == expected
        assert found["draht_dra_resourceslice_writes_total", DRIVER, "create"] == 1

    on_node(root, test)


def test_a_lost_database_costs_no_page_and_no_claim(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Scrapes go on, the loss is logged once, and the next look finds the claim in its CDI spec."""

    async def test(bench: Bench) -> None:
        async with bench.running(bench.driver()):
            await bench.ready()
            prepared = bench.claim("toy-1")
            await bench.kubelet.prepare(DRIVER, prepared)
            for path in (root / "state").glob("state.db*"):
                path.write_bytes(b"\xff" * 8192)
            assert (await bench.get("/metrics"))[0] == 200
            assert not (await bench.kubelet.prepare(DRIVER, prepared))[prepared.uid].error
            async with asyncio.timeout(20):
                while (await bench.numbers())["draht_dra_prepared_claims", DRIVER] != 1:  # noqa: ASYNC110 — as above
                    await asyncio.sleep(0.01)
            await bench.ready()

    with caplog.at_level(logging.WARNING, logger="draht"):
        on_node(root, test)
    assert sum("became unreadable" in record.getMessage() for record in caplog.records) <= 1


def test_an_illness_becomes_a_taint_and_goes_with_it(root: Path) -> None:
    """In the slices; claims that are there aren't touched."""

    async def test(bench: Bench) -> None:
        driver = bench.driver()
        async with bench.running(driver):
            await bench.ready()
            taint = DeviceTaint(key="toy.example.com/hot", effect="NoSchedule")
            driver.healths = [Health(device="toy-3", state="Unhealthy", message="it is hot", taint=taint)]
            await eventually(lambda: bench.taints() == ["toy.example.com/hot"])
            assert (await bench.numbers())["draht_dra_unhealthy_devices", DRIVER] == 1
            driver.healths = []
            await eventually(lambda: bench.taints() == [])

    on_node(root, test)


def test_devices_that_come_and_go_are_published_again(root: Path) -> None:
    """Within the interval, and once for each change."""

    async def test(bench: Bench) -> None:
        driver = bench.driver(devices=["toy-0"])
        async with bench.running(driver):
            await bench.ready()
            driver.devices.append("toy-1")
            await eventually(lambda: bench.server.devices() == ["toy-0", "toy-1"])
            driver.devices.remove("toy-0")
            await eventually(lambda: bench.server.devices() == ["toy-1"])
            assert bench.server.writes() == ["create", "update", "update"]

    on_node(root, test)


def test_a_look_that_fails_is_told_until_that_look_succeeds(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Health goes on meanwhile and doesn't hide it; each trouble is logged once, a bug with its traceback."""

    async def test(bench: Bench) -> None:
        driver = bench.driver()
        broken = False
        found = driver.discover

        def discover() -> Offer:
            if broken:
                raise DrahtError("the bus is gone")
            return found()

        driver.discover = discover  # type: ignore[method-assign]  # the driver is the test's
        async with bench.running(driver):
            await bench.ready()
            broken = True
            await eventually(lambda: any("the bus is gone" in each for each in bench.unready()))
            looks = len(bench.server.requests)
            for _ in range(20):
                await asyncio.sleep(0.02)
                assert any("the bus is gone" in each for each in bench.unready())
            assert len(bench.server.requests) == looks
            broken = False
            await bench.ready()
            driver.health = lambda: [][0]  # type: ignore[method-assign]  # a bug
            await eventually(lambda: any("IndexError" in each for each in bench.unready()))
            assert bench.server.devices() == sorted(driver.devices)

    with caplog.at_level(logging.WARNING, logger="draht"):
        on_node(root, test)
    told = [record for record in caplog.records if "the bus is gone" in record.getMessage()]
    assert len(told) == 1
    assert any(record.exc_info for record in caplog.records if "IndexError" in record.getMessage())


def test_a_driver_that_hangs_doesnt_keep_the_process_from_ending(root: Path) -> None:
    """A hung library waits for its device for ever; the kubelet would have to kill the pod."""
    (root / "hanging.py").write_text(
        "import pathlib, time\n"
        "from toy_driver import ToyDriver\n"
        "class Hanging(ToyDriver):\n"
        f"    def __init__(self): super().__init__(pathlib.Path({str(root / 'effects')!r}))\n"
        "    def health(self):\n"
        f"        pathlib.Path({str(root / 'hangs')!r}).touch()\n"
        "        time.sleep(600)\n"
    )

    async def test(bench: Bench) -> None:
        config = root / "kubeconfig"
        config.write_text(kubeconfig(bench.server.address), encoding="utf-8")
        command = [sys.executable, "-m", "draht", "node", "--node-name", NODE, "--driver", str(root / "hanging.py")]
        command += ["--no-labels", "--kubeconfig", str(config), "--listen", "127.0.0.1:0"]
        for option, name in (("kubelet-root", "."), ("cdi-dir", "cdi"), ("state-dir", "s"), ("metadata-dir", "m")):
            command += [f"--{option}", str(root / name)]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        process = await asyncio.create_subprocess_exec(*command, env=environment)
        try:
            async with asyncio.timeout(60):
                await eventually(lambda: (root / "hangs").exists())
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    on_node(root, test)


def test_a_full_kubelet_directory_doesnt_keep_others_from_serving(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver whose socket can't be made is tried again, until it can."""
    monkeypatch.setattr(agent_module, "RETRY_SECONDS", 0.05)

    async def test(bench: Bench) -> None:
        (root / "plugins" / OTHER).mkdir(parents=True)
        (root / "plugins" / OTHER / "dra.sock").mkdir()
        async with bench.running(bench.driver(), bench.driver(OtherToyDriver)):
            await bench.kubelet.plugin(DRIVER)
            await eventually(lambda: any("in the way" in each for each in bench.unready()))
            (root / "plugins" / OTHER / "dra.sock").rmdir()
            await bench.kubelet.plugin(OTHER)

    on_node(root, test)


def test_labels_are_written_beside_the_drivers(root: Path) -> None:
    """And stay when the agent ends."""

    async def test(bench: Bench) -> None:
        labels = NodeLabels(lambda: {"nvidia.com/gpu.count": "8"})
        async with bench.running(bench.driver(), labels=labels):
            await eventually(lambda: _labels(bench) == {"nvidia.com/gpu.count": "8"})
        assert _labels(bench) == {"nvidia.com/gpu.count": "8"}

    on_node(root, test)


def _labels(bench: Bench) -> Any:
    return bench.server.objects["nodes", "", NODE]["metadata"].get("labels", {})


def test_a_port_that_is_taken_is_a_sentence(root: Path) -> None:
    """Before anything is served."""

    async def test(bench: Bench) -> None:
        taken = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        port = taken.sockets[0].getsockname()[1]
        agent = Agent(replace(bench.settings, port=port), [bench.driver()], bench.client)
        with pytest.raises(DrahtError, match="can't listen") as refused:
            await agent.run(asyncio.Event())
        assert refused.value.hint == "choose another port with --listen"
        assert not (root / "state").exists()
        taken.close()

    on_node(root, test)


def test_the_page_has_every_metric_with_its_labels(root: Path) -> None:
    """docs/node.md, compared with what a scrape shows."""
    found: dict[str, tuple[str, str]] = {}

    async def test(bench: Bench) -> None:
        async with bench.running(bench.driver()):
            await bench.ready()
            await bench.kubelet.prepare(DRIVER, bench.claim("toy-1"))
            _, text = await bench.get("/metrics")
        for family in text_string_to_metric_families(text):
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            name = f"{family.name}_total" if family.type == "counter" else family.name
            if not name.endswith("_created"):
                found[name] = (family.type, ", ".join(sorted(labels)))

    on_node(root, test)
    page = (TESTS.parent / "docs/node.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(draht_dra_\w+)` \| (\w+) \| ([\w, ]+) \|", page, re.MULTILINE)
    assert {name: (type_, ", ".join(sorted(labels.split(", ")))) for name, type_, labels in rows} == found


@pytest.mark.parametrize(
    ("extra", "fields"),
    [
        ({"claim_uid": "u", "pods": ["a", "b"]}, {"claim_uid": "u", "pods": ["a", "b"]}),
        ({"hint": None, "driver": ""}, {}),
        ({"path": Path("/x")}, {"path": "/x"}),
    ],
)
def test_a_record_is_one_line_of_json(extra: dict[str, Any], fields: dict[str, Any]) -> None:
    """With what was given beside the message; what is empty is left out, line ends are escaped."""
    record = logging.makeLogRecord(
        {"name": "draht.node", "levelname": "INFO", "msg": "a\n%s", "args": ("ü",), "created": 0.0, **extra}
    )
    line = JsonLines().format(record)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "draht.node",
        "message": "a\nü",
        **fields,
    }
