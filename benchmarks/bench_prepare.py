"""How long draht itself needs to prepare a claim of eight devices, every commit synced to disk.

The driver is a simulated one that does nothing, so what is measured is draht's own part: the lock, two transactions,
the metadata file, the CDI spec. The database lies on a disk, as ``/var/lib`` does, CDI specs and metadata in memory, as
``/run`` does; a second run has the database in memory, too, and shows what is left without the disk. Besides: the same
with 1,000 claims prepared, a repeated call, and the disk's own time for what two commits sync. There is nothing to
compare with: Kubernetes' Go helper leaves records and recovery to each driver.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from draht import cdi  # noqa: E402 - found through the path above
from draht.api.resource import Device as WireDevice  # noqa: E402 - as above
from draht.api.resource import DeviceAttribute  # noqa: E402 - as above
from draht.driver.claims.preparation import Places, Preparer  # noqa: E402 - as above
from draht.driver.database import Database  # noqa: E402 - as above
from draht.driver.framework import ClaimDevices, Driver, Offer, Offered, Prepared  # noqa: E402 - as above
from toy_driver import NODE, claim  # noqa: E402 - as above

RUNS = 1000
DEVICES = 8
CLAIMS = 1000
WANTED_P99 = 5.0
"""Milliseconds."""


class Idle(Driver):
    """A simulated driver of GPUs that does nothing."""

    name = "toy.example.com"

    def discover(self) -> Offer:
        """Enough devices for all claims; as many attributes as a GPU has."""
        attributes = {f"attribute{number}": DeviceAttribute(string="x" * 20) for number in range(12)}
        return Offer.of(
            Offered(
                device=WireDevice(name=f"gpu-{number}", attributes=attributes),
                units=frozenset({f"GPU-{number}/{part}" for part in range(8)}),
            )
            for number in range(DEVICES + CLAIMS)
        )

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """Edits like those of a simulated GPU."""
        return Prepared(
            edits={
                device.key: cdi.ContainerEdits(
                    env=(f"GPU_{number}=simulated",),
                    device_nodes=(cdi.DeviceNode(path=f"/dev/gpu{number}", host_path="/dev/null", permissions="rw"),),
                )
                for number, device in enumerate(claim.devices)
            },
            common=cdi.ContainerEdits(
                mounts=tuple(
                    cdi.Mount(host_path=f"{self.files}/lib{number}.so", container_path=f"/usr/lib/lib{number}.so")
                    for number in range(4)
                )
            ),
        )


class Series:
    """Times of one action, by the clock and by the processor, in milliseconds."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.worked: list[float] = []

    def time(self, action: Callable[..., object], *arguments: object) -> None:
        """Do it once."""
        begin, worked = time.perf_counter(), time.thread_time()
        action(*arguments)
        self.taken.append((time.perf_counter() - begin) * 1000)
        self.worked.append((time.thread_time() - worked) * 1000)

    def numbers(self) -> dict[str, float]:
        """Median, 99th percentile and worst."""
        found: dict[str, float] = {}
        for name, times in (("", sorted(self.taken)), ("cpu ", sorted(self.worked))):
            found |= {f"{name}p50": times[len(times) // 2], f"{name}p99": times[int(len(times) * 0.99)]}
        return {**found, "max": max(self.taken)}


def measure(state: Path, memory: Path, runs: int) -> dict[str, dict[str, float]]:
    """All measurements with the database in one directory and the containers' files in another."""
    places = Places(
        cdi_directory=memory / "cdi", metadata_directory=memory / "metadata", files_directory=memory / "files"
    )
    database = Database(state)
    preparer = Preparer(Idle(), database, places, node_name=NODE, host_root=memory)
    preparer.recover()
    eight = [f"gpu-{number}" for number in range(DEVICES)]
    found: dict[str, Series] = {}

    def series(title: str) -> None:
        for number in range(runs):
            given = claim(f"u{number}", *eight)
            found.setdefault(f"prepare{title}", Series()).time(preparer.prepare, given)
            found.setdefault(f"prepare again{title}", Series()).time(preparer.prepare, given)
            found.setdefault(f"unprepare{title}", Series()).time(preparer.unprepare, f"u{number}")

    # As the node agent does.
    with database.kept_open():
        series("")
        for number in range(CLAIMS):
            preparer.prepare(claim(f"many{number}", f"gpu-{DEVICES + number}"))
        series(f", beside {CLAIMS:,} claims")
        found[f"recover {CLAIMS:,} claims, nothing to do"] = Series()
        for _ in range(3):
            found[f"recover {CLAIMS:,} claims, nothing to do"].time(preparer.recover)
    return {name: one.numbers() for name, one in found.items()}


def two_syncs(directory: Path, runs: int) -> dict[str, float]:
    """What the disk itself takes to make two appended pages last, which the commits of a preparation wait for."""
    directory.mkdir(parents=True)
    series = Series()
    with (directory / "probe").open("wb") as file:

        def probe() -> None:
            for _ in range(2):
                file.write(b"x" * 4096)
                file.flush()
                os.fsync(file.fileno())

        for _ in range(runs):
            series.time(probe)
    return series.numbers()


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="preparations of each series")
    parser.add_argument("--state", type=Path, default=None, help="directory of a disk for the database")
    words = parser.parse_args()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - in memory, as /run is
    with tempfile.TemporaryDirectory(dir=words.state) as disk, tempfile.TemporaryDirectory(dir=memory) as volatile:
        results = {
            "database on disk": measure(Path(disk) / "state", Path(volatile) / "1", words.runs),
            "database in memory": measure(Path(volatile) / "state", Path(volatile) / "2", words.runs),
        }
        results["database on disk"]["(two syncs alone)"] = two_syncs(Path(disk) / "probe", words.runs)
    print(f"{DEVICES} devices, a simulated driver that does nothing, {words.runs} runs; milliseconds")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; cpu: the processor's time, without waiting for it")
    columns = ("p50", "p99", "max", "cpu p50", "cpu p99")
    for place, measured in results.items():
        print(f"\n{place:44}" + "".join(f"{column:>9}" for column in columns))
        for name, numbers in measured.items():
            print(f"  {name:42}" + "".join(f"{numbers[column]:9.2f}" for column in columns))
    p99 = results["database on disk"]["prepare"]["p99"]
    print(f"\np99 of prepare on disk: {p99:.2f} ms, wanted at most {WANTED_P99:g} ms.")
    print("There is no peer: the Go helper for DRA drivers keeps no records.")
    if path := os.environ.get("DRAHT_BENCH_JSON"):
        Path(path).write_text(json.dumps({"load": os.getloadavg()[0], "ms": results}))


if __name__ == "__main__":
    main()
