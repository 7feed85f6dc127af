"""Another plugin has the driver's name on a node: draht doesn't start beside it, and takes over once it has gone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from cluster.agent import Agent
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.pods import pod
from cluster.scene import Scene, template, uses
from draht.node.kubelet.registered import DRA_PLUGIN, SERVICE
from draht.node.kubelet.socket_server import SocketServer
from draht.node.wire.registration_pb2 import InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(100)]

DRIVER = "gpu.nvidia.com"
ENTRY = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]


@contextlib.contextmanager
def vendor(kubelet: Path) -> Iterator[threading.Event]:
    """The vendor's plugin as far as the kubelet's question goes; the event: the kubelet has taken it."""
    registered, running = threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def get_info(_request: InfoRequest, _context: Any) -> PluginInfo:
        endpoint = str(kubelet / "plugins" / DRIVER / "dra.sock")
        return PluginInfo(type=DRA_PLUGIN, name=DRIVER, endpoint=endpoint, supported_versions=["v1.DRAPlugin"])

    async def notify(status: RegistrationStatus, _context: Any) -> RegistrationStatusResponse:
        if status.plugin_registered:
            registered.set()
        return RegistrationStatusResponse()

    async def serve() -> None:
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "GetInfo": grpc.unary_unary_rpc_method_handler(
                get_info, InfoRequest.FromString, PluginInfo.SerializeToString
            ),
            "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                notify, RegistrationStatus.FromString, RegistrationStatusResponse.SerializeToString
            ),
        }
        handlers = [grpc.method_handlers_generic_handler(SERVICE, methods)]
        service = SocketServer(kubelet / "plugins" / DRIVER / "dra.sock", [])
        registration = SocketServer(kubelet / "plugins_registry" / f"{DRIVER}-reg.sock", handlers)
        for server in (service, registration):
            await server.start()
        running.set()
        await stop.wait()
        for server in (registration, service):
            await server.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=[serve()])
    thread.start()
    try:
        assert running.wait(30)
        yield registered
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def test_draht_takes_a_driver_over_only_after_the_other_has_gone(
    dra: Cluster, scene: Scene, serve: Callable[..., Agent]
) -> None:
    """It ends at once and names socket and way out; then by the way of the documentation it serves."""
    name = dra.node_names[0]
    node = dra.node(name)
    with vendor(node.kubelet_root) as registered:
        assert registered.wait(30)
        refused = Agent(dra, name, "--profile", "l4-x4", name="refused")
        with pytest.raises(ClusterError) as ended:
            refused.start()
        said = str(ended.value)
        assert "ended with status 1" in said
        assert f"another plugin serves the driver {DRIVER} on this node" in said
        assert f"{node.kubelet_root}/plugins_registry/{DRIVER}-reg.sock" in said
        assert "hint: end it first" in said
        assert "Traceback" not in said
        dra.kubectl("cordon", name)
    try:
        serve(name, "--profile", "l4-x4")
    finally:
        dra.kubectl("uncordon", name)
    scene.run(template("gpu"), pod("taken", "sleep 3600", container={"resources": uses("gpu")}, resourceClaims=ENTRY))
    assert scene.seen("taken") == [device.replace("-", "_") for device in scene.devices()]
    scene.clear()


def test_a_second_agent_without_a_name_is_refused(dra: Cluster, serve: Callable[..., Agent]) -> None:
    """Two of draht's own would share sockets; only instances with a pod's UID may overlap."""
    name = dra.node_names[0]
    first = serve(name, "--profile", "l4-x4")
    with pytest.raises(ClusterError) as ended:
        Agent(dra, name, "--profile", "l4-x4", name="second").start()
    assert "ended with status 1" in str(ended.value)
    assert "draht 0." in str(ended.value)
    assert f"serves the driver {DRIVER} on this node" in str(ended.value)
    assert first.get("/readyz")[0] == 200
