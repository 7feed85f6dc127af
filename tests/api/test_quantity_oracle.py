"""Quantities against upstream's Go code: the same verdict, value, texts, order, sums and conversions.

All texts are synthetic. Exponents are bounded where upstream doesn't come back: a number that it holds as a big decimal
(more than 18 digits, or finer than nano) is written out in nano-units, which took 0.03 s to read and three minutes to
print with an exponent of 10^6; two numbers are aligned to compare or add them; a zero is
scaled up place by place. Other numbers in int64 form have any exponent.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from draht.api.gonumbers import wrap32
from draht.api.quantity import Format, Quantity, QuantityError
from oracle_client import Oracle

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "37"))
CASES = 2_000
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "100000"))
BATCH = 5_000

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
BAD_SUFFIXES = [
    "K",
    "i",
    "ki",
    "gi",
    "GB",
    "GiB",
    "mm",
    "Eii",
    "e",
    "Ee",
    "e+",
    "E-",
    "k3",
    "+",
    "-3",
    " ",
    "\n",
    "µ",
    "٣",
]
ALPHABET = "0123456789.+-eEinumkKMGTP" + " _,xé\x00"
EDGES = [0, 1, 7, 8, 999, 1000, 1023, 1024, 1025, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**18, 10**19]

EXPONENT = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]+)")
WRITTEN_OUT = 2_000
"""Largest exponent of a big decimal in a question: its text takes upstream about a millisecond."""


def _number(rng: random.Random) -> str:
    kind = rng.randrange(10)
    if kind < 3:
        digits = str(rng.randrange(10 ** rng.randint(1, 6)))
    elif kind < 5:
        digits = str(rng.choice(EDGES) + rng.randint(-2, 2))
    elif kind < 7:
        digits = "".join(rng.choices("0123456789", k=rng.randint(1, 24)))
    elif kind < 9:
        digits = str(rng.randint(1, 9999)) + "0" * rng.randint(0, 22)
    else:
        digits = "".join(rng.choices("0099123456789", k=rng.randint(20, 300)))
    digits = digits.lstrip("-")
    if rng.random() < 0.45:
        place = rng.randint(0, len(digits))
        digits = f"{digits[:place]}.{digits[place:]}"
        if rng.random() < 0.2:
            digits += "0" * rng.randint(1, 12)
    if rng.random() < 0.1:
        digits = "0" * rng.randint(1, 3) + digits
    return rng.choice(["", "", "", "-", "-", "+"]) + digits


def _exponent(rng: random.Random) -> str:
    kind = rng.randrange(8)
    if kind < 4:
        value = rng.randint(-12, 22)
    elif kind < 5:
        value = rng.randint(-400, 400)
    elif kind < 6:
        value = rng.choice([1, -1]) * 10 ** rng.randint(2, 20)
    else:
        value = rng.choice([1, -1]) * rng.choice([2**31, 2**32, 2**33, 2**63, 2**64]) + rng.randint(-12, 12)
    sign = "+" if value >= 0 and rng.random() < 0.2 else ""
    return rng.choice("eE") + sign + ("0" * rng.randint(1, 3) if value >= 0 and rng.random() < 0.1 else "") + str(value)


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 3)):
        place = rng.randint(0, len(text))
        change = rng.randrange(3)
        if change == 0:
            text = text[:place] + rng.choice(ALPHABET) + text[place:]
        elif change == 1:
            text = text[:place] + text[place + 1 :]
        else:
            text = text[:place] + rng.choice(ALPHABET) + text[place + 1 :]
    return text


def _answerable(text: str, limit: int = WRITTEN_OUT) -> bool:
    """Whether upstream answers about the text within a blink."""
    match = EXPONENT.fullmatch(text)
    if match is None:
        return True
    if len(match[4].lstrip("+-0")) > 19 or not -(2**63) <= int(match[4]) < 2**63:
        return True  # refused
    exponent, places = wrap32(int(match[4])), len(match[3])
    digits = match[2].lstrip("0") + match[3]
    # A zero is scaled up one place at a time for as long as its exponent says.
    small = digits.strip("0") and len(digits) <= 17 and wrap32(exponent - places) >= -9
    return abs(exponent) <= limit or bool(small and limit == WRITTEN_OUT)


def _texts(rng: random.Random, count: int) -> Iterator[str]:
    while count:
        kind = rng.randrange(20)
        suffix = rng.choice(SUFFIXES) if kind < 11 else _exponent(rng)
        if kind == 19:
            suffix = rng.choice(BAD_SUFFIXES)
        text = _number(rng) + suffix
        if kind in (16, 17):
            text = _mutated(rng, text)
        elif kind == 18:
            text = "".join(rng.choices(ALPHABET, k=rng.randint(0, 8)))
        if _answerable(text):
            count -= 1
            yield text


def _reduced(mantissa: int, exponent: int) -> tuple[int, int]:
    """The value in one form: no trailing zeros."""
    digits = str(mantissa)
    zeros = len(digits) - len(digits.rstrip("0")) if mantissa else 0
    return (int(digits[: len(digits) - zeros]), exponent + zeros) if mantissa else (0, 0)


def _facts(quantity: Quantity) -> dict[str, object]:
    integer = quantity.as_int64()
    return {
        "worth": _reduced(quantity.mantissa, quantity.exponent),
        "big": quantity._big,
        "format": str(quantity.format),
        "text": str(quantity),
        "canonical": quantity.canonical(),
        "sign": quantity.sign(),
        "int64": None if integer is None else str(integer),
        "value": str(quantity.value()),
        "milli": str(quantity.milli_value()),
        "nano": str(quantity.scaled_value(-9)),
        "float": _bits(quantity.as_approximate_float64()),
    }


def _bits(number: float) -> str:
    return "nan" if math.isnan(number) else struct.pack(">d", number).hex()


def _expected(amount: Mapping[str, Any]) -> dict[str, object]:
    known = {
        name: amount[name] for name in ("big", "format", "text", "canonical", "sign", "int64", "value", "milli", "nano")
    }
    number = struct.unpack(">d", bytes.fromhex(amount["float"]))[0]
    return known | {"worth": _reduced(int(amount["unscaled"]), amount["exponent"]), "float": _bits(number)}


def _parsed(text: str) -> dict[str, object] | None:
    try:
        return _facts(Quantity(text))
    except QuantityError:
        return None


def _agree(oracle: Oracle, seed: int, count: int) -> None:
    rng = random.Random(seed)
    accepted = 0
    for start in range(0, count, BATCH):
        texts = list(_texts(rng, min(BATCH, count - start)))
        answers = oracle.call_many("quantity.parse", [{"text": text} for text in texts])
        for text, answer in zip(texts, answers, strict=True):
            expected = _expected(answer["amount"]) if answer["accepted"] else None
            accepted += answer["accepted"]
            assert _parsed(text) == expected, f"reproduce: DRAHT_FUZZ_SEED={seed}, Quantity({text!r})"
    assert count // 3 < accepted < count, "the generator makes both good and bad texts"


def _pair_facts(a: Quantity, b: Quantity, factor: int) -> dict[str, object]:
    return {
        "compare": a.compare(b),
        "sum": _facts(a + b),
        "difference": _facts(a - b),
        "product": _facts(a * factor),
        "negated": _facts(-a),
        "back": _facts(a + b - a),
    }


def _all_expected(answer: Mapping[str, Any]) -> dict[str, object]:
    return {name: value if name == "compare" else _expected(value) for name, value in answer.items()}


def _factor(rng: random.Random) -> int:
    return rng.choice(
        [0, 1, -1, 2, 10, 1000, 1024, -7, 2**31, 2**62, 2**63 - 1, -(2**63), rng.randint(-(10**9), 10**9)]
    )


def _pairs_agree(oracle: Oracle, seed: int, count: int) -> None:
    rng = random.Random(seed)
    for start in range(0, count, BATCH):
        questions: list[dict[str, Any]] = []
        texts = _texts(rng, 100 * BATCH)
        while len(questions) < min(BATCH, count - start):
            a = next(text for text in texts if _answerable(text, 400) and _parsed(text))
            b = a + rng.choice(["", "0"]) if rng.random() < 0.1 else next(texts)
            if _answerable(b, 400) and _parsed(b):
                questions.append({"a": a, "b": b, "factor": _factor(rng)})
        for question, answer in zip(questions, oracle.call_many("quantity.pair", questions), strict=True):
            left, right = Quantity(question["a"]), Quantity(question["b"])
            ours = _pair_facts(left, right, question["factor"])
            assert ours == _all_expected(answer), f"reproduce: DRAHT_FUZZ_SEED={seed}, quantity.pair {question}"
            order = answer["compare"]
            relations = (left == right, left < right, left <= right, left > right, left >= right)
            theirs = (order == 0, order < 0, order <= 0, order > 0, order >= 0)
            assert relations == theirs, f"reproduce: DRAHT_FUZZ_SEED={seed}, order of {question}"
            if order == 0:
                assert hash(left) == hash(right), f"reproduce: DRAHT_FUZZ_SEED={seed}, hash of {question}"


def test_texts_mean_what_upstream_reads(oracle: Oracle) -> None:
    """2,000 generated texts get upstream's verdict, value, texts and conversions."""
    _agree(oracle, SEED, CASES)


def test_pairs_relate_as_upstream_says(oracle: Oracle) -> None:
    """2,000 generated pairs compare, add, subtract and multiply as upstream's, in value and in form."""
    _pairs_agree(oracle, SEED, CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_many_texts_mean_what_upstream_reads(oracle: Oracle) -> None:
    """A long run over fresh texts finds no difference."""
    _agree(oracle, SEED + 1, FUZZ_CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_many_pairs_relate_as_upstream_says(oracle: Oracle) -> None:
    """A long run over fresh pairs finds no difference."""
    _pairs_agree(oracle, SEED + 1, FUZZ_CASES)


def test_made_values_behave_as_upstream(oracle: Oracle) -> None:
    """Values that come from numbers instead of texts, at the edges of 64 bits, compute and print as upstream's."""
    rng = random.Random(SEED)
    edges = [0, 1, -1, 1023, 1024, -1024, 2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1, 10**18]
    questions: list[dict[str, Any]] = [
        {
            "value": rng.choice([*edges, rng.randint(-(2**63), 2**63 - 1)]),
            "other": rng.choice([*edges, rng.randint(-(2**63), 2**63 - 1)]),
            "scale": rng.randint(-9, 18),
            "format": str(rng.choice(list(Format))),
        }
        for _ in range(CASES)
    ]
    for question, answer in zip(questions, oracle.call_many("quantity.make", questions), strict=True):
        made = Quantity.of(question["value"], Format(question["format"]), scale=question["scale"])
        other = Quantity.of(question["other"])
        ours = {
            "self": _facts(made),
            "compare": made.compare(other),
            "sum": _facts(made + other),
            "difference": _facts(made - other),
            "product": _facts(made * question["other"]),
            "negated": _facts(-made),
        }
        assert ours == _all_expected(answer), f"reproduce: DRAHT_FUZZ_SEED={SEED}, quantity.make {question}"


@pytest.mark.parametrize(
    "document",
    [
        '"80Gi"',
        '" 80Gi "',
        '"\u00a0\u2003\u0085\u30001\u2028"',
        '"\u200b1"',
        '"1 1"',
        '""',
        '" "',
        "8",
        "-8",
        "1.5",
        "0.1",
        "1e21",
        "123456789012345678901234567890",
        "true",
        "[]",
        "{}",
    ],
)
def test_wire_values_are_read_as_upstream_unmarshals_them(oracle: Oracle, document: str) -> None:
    """What a decoder makes of a JSON value is what upstream reads from the document, or refused as there."""
    answer = oracle.call("quantity.unmarshal", document=document)
    try:
        ours: dict[str, object] | None = _facts(Quantity.from_wire(json.loads(document)))
    except QuantityError:
        ours = None
    assert (ours is not None) == answer["accepted"]
    if ours is not None:
        expected = _expected(answer["amount"])
        assert [ours["worth"], ours["canonical"]] == [expected["worth"], expected["canonical"]]
