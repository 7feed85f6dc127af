"""The DRA services of a driver: v1 and v1beta1 behind one socket, with the same handlers.

Owns the messages and deadlines of ``DRAPlugin`` (KEP-4381). What is done for a claim is
`draht.node.kubelet.claim_calls`; how the kubelet finds the service is `draht.node.kubelet.registration`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, Final, Generic, TypeVar

import grpc
import grpc.aio

from draht.node.kubelet.claim_calls import (
    ClaimCalls,
    ClaimReference,
    Failure,
    Fetch,
    PreparedClaim,
    PreparedDevice,
    Preparer,
)
from draht.node.kubelet.claim_work import ClaimWork
from draht.node.kubelet.observation import Observer, Unobserved
from draht.node.kubelet.status_reports import StatusReports
from draht.node.wire import dra_v1_pb2, dra_v1beta1_pb2

__all__ = ["DEADLINE", "VERSIONS", "DRAService"]

DEADLINE: Final = 40.0
"""Seconds after which every claim has an answer; the kubelet waits 45."""
MARGIN: Final = 2.0
"""Seconds that are left for the way back when the caller's own deadline is nearer."""
VERSIONS: Final[Mapping[str, ModuleType]] = {"v1": dra_v1_pb2, "v1beta1": dra_v1beta1_pb2}
"""Version → its messages, newest first; the kubelet takes the first one it knows."""

_Claim = TypeVar("_Claim", bound=PreparedClaim)
_Context = grpc.aio.ServicerContext[Any, Any]


class DRAService(Generic[_Claim]):
    """The services v1.DRAPlugin and v1beta1.DRAPlugin of one driver.

    Args:
        driver_name: Name of the driver.
        preparer: Prepares claims; blocking.
        fetch: Reads a claim from the API server.
        report: Writes what became of a claim to its status. Its failure is tried again and never fails a claim.
        observer: Who counts.
        deadline: Seconds after which every claim of a call is answered.
    """

    def __init__(
        self,
        driver_name: str,
        preparer: Preparer[_Claim],
        fetch: Fetch,
        *,
        report: Callable[[_Claim], Awaitable[None]] | None = None,
        observer: Observer | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self.driver_name = driver_name
        self._work = ClaimWork()
        self._calls = ClaimCalls(driver_name, preparer, fetch, work=self._work, observer=observer or Unobserved())
        self._reports = StatusReports(report) if report is not None else None
        self._deadline = deadline
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def problems(self) -> dict[str, str]:
        """UID of a claim → why its status can't be written."""
        return self._reports.problems if self._reports is not None else {}

    def report(self, claim: _Claim) -> None:
        """Write what became of a claim that was prepared without the kubelet, as after a reboot; in the background."""
        if self._reports is not None:
            self._reports.put(claim.uid, claim)

    def services(self) -> tuple[str, ...]:
        """What a registration says is behind the socket."""
        return tuple(f"{version}.DRAPlugin" for version in VERSIONS)

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """What a server needs to serve both versions."""
        return tuple(self._handler(wire) for wire in VERSIONS.values())

    async def drain(self, patience: float) -> None:
        """Wait until no call is under way, at most ``patience`` seconds; the kubelet cuts off calls when it is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._idle.wait()

    async def close(self, patience: float = 5.0) -> None:
        """Wait at most ``patience`` seconds for work that is under way; the next start finds what takes longer."""
        await self._calls.close()
        await self._work.close(patience)
        if self._reports is not None:
            await self._reports.close()

    def _handler(self, wire: ModuleType) -> grpc.GenericRpcHandler:
        async def prepare(request: Any, context: _Context) -> Any:
            with self._call():
                answers = await self._calls.prepare(_references(request), self._budget(context))
            response = wire.NodePrepareResourcesResponse()
            for uid, answer in answers.items():
                entry = response.claims[uid]
                if isinstance(answer, Failure):
                    entry.error = answer.text
                    continue
                entry.devices.extend(_device(wire, device) for device in answer.devices)
                if self._reports is not None:
                    self._reports.put(uid, answer)
            return response

        async def unprepare(request: Any, context: _Context) -> Any:
            references = _references(request)
            if self._reports is not None:
                for reference in references:
                    self._reports.drop(reference.uid)
            with self._call():
                answers = await self._calls.unprepare(references, self._budget(context))
            response = wire.NodeUnprepareResourcesResponse()
            for uid, answer in answers.items():
                response.claims[uid].error = answer.text if isinstance(answer, Failure) else ""
            return response

        return grpc.method_handlers_generic_handler(
            wire.DESCRIPTOR.services_by_name["DRAPlugin"].full_name,
            {
                "NodePrepareResources": _unary(
                    prepare, wire.NodePrepareResourcesRequest, wire.NodePrepareResourcesResponse
                ),
                "NodeUnprepareResources": _unary(
                    unprepare, wire.NodeUnprepareResourcesRequest, wire.NodeUnprepareResourcesResponse
                ),
            },
        )

    @contextmanager
    def _call(self) -> Iterator[None]:
        self._under_way += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    def _budget(self, context: _Context) -> float:
        remaining: float | None = context.time_remaining()  # None without a deadline, whatever the types say
        if remaining is None:
            return self._deadline
        return max(0.0, min(self._deadline, remaining - min(MARGIN, remaining / 4)))


def _references(request: Any) -> list[ClaimReference]:
    return [ClaimReference(claim.namespace, claim.name, claim.uid) for claim in request.claims]


def _device(wire: ModuleType, device: PreparedDevice) -> Any:
    message: Any = wire.Device(
        request_names=device.requests,
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=device.cdi_device_ids,
    )
    if device.share_id is not None and "share_id" in message.DESCRIPTOR.fields_by_name:
        message.share_id = device.share_id
    return message


def _unary(behaviour: Any, request: Any, response: Any) -> grpc.RpcMethodHandler[Any, Any]:
    return grpc.unary_unary_rpc_method_handler(
        behaviour, request_deserializer=request.FromString, response_serializer=response.SerializeToString
    )
