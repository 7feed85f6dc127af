"""How fast selectors are answered, against the Go library of dynamic resource allocation in the same run.

40,000 devices (5,000 nodes with 8 GPUs), synthetic, with the attributes that NVIDIA's driver publishes: of 2 models, or
of 208 models with driver versions, and in both cases with a UUID of their own. The same devices go to both sides, and
both must give the same answers.

- *one device*: `Selector.evaluate` and Go's ``DeviceMatches``, per device, over all devices. Go makes the variables of
  the expression anew each time; draht once per device, so its first evaluation is shown as well.
- *all devices*: a `Table` of draht against Go's loop. *cold*: nothing is numbered yet; *columns seen*: other selectors
  have read the same attributes; *asked before*: the very same selector again. What building the table takes, before any
  selector is known, is shown beside.
- *compile*: from text to a selector with the estimate of its cost.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import oracle_client  # noqa: E402 - found through the path above
from draht.api.resource.device import Device as WireDevice  # noqa: E402 - as above
from draht.cel import Device, Selector, compile_selector  # noqa: E402 - as above
from draht.cel.columns import Table  # noqa: E402 - as above

DEVICES = 40_000
BATCH = 4_000
ROUNDS = 5
DRIVER = "gpu.example.com"
OWN = f'device.attributes["{DRIVER}"]'
AMOUNT = f'device.capacity["{DRIVER}"]'


Report = Callable[[str, float, "float | None"], None]
"""Takes what was measured, and milliseconds of draht and of Go."""


@dataclass(frozen=True)
class Question:
    """A selector, and others that read the same of a device."""

    name: str
    expression: str
    others: tuple[str, ...]


def questions(ids: list[str]) -> list[Question]:
    """What is asked; ids are UUIDs of devices."""
    model = f'device.driver == "{DRIVER}" && {OWN}.productName == "%s"'
    size = f'{AMOUNT}.memory.compareTo(quantity("%s")) >= 0 && {OWN}.cudaComputeCapability.isGreaterThan(semver("%s"))'
    guarded = f"has({OWN}.driverVersion) && {OWN}.driverVersion.isLessThan(semver('%s')) || {OWN}.index == %d"
    one = f'{OWN}.uuid == "%s"'
    prefix = f'{OWN}.uuid.startsWith("%s")'
    return [
        Question("model", model % "NVIDIA Model 0", (model % "NVIDIA Model 1", model % "none")),
        Question(
            "memory and capability", size % ("40Gi", "8.0.0"), (size % ("60Gi", "7.5.0"), size % ("1Gi", "9.0.0"))
        ),
        Question("driver version", guarded % ("570.2.0", 3), (guarded % ("560.0.0", 1), guarded % ("550.1.9", 7))),
        Question("uuid", one % ids[17], (one % ids[4711], one % "nobody")),
        Question("uuid prefix", prefix % "GPU-a", (prefix % "GPU-b", prefix % "GPU-cc")),
    ]


def devices(shapes: int, rng: random.Random) -> list[dict[str, Any]]:
    """The devices as the wire has them."""
    models = [
        {
            "productName": {"string": f"NVIDIA Model {shape % 26}"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": ("Ampere", "Hopper", "Blackwell")[shape % 3]},
            "cudaComputeCapability": {"version": f"{7 + shape % 4}.{shape % 5}.0"},
            "driverVersion": {"version": f"5{40 + shape // 26 * 10}.{shape % 3}.15"},
            "cudaDriverVersion": {"version": "12.8.0"},
            "type": {"string": "gpu"},
        }
        for shape in range(shapes)
    ]
    memory = [f"{24 + 8 * (shape % 20)}Gi" for shape in range(shapes)]
    made = []
    for number in range(DEVICES):
        shape = number // 8 % shapes
        attributes = {
            **models[shape],
            "uuid": {"string": f"GPU-{uuid.UUID(int=rng.getrandbits(128), version=4)}"},
            "index": {"int": number % 8},
            "minor": {"int": number % 8},
        }
        capacity = {"memory": {"value": memory[shape]}}
        made.append({"name": f"gpu-{number % 8}", "attributes": attributes, "capacity": capacity})
    return made


def load_go(oracle: oracle_client.Oracle, wires: list[dict[str, Any]]) -> str:
    """Give the devices to Go; its version."""
    version = ""
    for start in range(0, len(wires), BATCH):
        part = [{"driver": DRIVER, **wire} for wire in wires[start : start + BATCH]]
        answer = oracle.call("cel.bench_load", deadline=120.0, anew=start == 0, devices=part)
        version = answer["go"]
    return version


def decoded(wires: list[dict[str, Any]]) -> list[WireDevice]:
    """The devices as draht's reader makes them, each with objects of its own."""
    decoder = msgspec.json.Decoder(list[WireDevice])
    return decoder.decode(msgspec.json.encode(wires))


def clock(function: Callable[[], object]) -> float:
    """Milliseconds of one call, without the garbage of earlier ones."""
    gc.collect()
    start = time.perf_counter_ns()
    function()
    return (time.perf_counter_ns() - start) / 1e6


def one_by_one(selector: Selector, made: list[Device]) -> Callable[[], object]:
    """Ask about every device."""
    evaluate = selector.evaluate
    return lambda: [evaluate(device) for device in made]


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--json", type=Path, default=os.environ.get("DRAHT_BENCH_JSON"), help="where to keep the numbers"
    )
    arguments = parser.parse_args()
    results: dict[str, dict[str, float | None]] = {}

    def report(what: str, ours: float, theirs: float | None) -> None:
        faster = theirs / ours if theirs else None
        results[what] = {"draht_ms": ours, "go_ms": theirs, "times_faster": faster}
        go, times = ("-", "-") if theirs is None or faster is None else (f"{theirs:.3f}", f"{faster:.1f}")
        print(f"{what:58} {ours:11.4f} {go:>10} {times:>9}", flush=True)

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    oracle = oracle_client.Oracle(oracle_client.build())
    try:
        version = oracle.call("cel.bench_load", anew=True, devices=[])["go"]
        print(f"{os.cpu_count()} cores, {memory:.0f} GiB; Python {platform.python_version()}, {version}")
        print(f"{DEVICES} devices; milliseconds, median of {ROUNDS}, cold the median of {ROUNDS} fresh tables")
        print(f"{'':58} {'draht':>11} {'Go':>10} {'faster':>9}")
        for shapes in (2, 208):
            of_shapes(oracle, report, shapes)
        compile_times(oracle, report)
    finally:
        oracle.close()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")


def of_shapes(oracle: oracle_client.Oracle, report: Report, shapes: int) -> None:
    """Measure every question on devices of so many shapes."""
    wires = devices(shapes, random.Random(shapes))
    load_go(oracle, wires)
    structs = decoded(wires)
    ids = [wire["attributes"]["uuid"]["string"] for wire in wires]
    del wires
    building = [clock(lambda: Table([Device.of(DRIVER, one) for one in structs])) for _ in range(ROUNDS)]
    report(f"{shapes} shapes: build the table", statistics.median(building), None)
    for question in questions(ids):
        ask(oracle, report, f"{shapes} shapes, {question.name}", question, structs)


def ask(
    oracle: oracle_client.Oracle,
    report: Report,
    what: str,
    question: Question,
    structs: list[WireDevice],
) -> None:
    """Measure one question on both sides."""
    answer = oracle.call("cel.bench_match", deadline=300.0, expression=question.expression, rounds=ROUNDS)
    theirs = statistics.median(answer["nanoseconds"]) / 1e6
    selector = compile_selector(question.expression)
    others = [compile_selector(other) for other in question.others]

    made = [Device.of(DRIVER, one) for one in structs]
    first = clock(one_by_one(selector, made))
    again = statistics.median(clock(one_by_one(selector, made)) for _ in range(ROUNDS))
    report(f"{what}: one device, first (per device)", first / DEVICES, theirs / DEVICES)
    report(f"{what}: one device, again (per device)", again / DEVICES, theirs / DEVICES)
    del made

    cold: list[float] = []
    seen: list[float] = []
    before: list[float] = []
    for _ in range(ROUNDS):
        table = Table([Device.of(DRIVER, one) for one in structs])
        cold.append(clock(lambda: table.evaluate(selector)))  # noqa: B023 - called at once
        verdict = table.evaluate(selector)
        if verdict.matches.to_bytes((DEVICES + 7) // 8, "little").hex() != answer["matches"]:
            sys.exit(f"draht and Go disagree about {question.expression}")
        if len(verdict.errors) != answer["failed"]:
            sys.exit(f"draht and Go fail on different devices with {question.expression}")
        seen.extend(clock(lambda: table.evaluate(other)) for other in others)  # noqa: B023 - called at once
        before.append(clock(lambda: table.evaluate(selector)))  # noqa: B023 - called at once
    report(f"{what}: all devices, cold", statistics.median(cold), theirs)
    report(f"{what}: all devices, columns seen", statistics.median(seen), theirs)
    report(f"{what}: all devices, asked before", statistics.median(before), theirs)


def compile_times(oracle: oracle_client.Oracle, report: Report) -> None:
    """Measure compiling."""
    for question in questions(["GPU-0"] * 5000):
        answer = oracle.call("cel.bench_compile", deadline=60.0, expression=question.expression, rounds=ROUNDS * 4)
        times = []
        for _ in range(ROUNDS * 4):
            compile_selector.cache_clear()
            times.append(clock(lambda: compile_selector(question.expression)))  # noqa: B023 - called at once
        theirs = statistics.median(answer["nanoseconds"]) / 1e6
        report(f"compile: {question.name}", statistics.median(times), theirs)


if __name__ == "__main__":
    main()
