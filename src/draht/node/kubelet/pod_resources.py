"""What the kubelet says about devices in use: which container has which (the ``podresources`` service, v1).

Owns the client. It reads devices of extended resources and of claims; CPUs and memory aren't draht's subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import grpc
import grpc.aio

from draht.node.errors import KubeletError
from draht.node.kubelet.registration import KUBELET
from draht.node.kubelet.socket_server import channel
from draht.node.wire import pod_resources_pb2 as wire

__all__ = ["ClaimDevice", "ContainerUse", "PodResources", "PodUse"]

SOCKET: Final = KUBELET / "pod-resources" / "kubelet.sock"
SERVICE: Final = "v1.PodResourcesLister"
LARGEST: Final = 64 << 20
"""Bytes of an answer; a node with hundreds of pods answers with more than gRPC's default of 4 MiB allows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimDevice:
    """One device that a container has through a claim."""

    claim_namespace: str
    claim_name: str
    driver: str
    pool: str
    device: str
    share_id: str | None
    cdi_device_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerUse:
    """Devices of one container.

    Attributes:
        name: Name of the container.
        devices: (extended resource, id of a device).
        claimed: Devices of claims.
    """

    name: str
    devices: tuple[tuple[str, str], ...]
    claimed: tuple[ClaimDevice, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PodUse:
    """Devices of one pod."""

    namespace: str
    name: str
    containers: tuple[ContainerUse, ...]


class PodResources:
    """A client of the kubelet; an asynchronous context manager.

    Args:
        socket: The kubelet's socket.
        patience: Seconds for one answer.
    """

    def __init__(self, socket: Path = SOCKET, *, patience: float = 10.0) -> None:
        self._socket = socket
        self._patience = patience
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        self._channel = channel(self._socket, [("grpc.max_receive_message_length", LARGEST)])
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._channel is not None:
            await self._channel.close()

    async def list(self) -> tuple[PodUse, ...]:
        """All pods that have anything.

        Raises:
            KubeletError: The kubelet can't be reached, or refuses.
        """
        try:
            answer = await self._call("List", wire.ListPodResourcesRequest(), wire.ListPodResourcesResponse)
        except grpc.aio.AioRpcError as error:
            raise self._failed(error) from None
        return tuple(_pod(pod) for pod in answer.pod_resources)

    async def get(self, namespace: str, name: str) -> PodUse | None:
        """One pod; None if the kubelet doesn't run it.

        Raises:
            KubeletError: The kubelet can't be reached, or refuses.
        """
        request = wire.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace)
        try:
            answer = await self._call("Get", request, wire.GetPodResourcesResponse)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND or "not found" in (error.details() or ""):
                return None
            raise self._failed(error) from None
        return _pod(answer.pod_resources)

    async def _call(self, method: str, request: Any, response: Any) -> Any:
        assert self._channel is not None, "used outside of its context"
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return await call(request, timeout=self._patience)

    def _failed(self, error: grpc.aio.AioRpcError) -> KubeletError:
        return KubeletError(
            f"the kubelet doesn't say which container has which device: {error.details()}",
            where=str(self._socket),
            hint="is the kubelet running, and its pod-resources directory mounted?",
        )


def _pod(pod: wire.PodResources) -> PodUse:
    return PodUse(namespace=pod.namespace, name=pod.name, containers=tuple(_container(each) for each in pod.containers))


def _container(container: wire.ContainerResources) -> ContainerUse:
    return ContainerUse(
        name=container.name,
        devices=tuple((entry.resource_name, each) for entry in container.devices for each in entry.device_ids),
        claimed=tuple(
            ClaimDevice(
                claim_namespace=claim.claim_namespace,
                claim_name=claim.claim_name,
                driver=each.driver_name,
                pool=each.pool_name,
                device=each.device_name,
                share_id=each.share_id if each.HasField("share_id") else None,
                cdi_device_ids=tuple(device.name for device in each.cdi_devices),
            )
            for claim in container.dynamic_resources
            for each in claim.claim_resources
        ),
    )
