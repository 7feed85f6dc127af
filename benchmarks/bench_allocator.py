"""How fast claims are decided, against upstream's allocator in the same run, on the same inputs, with equal answers.

Five questions: (a) one claim on one given node; (b) which of 5,000 nodes with 8 GPUs fit, and what the first one gives;
(c) filling that cluster with 40,000 claims, each visible to the next; (d) instances that make a search long; (e)
partitions with counters. The cluster is once of equal nodes, once of 240 device shapes on 300 kinds of nodes with PCIe
names of their own. Building the snapshot is reported beside.

*Cold* is the first question about a snapshot that has just been built; *new claim* is a claim never seen before on
attributes that were asked for before; *same claim* is asked again. Upstream keeps compiled selectors and converts
slices anew each time, so it has one time for all three, except for the compilation in (a).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools"), str(ROOT / "benchmarks")]

import msgspec  # noqa: E402 - found through the path above, as all that follow

import oracle_client  # noqa: E402 - as above
from allocator_answers import Answer, comparable, differ, ours, snapshot_of, theirs  # noqa: E402 - as above
from allocator_clusters import HERE, claim, held, held_partitions, heterogeneous, homogeneous, migs, request  # noqa: E402 - as above
from allocator_instances import INSTANCES  # noqa: E402 - as above
from draht.allocator import Session, Snapshot, allocate, find  # noqa: E402 - as above
from draht.api.resource import AllocationResult, ResourceClaim, ResourceSlice  # noqa: E402 - as above

NODES, GPUS, MIG_NODES = 5000, 8, 200
OCCUPANCIES = (0.0, 0.5, 0.95)
ROUNDS = 200
"""Repetitions of a call that takes microseconds."""
FEW = 5
"""Repetitions of a call that takes milliseconds."""

Object = dict[str, Any]
Claims = tuple[ResourceClaim, ...]


def asked_for(salt: int = 0) -> dict[str, list[Object]]:
    """The claims of (a) and (b), by name; a salt makes them claims that were never seen before."""
    capacity = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'
    extra = f" && {salt} == {salt}" if salt else ""
    pair = [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]
    return {
        "any": [claim("c", request("r", 1, f"true{extra}" if salt else ""))],
        "memory": [claim("c", request("r", 1, capacity + extra))],
        "memory, 2 at one PCIe root": [claim("c", request("r", 2, capacity + extra), constraints=pair)],
        "none (regex)": [claim("c", request("r", 1, f'{HERE}.model.matches("^X{salt or ""}[0-9]+$")'))],
        "uuid (unique)": [claim("c", request("r", 1, f'{HERE}.uuid.endsWith("{salt % 90 + 10:02d}-07")'))],
    }


def decoded(claims: list[Object]) -> Claims:
    """Claims as draht takes them."""
    return msgspec.convert(claims, tuple[ResourceClaim, ...])


def prepared(case: Object) -> Snapshot:
    """A built snapshot about which nothing was asked yet."""
    snapshot = snapshot_of(case)
    snapshot.prepare()
    # What building left behind is building's to clear, not the first question's.
    gc.collect()
    return snapshot


def _asked_once(case: Object, fresh: list[Snapshot]) -> Answer:
    return ours(case, "node-0", "default", fresh.pop())


def milliseconds(call: Callable[[], object], rounds: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e6


class Bench:
    """One run: the oracle, the table and the numbers."""

    def __init__(self, oracle: oracle_client.Oracle) -> None:
        self.oracle = oracle
        self.results: dict[str, Object] = {}

    def report(self, what: str, go: float | None, note: str = "", **draht: float) -> None:
        """One line; times in milliseconds."""
        ratios = {name: go / each for name, each in draht.items() if go and each}
        self.results[what] = {"go_ms": go, "draht_ms": draht, "times_faster": ratios, "note": note}
        columns = "  ".join(
            f"{name.replace('_', ' ')} {each:.4g} ({ratios[name]:,.0f}x)" if name in ratios else f"{name} {each:.4g}"
            for name, each in draht.items()
        )
        print(f"{what:58} {'-' if go is None else f'{go:.4g}':>9}  {columns}{'  ' + note if note else ''}", flush=True)

    def load(self, description: Object) -> None:
        """Give a cluster to the oracle."""
        with tempfile.NamedTemporaryFile("wb", suffix=".json") as file:
            file.write(msgspec.json.encode(description))
            file.flush()
            self.oracle.call("structured.load", deadline=120.0, file=file.name)

    def hold(self, claims: list[Object]) -> None:
        """Let claims hold devices of the oracle's cluster."""
        self.oracle.call("structured.hold", deadline=120.0, allocatedClaims=claims)

    def check(self, what: str, mine: Sequence[AllocationResult] | None, their: Sequence[Any] | None) -> None:
        """Stop if the two sides disagree."""
        one = Answer("none") if mine is None else Answer("fits", comparable(mine))
        found = differ(one, theirs({"results": their, "class": "", "error": ""}))
        if found:
            sys.exit(f"{what}: {found}")

    def nodes(self, kind: str, description: Object, parts: str) -> None:
        """Questions about one node and about all nodes, at three occupancies."""
        self.load(description)
        for occupancy in OCCUPANCIES:
            holders = held(description, occupancy)
            self.hold(holders)
            case = description | {"allocatedClaims": holders}
            gc.collect()
            start = time.perf_counter()
            snapshot = prepared(case)
            built = (time.perf_counter() - start) * 1000
            where = f"{kind}, {occupancy:.0%} held"
            self.report(f"snapshot, {where}", None, "decoding the objects included", build=built)
            if "b" in parts:
                # Two fresh snapshots, so that each claim is the first to ask for an attribute or capacity.
                fresh = prepared(case), prepared(case)
                for number, (name, claims) in enumerate(asked_for().items()):
                    self.all(f"(b) {name}, {where}", fresh["PCIe" in name], snapshot, name, claims, number)
            if "a" in parts:
                fit = find(snapshot, decoded(asked_for()["memory, 2 at one PCIe root"]))
                node = fit.names()[len(fit) // 2]
                for number, (name, claims) in enumerate(asked_for().items()):
                    self.one(f"(a) {name}, {where}", snapshot, node, name, claims, number)

    def one(self, what: str, snapshot: Snapshot, node: str, name: str, claims: list[Object], number: int) -> None:
        """One claim on one node."""
        mine = decoded(claims)
        answer = self.oracle.call(
            "structured.bench_one", deadline=60.0, node=node, claims=claims, rounds=ROUNDS, cold=True
        )
        self.check(what, allocate(snapshot, mine, node), answer["results"])
        cold_go, *warm_go = answer["nanoseconds"]
        warm = milliseconds(lambda: allocate(snapshot, mine, node), ROUNDS)
        never_seen = decoded(asked_for(1000 + number)[name])
        cold = milliseconds(lambda: allocate(snapshot, never_seen, node), 1)
        self.report(what, statistics.median(warm_go) / 1e6, warm=warm)
        self.report(f"{what}, new claim", cold_go / 1e6, "with compilation", cold=cold)

    def all(self, what: str, fresh: Snapshot, known: Snapshot, name: str, claims: list[Object], number: int) -> None:
        """One claim on every node."""
        mine = decoded(claims)
        answer = self.oracle.call("structured.bench_nodes", deadline=120.0, claims=claims, rounds=2, cold=False)
        go = min(answer["nanoseconds"]) / 1e6
        start = time.perf_counter()
        found = find(fresh, mine)
        cold = (time.perf_counter() - start) * 1000
        if list(found.indexes()) != answer["fits"]:
            sys.exit(f"{what}: draht finds {len(list(found.indexes()))} nodes, Go {len(answer['fits'])}")
        self.check(what, found.first_results(), answer["first"])
        find(known, mine)
        again = milliseconds(lambda: find(known, mine), ROUNDS)
        salts = iter(range(2000 + 100 * number, 3000))
        new = milliseconds(lambda: find(known, decoded(asked_for(next(salts))[name])), FEW)
        self.report(what, go, f"{len(answer['fits'])} fit", cold=cold, new_claim=new, same_claim=again)

    def fill(self, description: Object) -> None:
        """Fill the cluster, one claim at a time."""
        self.load(description)
        for name, claims in (("any", asked_for()["any"]), ("memory", asked_for()["memory"])):
            total = NODES * GPUS
            levels = [total * part // 8 for part in range(8)] + [total - 40]
            answer = self.oracle.call(
                "structured.bench_fill", deadline=240.0, claims=claims, levels=levels, samples=4, timeoutMs=0
            )
            snapshot = prepared(description)
            mine = decoded(claims)
            start = time.perf_counter()
            session = Session(snapshot)
            placed = 0
            while session.allocate_first(mine) is not None:
                placed += 1
            filled = (time.perf_counter() - start) * 1000
            if placed != answer["placed"]:
                sys.exit(f"(c) {name}: draht placed {placed} claims, Go {answer['placed']}")
            places = [sample["placed"] for sample in answer["samples"]]
            for way, about in (("order", "in node order"), ("afterLast", "after the last node used")):
                cost = [statistics.median(sample[way]) for sample in answer["samples"]]
                steps = zip(places, places[1:], cost, cost[1:], strict=False)
                whole = sum((b - a) * (x + y) / 2 for a, b, x, y in steps) / 1e6
                self.report(f"(c) {placed} x {name}, Go {about}", whole, "Go integrated over 9 levels", fill=filled)
            bound = answer["reusedNanoseconds"] * placed / answer["reusedPlaced"] / 1e6
            self.report(
                f"(c) {placed} x {name}, Go without copies", bound, "more than its interface allows", fill=filled
            )

    def hard(self) -> None:
        """Instances that make upstream's search long."""
        for instance in INSTANCES:
            case = instance.case()
            answer = self.oracle.call("structured.allocate", deadline=instance.seconds + 30, cases=[case])[0][0]
            fresh = [snapshot_of(case) for _ in range(FEW + 1)]
            start = time.perf_counter()
            mine = ours(case, "node-0", "default", fresh.pop())
            cold = (time.perf_counter() - start) * 1000
            if found := differ(mine, theirs(answer)):
                sys.exit(f"(d) {instance.name}: {found}")
            again = milliseconds(partial(_asked_once, case, fresh), FEW)
            known = snapshot_of(case)
            same = milliseconds(partial(ours, case, "node-0", "default", known), FEW)
            note = f"{mine.kind}, unconfirmed: Go was stopped" if answer["timedOut"] else mine.kind
            what = f"(d) {instance.name} {instance.about}"
            self.report(what, answer["nanoseconds"] / 1e6, note, cold=cold, new_snapshot=again, same_claim=same)

    def partitions(self) -> None:
        """Claims for partitions on every node."""
        description = migs(MIG_NODES)
        self.load(description)
        wanted = {
            "1 x 1g": [claim("c", request("r", 1, f'{HERE}.profile == "1g"'))],
            "2 x 3g + 4 x 1g": [
                claim("c", request("l", 2, f'{HERE}.profile == "3g"'), request("s", 4, f'{HERE}.profile == "1g"'))
            ],
            "2 x 3g of one GPU": [
                claim(
                    "c",
                    request("r", 2, f'{HERE}.profile == "3g"'),
                    constraints=[{"matchAttribute": "gpu.example.com/parent"}],
                )
            ],
        }
        for occupancy in OCCUPANCIES:
            holders = held_partitions(description, occupancy)
            self.hold(holders)
            case = description | {"allocatedClaims": holders}
            known = prepared(case)
            for name, claims in wanted.items():
                mine = decoded(claims)
                what = f"(e) {name} on {MIG_NODES} nodes, {occupancy:.0%} held"
                answer = self.oracle.call("structured.bench_nodes", deadline=120.0, claims=claims, rounds=1, cold=False)
                fresh = prepared(case)
                start = time.perf_counter()
                found = find(fresh, mine)
                cold = (time.perf_counter() - start) * 1000
                if list(found.indexes()) != answer["fits"]:
                    sys.exit(f"{what}: draht finds {len(list(found.indexes()))} nodes, Go {len(answer['fits'])}")
                self.check(what, found.first_results(), answer["first"])
                find(known, mine)
                again = milliseconds(partial(find, known, mine), ROUNDS)
                self.report(
                    what, min(answer["nanoseconds"]) / 1e6, f"{len(answer['fits'])} fit", cold=cold, same_claim=again
                )

    def memory(self, kind: str, description: Object) -> None:
        """How much (b) adds to an interpreter that has imported everything."""
        with tempfile.NamedTemporaryFile("wb", suffix=".jsonl") as file:
            file.write(msgspec.json.encode(description | {"slices": []}) + b"\n")
            file.writelines(msgspec.json.encode(slice_) + b"\n" for slice_ in description["slices"])
            file.flush()
            command = [sys.executable, __file__, "--memory-of", file.name]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        imported, snapshot, asked = map(float, said.split())
        self.results[f"memory of (b), {kind}"] = {"imports_mib": imported, "snapshot_mib": snapshot, "asked_mib": asked}
        print(
            f"memory of (b), {kind}: {imported:.0f} MiB with all imports, then {snapshot:+.1f} MiB for the snapshot, "
            f"{asked:+.1f} MiB after its questions",
            flush=True,
        )


def resident() -> float:
    """MiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure_memory(file: Path) -> None:
    """Print MiB after the imports, and what a cluster read slice by slice, and all questions about it, add to that."""
    gc.collect()
    imported = resident()
    with file.open("rb") as lines:
        rest = msgspec.json.decode(next(lines))
        decoder = msgspec.json.Decoder(ResourceSlice)
        snapshot = snapshot_of(rest, tuple(decoder.decode(line) for line in lines))
        snapshot.prepare()
    gc.collect()
    built = resident()
    for claims in asked_for().values():
        find(snapshot, decoded(claims))
    gc.collect()
    print(imported, built - imported, resident() - imported)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--json", type=Path, default=os.environ.get("DRAHT_BENCH_JSON"), help="where to keep the numbers"
    )
    parser.add_argument("--only", default="abcdem", help="parts to run: letters of the questions, m for memory")
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        measure_memory(arguments.memory_of)
        return
    oracle = oracle_client.Oracle(oracle_client.build())
    bench = Bench(oracle)
    clusters = {"equal nodes": homogeneous(NODES, GPUS), "240 shapes": heterogeneous(NODES, GPUS)}
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        go = oracle.call("cdi.bench_load", directories=[], rounds=1)["go"]
        print(f"{os.cpu_count()} cores, {installed:.0f} GiB; Python {platform.python_version()}, {go}; milliseconds")
        print(f"{'':58} {'Go':>9}  draht (how many times faster)")
        for kind, description in clusters.items():
            if "a" in arguments.only or "b" in arguments.only:
                bench.nodes(kind, description, arguments.only)
        if "c" in arguments.only:
            bench.fill(clusters["equal nodes"])
        if "d" in arguments.only:
            bench.hard()
        if "e" in arguments.only:
            bench.partitions()
        if "m" in arguments.only:
            for kind, description in clusters.items():
                bench.memory(kind, description)
    finally:
        oracle.close()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(bench.results, indent=1) + "\n")


if __name__ == "__main__":
    main()
