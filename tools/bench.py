"""Run every benchmark and keep the numbers: ``python tools/bench.py [NAME…]``.

A benchmark is a script ``benchmarks/bench_NAME.py`` that prints a table for people and, if it wants its numbers kept,
writes one JSON value to the file that ``$DRAHT_BENCH_JSON`` names. This runner calls each in a process of its own, so
that no benchmark warms the caches of the next, and joins the JSON values with a description of the machine. It judges
nothing: a benchmark that compares with a peer says so itself.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import buildcache

ROOT = Path(__file__).resolve().parents[1]


def processor() -> str:
    """The processor's name as the kernel gives it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit() -> str | None:
    """The commit that is measured, marked if files differ from it."""
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or None


def run(script: Path, numbers: Path) -> object:
    """Run one benchmark; its numbers, or None if it keeps none.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    print(f"── {script.stem.removeprefix('bench_')} ".ljust(100, "─"), flush=True)
    subprocess.run([sys.executable, script], cwd=ROOT, env={**os.environ, "DRAHT_BENCH_JSON": str(numbers)}, check=True)
    return json.loads(numbers.read_text()) if numbers.exists() else None


def main() -> None:
    """Entry point of the script."""
    scripts = sorted((ROOT / "benchmarks").glob("bench_*.py"))
    if wanted := sys.argv[1:]:
        scripts = [script for script in scripts if script.stem.removeprefix("bench_") in wanted]
    if not scripts:
        sys.exit(
            "no such benchmark; there are: " + ", ".join(p.stem[6:] for p in (ROOT / "benchmarks").glob("bench_*.py"))
        )
    now = datetime.datetime.now(datetime.UTC)
    results: dict[str, object] = {}
    report = {
        "at": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "results": results,
    }
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        for script in scripts:
            name = script.stem.removeprefix("bench_")
            try:
                results[name] = run(script, Path(scratch) / f"{name}.json")
            except subprocess.CalledProcessError as error:
                failed.append(f"{name} (status {error.returncode})")
    kept = buildcache.folder("bench") / f"{now:%Y%m%dT%H%M%SZ}.json"
    kept.write_text(json.dumps(report, indent=1) + "\n")
    print(f"numbers: {kept}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
