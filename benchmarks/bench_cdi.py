"""How fast CDI specs are loaded, looked at again and injected, against the Go library in the same run.

The specs are synthetic, of the shape that nvidia-ctk gives them (no annotations, a few mounts and hooks in common, two
device nodes a device); 1,000 files with 8 devices each, once as JSON and once as YAML in block style. *Cold* is the
first load of a fresh process after the files have been evicted from the page cache, without the start of the process or
its imports; *warm* is the median of the loads after it. The Go library re-reads everything when it is asked to refresh
without a watch; with one it does nothing while nothing changes, so there is no peer for *unchanged*.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import oracle_client  # noqa: E402 - found through the path above
from draht import cdi  # noqa: E402 - as above

FILES = 1000
DEVICES = 8
ROUNDS = 7
INJECTIONS = 500

_FORMATS: tuple[Literal["json", "yaml"], ...] = ("json", "yaml")
_COLD = """
import sys, time
from draht import cdi
start = time.perf_counter_ns()
cache = cdi.Cache(sys.argv[1:])
devices = len(cache.devices())
print(time.perf_counter_ns() - start, devices)
"""


def spec(number: int) -> cdi.Spec:
    """One file's spec; the device nodes stand for ones that every machine has."""
    devices = tuple(
        cdi.Device(
            name=str(index),
            container_edits=cdi.ContainerEdits(
                device_nodes=(
                    cdi.DeviceNode(path=f"/dev/nvidia{index}", host_path="/dev/null", permissions="rw"),
                    cdi.DeviceNode(path=f"/dev/dri/card{index}", host_path="/dev/zero"),
                ),
                hooks=(
                    cdi.Hook(
                        hook_name="createContainer",
                        path="/usr/bin/nvidia-cdi-hook",
                        args=(
                            "nvidia-cdi-hook",
                            "create-symlinks",
                            "--link",
                            f"../card{index}::/dev/dri/by-path/{index}",
                        ),
                    ),
                ),
            ),
        )
        for index in range(DEVICES)
    )
    libraries = [f"/usr/lib/x86_64-linux-gnu/libnvidia-{index}.so.570.86.15" for index in range(10)]
    common = cdi.ContainerEdits(
        env=("NVIDIA_VISIBLE_DEVICES=void",),
        device_nodes=(cdi.DeviceNode(path="/dev/nvidiactl", host_path="/dev/full", permissions="rw"),),
        mounts=tuple(
            cdi.Mount(host_path=path, container_path=path, options=("ro", "nosuid", "nodev", "bind"))
            for path in libraries
        ),
    )
    return cdi.Spec(cdi_version="0.5.0", kind=f"vendor{number}.com/gpu", devices=devices, container_edits=common)


def evict(directory: Path) -> None:
    """Drop the files of a directory from the page cache; needs no privilege once they are written back."""
    for file in directory.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def load_draht(directory: Path) -> tuple[float, float]:
    """Milliseconds of a cold load and of a warm one."""
    evict(directory)
    said = subprocess.run([sys.executable, "-c", _COLD, directory], check=True, capture_output=True, text=True).stdout
    cold, devices = map(int, said.split())
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter_ns()
        found = len(cdi.Cache([directory]).devices())
        times.append(time.perf_counter_ns() - start)
        if not found == devices == FILES * DEVICES:
            sys.exit(f"draht found {found} and {devices} devices")
    return cold / 1e6, statistics.median(times[1:]) / 1e6


def load_go(oracle: oracle_client.Oracle, directory: Path) -> tuple[float, float]:
    """The same of the Go library."""
    oracle.close()
    oracle.call("ping", echo={})
    evict(directory)
    answer = oracle.call("cdi.bench_load", deadline=120.0, directories=[directory], rounds=ROUNDS + 1)
    if answer["devices"] != FILES * DEVICES:
        sys.exit(f"Go found {answer['devices']} devices")
    cold, *warm = answer["nanoseconds"]
    return cold / 1e6, statistics.median(warm) / 1e6


def unchanged(directory: Path) -> float:
    """Milliseconds of a refresh that finds nothing new."""
    cache = cdi.Cache([directory])
    cache.refresh()
    times = []
    for _ in range(ROUNDS * 3):
        start = time.perf_counter_ns()
        changed = cache.refresh()
        times.append(time.perf_counter_ns() - start)
        if changed:
            sys.exit("a refresh found changes where there are none")
    return statistics.median(times) / 1e6


def inject(oracle: oracle_client.Oracle, directory: Path) -> tuple[float, float]:
    """Milliseconds to inject 8 devices, of draht and of Go."""
    oci: dict[str, Any] = {
        "ociVersion": "1.2.0",
        "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "env": [f"V{index}=x" for index in range(20)]},
        "mounts": [{"destination": f"/m{index}", "type": "tmpfs", "source": "tmpfs"} for index in range(12)],
        "linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}]}},
    }
    names = [f"vendor5.com/gpu={index}" for index in range(DEVICES)]
    cache = cdi.Cache([directory])
    times = []
    for _ in range(INJECTIONS):
        target = copy.deepcopy(oci)
        start = time.perf_counter_ns()
        cache.inject(target, names)
        times.append(time.perf_counter_ns() - start)
    answer = oracle.call(
        "cdi.bench_inject", deadline=60.0, directories=[directory], rounds=INJECTIONS, oci=oci, names=names
    )
    (result,) = oracle.call("cdi.inject", directories=[directory], requests=[{"oci": oci, "names": names}])
    if oracle.call("cdi.oci", specs=[target]) != [result["oci"]]:
        sys.exit("draht and Go injected different things")
    return statistics.median(times) / 1e6, statistics.median(answer["nanoseconds"]) / 1e6


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--json", type=Path, default=os.environ.get("DRAHT_BENCH_JSON"), help="where to keep the numbers"
    )
    arguments = parser.parse_args()
    results: dict[str, dict[str, float | None]] = {}

    def report(what: str, ours: float, theirs: float | None) -> None:
        ratio = ours / theirs if theirs else None
        results[what] = {"draht_ms": ours, "go_ms": theirs, "ratio": ratio}
        go, relation = ("-", "-") if theirs is None or ratio is None else (f"{theirs:.3f}", f"{ratio:.2f}")
        print(f"{what:34} {ours:10.3f} {go:>10} {relation:>7}", flush=True)

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(f"{FILES} files with {DEVICES} devices each; milliseconds, warm is the median of {ROUNDS}")
    oracle = oracle_client.Oracle(oracle_client.build())
    try:
        go_version = oracle.call("cdi.bench_load", directories=[], rounds=1)["go"]
        print(f"{os.cpu_count()} cores, {memory:.0f} GiB; Python {platform.python_version()}, {go_version}")
        print(f"{'':34} {'draht':>10} {'Go':>10} {'ratio':>7}")
        with tempfile.TemporaryDirectory(prefix="draht-bench-") as scratch:
            for format_ in _FORMATS:
                directory = Path(scratch, format_)
                directory.mkdir()
                for number in range(FILES):
                    (directory / f"s{number:04}.{format_}").write_bytes(cdi.encode(spec(number), format=format_))
                (go_cold, go_warm), (cold, warm) = load_go(oracle, directory), load_draht(directory)
                report(f"load {format_}, cold", cold, go_cold)
                report(f"load {format_}, warm", warm, go_warm)
                report(f"refresh {format_}, nothing changed", unchanged(directory), None)
            report(f"inject {DEVICES} devices", *inject(oracle, Path(scratch, "json")))
    finally:
        oracle.close()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
