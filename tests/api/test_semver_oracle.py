"""Versions against the Go library that upstream reads them with: verdict, numbers, text and order.

All texts are synthetic.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from draht.api.semver import MAX_ATTRIBUTE_LENGTH, Version, VersionError, is_valid_attribute
from oracle_client import Oracle

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "41"))
CASES = 2_000
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "100000"))
BATCH = 5_000

ALPHABET = "0123456789.+-abzAZv" + " _é\n٣\x00"
NUMBERS = [
    "0",
    "1",
    "2",
    "10",
    "00",
    "01",
    "570",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
]
WORDS = ["alpha", "beta", "rc", "rc1", "0a", "-", "--", "a-b", "A", "Z", "z", "00a", "1-1"]


def _identifiers(rng: random.Random) -> str:
    return ".".join(rng.choice(WORDS if rng.random() < 0.5 else NUMBERS) for _ in range(rng.randint(1, 3)))


def _number(rng: random.Random) -> str:
    return rng.choice(NUMBERS) if rng.random() < 0.15 else str(rng.randrange(rng.choice([3, 12, 600])))


def _text(rng: random.Random) -> str:
    parts = 3 if rng.random() < 0.85 else rng.randint(1, 4)
    text = ".".join(_number(rng) for _ in range(parts))
    if rng.random() < 0.5:
        text += "-" + _identifiers(rng)
    if rng.random() < 0.25:
        text += "+" + _identifiers(rng)
    if rng.random() < 0.12:
        text = rng.choice(["v", "vv", "V", "0", " ", "v0"]) + text
    if rng.random() < 0.25:
        for _ in range(rng.randint(1, 2)):
            place = rng.randint(0, len(text))
            text = text[:place] + rng.choice(ALPHABET) + text[place + rng.randrange(2) :]
    return text


def _read(make: Any, text: str) -> dict[str, object]:
    try:
        version = make(text)
    except VersionError:
        return {"accepted": False}
    return {
        "accepted": True,
        "text": str(version),
        "major": str(version.major),
        "minor": str(version.minor),
        "patch": str(version.patch),
    }


def _verdicts(text: str) -> Mapping[str, object]:
    return {"strict": _read(Version, text), "normalized": _read(Version.normalized, text)}


def _batches(count: int) -> Iterator[int]:
    return (min(BATCH, count - start) for start in range(0, count, BATCH))


def _agree(oracle: Oracle, seed: int, count: int) -> None:
    rng = random.Random(seed)
    accepted = 0
    for size in _batches(count):
        texts = [_text(rng) for _ in range(size)]
        answers = oracle.call_many("semver.parse", [{"text": text} for text in texts])
        for text, answer in zip(texts, answers, strict=True):
            assert _verdicts(text) == answer, f"reproduce: DRAHT_FUZZ_SEED={seed}, Version({text!r})"
            accepted += answer["strict"]["accepted"]
            if answer["strict"]["accepted"]:
                assert is_valid_attribute(text) == (len(text) <= MAX_ATTRIBUTE_LENGTH), f"attribute {text!r}"
    assert count // 3 < accepted < count, "the generator makes both good and bad texts"


def _orders_agree(oracle: Oracle, seed: int, count: int) -> None:
    rng = random.Random(seed)
    for size in _batches(count):
        questions: list[dict[str, str]] = []
        while len(questions) < size:
            a = _text(rng)
            # Neighbours: most random pairs differ in the first number already.
            b = _text(rng) if rng.random() < 0.2 else a.split("-")[0].split("+")[0] + rng.choice(["", "-", "+"])
            b += _identifiers(rng) if b.endswith(("-", "+")) else ""
            if _read(Version, a)["accepted"] and _read(Version, b)["accepted"]:
                questions.append({"a": a, "b": b})
        for question, answer in zip(questions, oracle.call_many("semver.compare", questions), strict=True):
            left, right = Version(question["a"]), Version(question["b"])
            ours = (left.compare(right), left < right, left <= right, left == right, left >= right, left > right)
            assert hash(left) == hash(right) or answer != 0  # unequal versions may share a hash, as 7 and 2**64-1 do
            theirs = (answer, answer < 0, answer <= 0, answer == 0, answer >= 0, answer > 0)
            assert ours == theirs, f"reproduce: DRAHT_FUZZ_SEED={seed}, semver.compare {question}"


def test_versions_are_read_as_upstream_reads_them(oracle: Oracle) -> None:
    """2,000 generated texts get upstream's verdict, numbers and text, strictly and normalised."""
    _agree(oracle, SEED, CASES)


def test_versions_are_ordered_as_upstream_orders_them(oracle: Oracle) -> None:
    """2,000 generated pairs have upstream's precedence."""
    _orders_agree(oracle, SEED, CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_many_versions_are_read_as_upstream_reads_them(oracle: Oracle) -> None:
    """A long run over fresh texts finds no difference."""
    _agree(oracle, SEED + 1, FUZZ_CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_many_versions_are_ordered_as_upstream_orders_them(oracle: Oracle) -> None:
    """A long run over fresh pairs finds no difference."""
    _orders_agree(oracle, SEED + 1, FUZZ_CASES)
