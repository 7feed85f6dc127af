"""Plain scalars against the YAML library of kubectl."""

from __future__ import annotations

import json
import random

import pytest

from api.objects import cases
from draht.api import scalar, yaml
from draht.api.reader.strict import BAD, Walker
from oracle_client import Oracle

TABLE = [
    ("yes", True), ("No", False), ("ON", True), ("off", False), ("y", True), ("N", False), ("yEs", "yEs"),
    ("~", None), ("", None), ("Null", None), ("nULL", "nULL"),
    ("0", 0), ("-0", 0), ("+7", 7), ("010", 8), ("08", 8.0), ("0o17", 15), ("0x1F", 31), ("0b101", 5), ("-0b11", -3),
    ("0b+101", 5), ("0b-11", -3), ("0b_-1_1", -3), ("-0b+1", "-0b+1"), ("0B+1", "0B+1"),
    ("1_000", 1000), ("_1", "_1"), ("9223372036854775808", 2**63), ("-9223372036854775809", -9.223372036854775808e18),
    ("18446744073709551616", 1.8446744073709552e19), ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5), ("._5", "._5"),
    ("1e999", "1e999"), ("+-1", "+-1"), ("-", "-"), (".", "."), ("0x", "0x"), ("1:30", "1:30"),
    ("2026-01-31", "2026-01-31"), ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"), ("1.2.3", "1.2.3"), ("=", "="),
]  # fmt: skip


def ours(text: str) -> object:
    """What draht makes of a text that holds one document."""
    walker = Walker("test")
    value = walker.untyped(next(yaml.documents(text)), "")
    return BAD if any(not problem.warning for problem in walker.problems) else value


@pytest.mark.parametrize(("text", "value"), TABLE)
def test_a_plain_scalar_means_what_kubectl_reads(text: str, value: object) -> None:
    """Each form resolves to the value and type that Kubernetes' tools give it."""
    resolved = scalar.resolve(text)[1]
    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize("text", ['"yes"', "'12'", "!!str 12", '! "x"', "|-\n    off"])
def test_a_quoted_scalar_is_a_string(text: str) -> None:
    """Quotes, block style and an explicit string tag keep a text a string."""
    value = ours(f"a: {text}")
    assert isinstance(value, dict)
    assert isinstance(value["a"], str)


class Number(str):
    """A number by its digits."""

    __slots__ = ()


def digits(value: object) -> object:
    """A value with its numbers as JSON writes them."""
    if isinstance(value, dict):
        return {key: digits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [digits(item) for item in value]
    if isinstance(value, float):
        return Number(scalar.json_number(value))
    return Number(value) if isinstance(value, int) and not isinstance(value, bool) else value


def random_scalar(chance: random.Random) -> str:
    """A short text of the characters that decide between types."""
    alphabet = chance.choice(["0123456789", "01._+-eExob", "0123456789.eE+-_", "yYnNoOfFtTrueals~", "0123456789:-TZ ."])
    return "".join(chance.choice(alphabet) for _ in range(chance.randint(1, 9))).strip()


def test_random_scalars_mean_the_same_to_kubectl(oracle: Oracle) -> None:
    """Any short plain text has the value that kubectl's YAML library gives it, as a value and as a key."""
    chance = random.Random("plain scalars")
    texts = [text for text, _ in TABLE] + [random_scalar(chance) for _ in range(cases(2000))]
    documents = [f"a: {text}" for text in texts] + [f"{text}: 1" for text in texts if text]
    answers = oracle.call_many("yaml.json", [{"text": document.encode()} for document in documents])
    compared = 0
    for document, answer in zip(documents, answers, strict=True):
        try:
            value = ours(document)
        except yaml.YamlError:
            assert "error" in answer, document
            continue
        if "error" in answer:
            assert value is BAD, f"{document!r}: draht reads {value!r}, kubectl: {answer['error']}"
            continue
        if value is BAD and document.endswith(": 1"):
            continue  # a float as a key: draht refuses what Go would round
        compared += 1
        theirs = json.loads(answer["json"], parse_int=Number, parse_float=Number)
        assert digits(value) == theirs, f"{document!r}: kubectl reads {answer['json']}"
    assert compared > len(documents) * 0.8


NUMBERS = [0.0, -0.0, 1.0, 0.5, 1e20, 1e21, 1.5e300, 1e-6, 9.99e-7, 1e-7, 123456789.125, 5e-324, 1.7976931348623157e308]


def test_floats_are_written_as_go_writes_them(oracle: Oracle) -> None:
    """A float that stands for an amount has the digits that kubectl sends to the server."""
    chance = random.Random("floats")
    numbers = NUMBERS + [chance.uniform(-1, 1) * 10.0 ** chance.randint(-12, 26) for _ in range(cases(500))]
    documents = [f"[{number!r}]".replace("e+", "e") for number in numbers]
    answers = oracle.call_many("yaml.json", [{"text": document.encode()} for document in documents])
    for number, answer in zip(numbers, answers, strict=True):
        assert f"[{scalar.json_number(number)}]" == answer["json"], number
