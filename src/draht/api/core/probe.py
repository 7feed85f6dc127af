"""What the kubelet does to a container while it lives: probes and life-cycle hooks."""

from __future__ import annotations

from draht.api.wire import Int32, Int64, IntOrString, Wire

__all__ = [
    "ExecAction",
    "GRPCAction",
    "HTTPGetAction",
    "HTTPHeader",
    "Lifecycle",
    "LifecycleHandler",
    "Probe",
    "ProbeHandler",
    "SleepAction",
    "TCPSocketAction",
]


class ExecAction(Wire, frozen=True, kw_only=True):
    """A command run inside the container; exit status 0 is success."""

    command: tuple[str, ...] = ()


class HTTPHeader(Wire, frozen=True, kw_only=True):
    """One request header of an HTTP probe."""

    name: str
    value: str = ""


class HTTPGetAction(Wire, frozen=True, kw_only=True):
    """An HTTP request to the container."""

    path: str = ""
    port: IntOrString
    host: str = ""
    scheme: str = ""
    http_headers: tuple[HTTPHeader, ...] = ()
    protocol: str | None = None


class TCPSocketAction(Wire, frozen=True, kw_only=True):
    """A TCP connection to the container."""

    port: IntOrString
    host: str = ""


class GRPCAction(Wire, frozen=True, kw_only=True):
    """A gRPC health check of the container."""

    port: Int32
    service: str | None = None
    mode: str | None = None


class ProbeHandler(Wire, frozen=True, kw_only=True):
    """How a probe asks; exactly one member is set."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None


class Probe(ProbeHandler, frozen=True, kw_only=True):
    """A periodic question to a container, in seconds."""

    initial_delay_seconds: Int32 = 0
    timeout_seconds: Int32 = 0
    period_seconds: Int32 = 0
    success_threshold: Int32 = 0
    failure_threshold: Int32 = 0
    termination_grace_period_seconds: Int64 | None = None


class SleepAction(Wire, frozen=True, kw_only=True):
    """A pause, in seconds."""

    seconds: Int64 = 0


class LifecycleHandler(Wire, frozen=True, kw_only=True):
    """What a life-cycle hook does; exactly one member is set."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Wire, frozen=True, kw_only=True):
    """Hooks after the start and before the stop of a container."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None
