"""Specs against the Go library: same verdict, same minimum version, same decoded content."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cdi_cases import cases, first_seed, spec_value
from cdi_deviations import explained
from cdi_texts import mutate, spec_text
from draht import cdi
from draht.cdi import quick
from draht.cdi.decode import decode_nodes
from draht.cdi.version import enforced_version
from oracle_client import Oracle

CORPUS = [path.read_bytes() for path in sorted((Path(__file__).parents[1] / "data/cdi").glob("*/*")) if path.is_file()]
_BATCH = 250
_POINTERS = frozenset(("uid", "gid", "fileMode", "timeout", "intelRdt"))
"""Fields for which absent and zero differ."""
_MAPS = frozenset(("annotations",))


def spec_case(seed: int) -> bytes:
    """The text of a case."""
    rng = random.Random(seed)
    if rng.random() < 0.15:
        # What vendors write, damaged: mostly larger and of other shapes than what is generated.
        return mutate(rng, rng.choice(CORPUS))
    data = spec_text(rng, spec_value(rng))
    return mutate(rng, data) if rng.random() < 0.25 else data


def ours(data: bytes) -> dict[str, Any]:
    """What draht says of a text, in the form in which the oracle says it."""
    try:
        spec = decode_nodes(data)
    except cdi.CDIError as error:
        spec, refusal = None, str(error)
    short_cut = quick.decode(data)
    assert short_cut is None or short_cut == spec, "the short cut reads something else than the node decoder"
    if spec is None:
        return {"accepted": False, "error": refusal}
    answer = {"accepted": True, "minimum": enforced_version(spec), "spec": json.loads(msgspec.json.encode(spec))}
    problems = list(cdi.problems(spec))
    assert cdi.VERSIONS.index(cdi.minimum_version(spec)) >= cdi.VERSIONS.index(enforced_version(spec))
    return {**answer, "accepted": not problems, "error": "; ".join(map(str, problems))}


def canonical(value: Any, key: str = "") -> Any:
    """A decoded spec without what Go writes and draht leaves out: empty values that mean "not said"."""
    if isinstance(value, dict):
        parts = {name: canonical(part, name) for name, part in value.items()}
        if key in _MAPS:
            return parts
        return {name: part for name, part in parts.items() if part or (name in _POINTERS and part is not None)}
    return [canonical(part) for part in value] if isinstance(value, list) else value


def difference(go: dict[str, Any], draht: dict[str, Any]) -> str | None:
    """In what the two answers differ; None if in nothing."""
    if go["accepted"] != draht["accepted"]:
        return "verdict"
    if not go["accepted"]:
        return None
    if go["minimum"] != draht["minimum"]:
        return "minimum version"
    return None if canonical(go["spec"]) == canonical(draht["spec"]) else "content"


def compare(oracle: Oracle, first: int, count: int) -> Counter[str]:
    """Compare cases; fails with one line that reproduces the first unexplained difference."""
    seen: Counter[str] = Counter()
    for start in range(first, first + count, _BATCH):
        seeds = range(start, min(start + _BATCH, first + count))
        texts = [spec_case(seed) for seed in seeds]
        answers = oracle.call_many("cdi.parse", [{"data": text} for text in texts])
        for seed, text, go in zip(seeds, texts, answers, strict=True):
            mine = ours(text)
            what = difference(go, mine)
            seen["accepted" if go["accepted"] else "refused"] += 1
            seen["short cut"] += quick.decode(text) is not None
            if what is None:
                continue
            deviation = explained(text, oracle, ours)
            assert deviation is not None, (
                f"{what}: reproduce with DRAHT_FUZZ_SEED={seed} DRAHT_FUZZ_CASES=1 pytest -m fuzz {__file__}\n"
                f"{text!r}\ngo:    {go}\ndraht: {mine}"
            )
            seen[deviation.name] += 1
    return seen


def test_generated_specs_get_the_same_answer(oracle: Oracle) -> None:
    """2,000 generated, odd and damaged texts have Go's verdict, minimum version and content."""
    seen = compare(oracle, 0, 2000)
    # A generator that only makes rubbish, or nothing wrong, would compare nothing.
    assert min(seen["accepted"], seen["refused"], seen["short cut"]) > 300, seen
    assert sum(seen.values()) - seen["accepted"] - seen["refused"] - seen["short cut"] < 20, seen


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_many_generated_specs_get_the_same_answer(oracle: Oracle) -> None:
    """As above, with as many cases as ``DRAHT_FUZZ_CASES`` says."""
    compare(oracle, first_seed(), cases(50_000))
