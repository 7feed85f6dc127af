"""What the kubelet says about devices in use, as draht reads it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from draht.node.errors import KubeletError
from draht.node.kubelet.pod_resources import SERVICE, ClaimDevice, ContainerUse, PodResources, PodUse
from draht.node.kubelet.socket_server import SocketServer
from draht.node.wire import pod_resources_pb2 as wire

POD = wire.PodResources(
    name="train-0",
    namespace="team",
    containers=[
        wire.ContainerResources(
            name="main",
            devices=[wire.ContainerDevices(resource_name="nvidia.com/gpu", device_ids=["GPU-0", "GPU-1"])],
            cpu_ids=range(6000),  # not read; makes the answer large
            dynamic_resources=[
                wire.DynamicResource(
                    claim_name="one",
                    claim_namespace="team",
                    claim_resources=[
                        wire.ClaimResource(
                            driver_name="gpu.example.com",
                            pool_name="node-0",
                            device_name="gpu-2",
                            share_id="s",
                            cdi_devices=[wire.CDIDevice(name="k8s.gpu.example.com/claim=one")],
                        ),
                        wire.ClaimResource(driver_name="nic.example.com", pool_name="fabric", device_name="nic-0"),
                    ],
                )
            ],
        )
    ],
)
READ = PodUse(
    namespace="team",
    name="train-0",
    containers=(
        ContainerUse(
            name="main",
            devices=(("nvidia.com/gpu", "GPU-0"), ("nvidia.com/gpu", "GPU-1")),
            claimed=(
                ClaimDevice(
                    claim_namespace="team",
                    claim_name="one",
                    driver="gpu.example.com",
                    pool="node-0",
                    device="gpu-2",
                    share_id="s",
                    cdi_device_ids=("k8s.gpu.example.com/claim=one",),
                ),
                ClaimDevice(
                    claim_namespace="team",
                    claim_name="one",
                    driver="nic.example.com",
                    pool="fabric",
                    device="nic-0",
                    share_id=None,
                    cdi_device_ids=(),
                ),
            ),
        ),
    ),
)


def lister(pods: int) -> grpc.GenericRpcHandler:
    """A kubelet that runs one pod many times."""

    async def list_pods(_request: Any, _context: Any) -> Any:
        return wire.ListPodResourcesResponse(pod_resources=[POD] * pods)

    async def get(request: Any, context: Any) -> Any:
        if (request.pod_namespace, request.pod_name) != (POD.namespace, POD.name):
            # The words and the code of the kubelet's podresources server (1.37).
            words = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
            await context.abort(grpc.StatusCode.UNKNOWN, words)
        return wire.GetPodResourcesResponse(pod_resources=POD)

    unary = grpc.unary_unary_rpc_method_handler
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "List": unary(
                list_pods, wire.ListPodResourcesRequest.FromString, wire.ListPodResourcesResponse.SerializeToString
            ),
            "Get": unary(get, wire.GetPodResourcesRequest.FromString, wire.GetPodResourcesResponse.SerializeToString),
        },
    )


@pytest.mark.parametrize("pods", [0, 1, 500])
def test_all_pods_are_read(root: Path, pods: int) -> None:
    """Extended resources and claims alike; also answers that are larger than gRPC takes by default."""

    async def main() -> None:
        server = SocketServer(root / "kubelet.sock", [lister(pods)])
        await server.start()
        async with PodResources(root / "kubelet.sock") as kubelet:
            found = await kubelet.list()
        await server.stop()
        assert len(found) == pods
        assert set(found) <= {READ}

    asyncio.run(main())


def test_one_pod_is_read_or_isnt_there(root: Path) -> None:
    """A pod that the kubelet doesn't run is no error."""

    async def main() -> None:
        server = SocketServer(root / "kubelet.sock", [lister(1)])
        await server.start()
        async with PodResources(root / "kubelet.sock") as kubelet:
            assert await kubelet.get("team", "train-0") == READ
            assert await kubelet.get("team", "other") is None
        await server.stop()

    asyncio.run(main())


def test_a_kubelet_that_isnt_there_is_a_sentence(root: Path) -> None:
    """The message names the socket and what to look at."""

    async def main() -> None:
        async with PodResources(root / "kubelet.sock", patience=2) as kubelet:
            for call in (kubelet.list(), kubelet.get("team", "train-0")):
                with pytest.raises(KubeletError, match="the kubelet doesn't say which container") as failed:
                    await call
                assert failed.value.where == str(root / "kubelet.sock")
                assert "pod-resources directory" in str(failed.value.hint)

    asyncio.run(main())
