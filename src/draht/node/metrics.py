"""What the node agent counts, for Prometheus.

Owns names, labels and buckets. Names follow NVIDIA's driver where it has them, with draht's prefix. Numbers that
components keep themselves (slices written, problems, devices) are read when Prometheus asks, so that nothing is counted
in two places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE", "DriverNumbers", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_LATEST

_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""From the time that preparing takes by itself to the 45 s that the kubelet waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverNumbers:
    """What one driver's components say when they are asked.

    Attributes:
        driver: Name of the driver.
        devices: Devices that are published.
        unhealthy: Devices that are not healthy now.
        prepared_claims: Claims that are prepared.
        prepared_devices: Devices of these claims.
        registered: The kubelet knows the plugin.
        synced: The API server has exactly the slices that are wanted.
        problems: Problems of publishing that are open.
        slice_writes: Verb → writes of slices so far.
    """

    driver: str
    devices: int
    unhealthy: int
    prepared_claims: int
    prepared_devices: int
    registered: bool
    synced: bool
    problems: int
    slice_writes: dict[str, int]


class Metrics:
    """The numbers of one agent.

    Args:
        numbers: Asked for every driver's numbers at each scrape.
    """

    def __init__(self, numbers: Callable[[], Iterable[DriverNumbers]]) -> None:
        self._registry = CollectorRegistry()
        labels = ("driver", "operation")
        self._requests = Counter(
            "draht_dra_requests",
            "Claims to prepare or unprepare, and device plugin allocations; error is the kind of failure.",
            (*labels, "error"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "draht_dra_request_duration_seconds",
            "How long each of them took, reading the claim included.",
            labels,
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._inflight = Gauge(
            "draht_dra_requests_inflight", "How many of them are under way.", labels, registry=self._registry
        )
        self._registry.register(_Numbers(numbers))

    def observe(self, driver: str, operation: str, seconds: float, error: str = "") -> None:
        """Count one claim or allocation; ``error`` is the name of the error's class, empty for success."""
        self._requests.labels(driver, operation, error).inc()
        self._seconds.labels(driver, operation).observe(seconds)

    @contextmanager
    def under_way(self, driver: str, operation: str) -> Iterator[None]:
        """Count something as under way while the block lasts."""
        with self._inflight.labels(driver, operation).track_inprogress():
            yield

    def text(self) -> bytes:
        """Everything in Prometheus' text form."""
        return generate_latest(self._registry)


class _Numbers(Collector):
    def __init__(self, numbers: Callable[[], Iterable[DriverNumbers]]) -> None:
        self._numbers = numbers

    def describe(self) -> Iterable[Metric]:
        """No names in advance: asking for them would ask the drivers before they are there."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Ask every driver once."""
        drivers = list(self._numbers())
        for name, text, value in _GAUGES:
            family = GaugeMetricFamily(f"draht_dra_{name}", text, labels=("driver",))
            for each in drivers:
                family.add_metric((each.driver,), value(each))
            yield family
        writes = CounterMetricFamily(
            "draht_dra_resourceslice_writes", "Writes of ResourceSlices.", labels=("driver", "verb")
        )
        for each in drivers:
            for verb, count in sorted(each.slice_writes.items()):
                writes.add_metric((each.driver, verb), count)
        yield writes


_GAUGES: tuple[tuple[str, str, Callable[[DriverNumbers], float]], ...] = (
    ("devices", "Devices that are published.", lambda each: each.devices),
    ("unhealthy_devices", "Devices that are not healthy.", lambda each: each.unhealthy),
    ("prepared_claims", "Claims that are prepared.", lambda each: each.prepared_claims),
    ("prepared_devices", "Devices of prepared claims.", lambda each: each.prepared_devices),
    ("registered", "1 if the kubelet knows the plugin.", lambda each: each.registered),
    ("resourceslices_synced", "1 if the API server has exactly the wanted slices.", lambda each: each.synced),
    ("publishing_problems", "Problems of publishing that are open.", lambda each: each.problems),
)
