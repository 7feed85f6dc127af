"""Make a case on which draht and upstream differ small: ``python tests/allocator_shrink.py SEED INDEX [MODE]``.

Takes away slices, devices, claims, requests and fields one after the other, as long as the same kind of difference
remains, and prints the case as YAML, ready to become a file in ``tests/allocator/regressions``.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import msgspec  # noqa: E402 - the paths above are needed when this runs as a program
import yaml  # noqa: E402 - as above

import oracle_client  # noqa: E402 - as above
from allocator_answers import Case, ask, differ, ours  # noqa: E402 - as above
from allocator_generator import FEATURES, case, profile_of  # noqa: E402 - as above

__all__ = ["as_yaml", "difference", "from_yaml", "kind_of", "shrink"]

MAX_TRIES = 4000
Step = str | int
KEPT = frozenset({"features", "on", "metadata", "name", "namespace", "driver", "pool", "resourceSliceCount", "spec"})
"""What is needed for a case to mean anything."""


def difference(oracle: oracle_client.Oracle, candidate: Case, mode: str) -> str | None:
    """What differs between the two on any of the case's nodes."""
    (answers,) = ask(oracle, [candidate])
    for node, their in zip(candidate["on"], answers, strict=True):
        if found := differ(ours(candidate, node, mode), their):
            return found
    return None


def kind_of(found: str | None) -> str | None:
    """What must stay the same while a case shrinks: the two outcomes, or the part that differs."""
    if found is None:
        return None
    if not found.startswith("draht: "):
        return found.split("\n")[0].split(", ")[-1].split(" ")[0]
    mine, _, their = found.partition(", upstream: ")
    return f"{mine.split()[1]} {their.split()[0]}"


def shrink(candidate: Case, remains: Callable[[Case], bool]) -> Case:
    """The smallest case found on which the difference remains.

    Args:
        candidate: A case with a difference.
        remains: Whether a smaller case still has it; one that can't be asked hasn't.
    """
    tries = 0
    for simpler in _broad(candidate):
        if remains(simpler):
            candidate = simpler
    progress = True
    while progress and tries < MAX_TRIES:
        progress = False
        for path in sorted(_places(candidate), key=len):
            smaller = _without(candidate, path)
            tries += 1
            if smaller is not None and remains(smaller):
                candidate, progress = smaller, True
                break
    return candidate


def _broad(candidate: Case) -> Iterator[Case]:
    if not all(candidate["features"].values()):
        yield candidate | {"features": dict.fromkeys(FEATURES, True)}
    for name, on in candidate["features"].items():
        if on:
            continue
        yield candidate | {"features": candidate["features"] | {name: True}}
    yield candidate | {"allocatedClaims": []}


def _places(value: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Every list element and every field that may be taken away."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"features", "on"}:
                continue
            if key not in KEPT and path:
                yield (*path, key)
            yield from _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield (*path, index)
            yield from _places(inner, (*path, index))


def _without(candidate: Case, path: tuple[Step, ...]) -> Case | None:
    """A copy with one thing less; a whole slice leaves its pool complete."""
    smaller = copy.deepcopy(candidate)
    holder: Any = smaller
    try:
        for step in path[:-1]:
            holder = holder[step]
        gone = holder.pop(path[-1])
    except (KeyError, IndexError):
        return None
    if path[0] == "slices" and len(path) == 2:
        pool = gone["spec"]["pool"]
        for slice_ in smaller["slices"]:
            other = slice_["spec"]["pool"]
            same = all(other.get(field) == pool.get(field) for field in ("name", "generation"))
            if same and slice_["spec"]["driver"] == gone["spec"]["driver"]:
                other["resourceSliceCount"] -= 1
    return smaller


def as_yaml(candidate: Case, about: str) -> str:
    """A case as a regression file; features are named where they are off."""
    off = sorted(name for name, on in candidate["features"].items() if not on)
    shown = {"about": about, **({"off": off} if off else {})}
    shown |= {key: value for key, value in candidate.items() if key not in {"features", "timeoutMs"} and value != []}
    return yaml.safe_dump(shown, sort_keys=False, width=110)


def from_yaml(text: str) -> Case:
    """A case from a regression file."""
    shown = yaml.safe_load(text)
    off = shown.pop("off", [])
    shown.pop("about", None)
    lists: Case = {key: [] for key in ("slices", "classes", "allocatedClaims", "nodes", "claims")}
    return {"features": {name: name not in off for name in FEATURES}, **lists, **shown}


def main() -> None:
    """Entry point of the script."""
    seed, index, mode = int(sys.argv[1]), int(sys.argv[2]), (sys.argv[3:] or ["default"])[0]
    oracle = oracle_client.Oracle(oracle_client.build())
    found = case(seed, index)
    kind = kind_of(difference(oracle, found, mode))
    if kind is None:
        sys.exit(f"seed {seed}, case {index} ({profile_of(index)}), mode {mode}: no difference")

    def remains(candidate: Case) -> bool:
        try:
            return kind_of(difference(oracle, candidate, mode)) == kind
        except (msgspec.ValidationError, oracle_client.OracleFailure):
            return False

    small = shrink(found, remains)
    sys.stdout.write(as_yaml(small, f"seed {seed}, case {index}") + f"# {difference(oracle, small, mode)}\n")
    oracle.close()


if __name__ == "__main__":
    main()
