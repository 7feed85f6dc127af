"""How fast quantities are read, compared and written, against upstream's Go code in the same run.

Two workloads of 100,000 synthetic amounts: `distinct` has no text twice, which is the worst case for the cache of read
texts; `cluster` has the few amounts that the devices of a cluster share. Both sides get the same texts in the same
order and do the same three loops: read all, compare each with the next, write each canonically. `read, cold` starts
with an empty cache. Each number is the median of several rounds; the ratio is draht's time by Go's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import oracle_client  # noqa: E402 - found through the path above
from draht.api import quantity  # noqa: E402 - as above
from draht.api.quantity import Quantity  # noqa: E402 - as above

VALUES = 100_000
ROUNDS = 5
SEED = 20
SHARED = ["80Gi", "40Gi", "81920Mi", "141Gi", "16", "108", "7", "100m", "1500m", "1.5Gi", "0", "94Gi"]


def workloads() -> dict[str, list[str]]:
    """The texts of each workload."""
    rng = random.Random(SEED)
    suffixes = ["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]
    distinct = {f"{rng.randrange(1, 10**6)}{rng.choice(suffixes)}" for _ in range(VALUES + VALUES // 10)}
    return {
        "distinct": rng.sample(sorted(distinct), VALUES),
        "cluster": [rng.choice(SHARED) for _ in range(VALUES)],
    }


def timed(action: Callable[[], object]) -> tuple[int, Any]:
    """Nanoseconds that the action takes, and its result."""
    start = time.perf_counter_ns()
    result = action()
    return time.perf_counter_ns() - start, result


def measure_draht(texts: list[str]) -> dict[str, int]:
    """Nanoseconds per loop, and what the loops counted."""
    quantity._cached.cache_clear()
    cold, _ = timed(lambda: [Quantity(text) for text in texts])
    warm, read = timed(lambda: [Quantity(text) for text in texts])
    compared, less = timed(lambda: sum(a < b for a, b in itertools.pairwise(read)))
    written, length = timed(lambda: sum(len(amount.canonical()) for amount in read))
    return {
        "read, cold": cold,
        "read, warm": warm,
        "compare": compared,
        "write": written,
        "less": less,
        "length": length,
    }


def measure_go(oracle: oracle_client.Oracle, texts: list[str]) -> dict[str, int]:
    """The same of upstream's code, which has no cache."""
    answer = oracle.call("quantity.bench", deadline=60.0, texts=texts)
    return {
        "read, cold": answer["parse_ns"],
        "read, warm": answer["parse_ns"],
        "compare": answer["compare_ns"],
        "write": answer["write_ns"],
        "less": answer["less"],
        "length": answer["length"],
    }


def median(rounds: list[dict[str, int]], name: str) -> float:
    """Nanoseconds per value."""
    return statistics.median(numbers[name] for numbers in rounds) / VALUES


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--json", type=Path, default=os.environ.get("DRAHT_BENCH_JSON"), help="where to keep the numbers"
    )
    arguments = parser.parse_args()

    oracle = oracle_client.Oracle(oracle_client.build())
    results: dict[str, dict[str, dict[str, float]]] = {}
    print(f"{VALUES} values, median of {ROUNDS} rounds, nanoseconds per value")
    print(f"{'workload':10} {'loop':12} {'draht':>8} {'Go':>8} {'ratio':>7}")
    try:
        for workload, texts in workloads().items():
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(measure_draht(texts))
                theirs.append(measure_go(oracle, texts))
                if any(ours[-1][name] != theirs[-1][name] for name in ("less", "length")):
                    sys.exit(f"draht and Go disagree about {workload}")
            for name in ("read, cold", "read, warm", "compare", "write"):
                mine, go = median(ours, name), median(theirs, name)
                results.setdefault(workload, {})[name] = {"draht_ns": mine, "go_ns": go, "ratio": mine / go}
                print(f"{workload:10} {name:12} {mine:8.0f} {go:8.0f} {mine / go:7.1f}")
    finally:
        oracle.close()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
