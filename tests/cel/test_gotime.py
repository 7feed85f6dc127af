"""Durations and timestamps are read and written as Go reads and writes them."""

from __future__ import annotations

import os
import random
from datetime import date, timedelta

import pytest

from draht.cel.gotime import (
    Instant,
    civil,
    days_from_civil,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from oracle_client import Oracle

SEED = os.environ.get("DRAHT_FUZZ_SEED", "1")
CASES = 1_000

DURATIONS = [
    ("0", 0, "0s"),
    ("-0", 0, "0s"),
    ("1h2m3.5s", 3_723_500_000_000, "3723.5s"),
    ("+1.s", 10**9, "1s"),
    (".5m", 30 * 10**9, "30s"),
    ("1µs1\u03bcs1us", 3_000, "0.000003s"),
    ("-1ns", -1, "-0.000000001s"),
    ("0.3333333333333333333h", 1_200 * 10**9, "1200s"),
    ("0.00000000000000000000001h", 0, "0s"),
    ("9223372036854775807ns", 2**63 - 1, "9223372036.854776s"),
    ("-9223372036854775808ns", -(2**63), "-9223372036.854776s"),
]
NO_DURATIONS = [
    "",
    "+",
    "1",
    "s",
    ".s",
    "1d",
    "1H",
    "1 s",
    "1e3s",
    "--1s",
    "1s ",
    "1s\n",
    "٣s",
    "9223372036854775808ns",
    "-9223372036854775809ns",
    "2562048h",
    "1" * 10_000 + "s",
    "100000h" * 26,
]
TIMESTAMPS = [
    ("1970-01-01T00:00:00Z", Instant(0, 0), "1970-01-01T00:00:00Z"),
    ("0001-01-01T00:00:00Z", Instant(-62135596800, 0), "0001-01-01T00:00:00Z"),
    ("9999-12-31T23:59:59.999999999Z", Instant(253402300799, 999_999_999), "9999-12-31T23:59:59.999999999Z"),
    ("2020-02-29T1:02:03,5+24:60", Instant(1582848123, 500_000_000, 90_000), "2020-02-29T01:02:03.5+25:00"),
    (
        "2020-01-01T00:00:00.1234567899-00:30",
        Instant(1577838600, 123_456_789, -1800),
        "2020-01-01T00:00:00.123456789-00:30",
    ),
    ("0001-01-01T00:00:00-24:00", Instant(-62135510400, 0, -86400), "0001-01-01T00:00:00-24:00"),
]
NO_TIMESTAMPS = [
    "",
    "2020-01-01",
    "2020-01-01 00:00:00Z",
    "2020-01-01t00:00:00z",
    "2020-01-01T00:00:00",
    "2020-1-01T00:00:00Z",
    "2020-01-01T00:00Z",
    "2020-01-01T00:00:60Z",
    "2020-01-01T24:00:00Z",
    "2020-02-30T00:00:00Z",
    "2021-02-29T00:00:00Z",
    "2020-13-01T00:00:00Z",
    "2020-01-00T00:00:00Z",
    "2020-01-01T00:00:00.Z",
    "2020-01-01T00:00:00+25:00",
    "2020-01-01T00:00:00+00:61",
    "2020-01-01T00:00:00+0000",
    "0000-12-31T23:59:59Z",
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "10000-01-01T00:00:00Z",
    "\uff12020-01-01T00:00:00Z",
    "2020-01-01T00:00:00Z\n",
]


@pytest.mark.parametrize(("text", "nanoseconds", "written"), DURATIONS)
def test_a_duration_is_read_and_written(text: str, nanoseconds: int, written: str) -> None:
    """The text has these nanoseconds, and they are written as seconds without an exponent."""
    assert parse_duration(text) == nanoseconds
    assert format_duration(nanoseconds) == written


@pytest.mark.parametrize("text", NO_DURATIONS, ids=lambda text: ascii(text[:30]))
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A text that Go doesn't read, or that has more than 64 bits, is a ValueError."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "instant", "written"), TIMESTAMPS)
def test_a_timestamp_is_read_and_written(text: str, instant: Instant, written: str) -> None:
    """The text is this instant, and it is written in the offset that it was read in."""
    assert parse_timestamp(text) == instant
    assert format_timestamp(instant) == written


@pytest.mark.parametrize("text", NO_TIMESTAMPS, ids=ascii)
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    """A text that Go doesn't read, or a time outside the years 1 to 9999, is a ValueError."""
    with pytest.raises(ValueError, match="timestamp"):
        parse_timestamp(text)


def test_days_and_dates_are_those_of_the_calendar() -> None:
    """Every 97th day from year 1 to 9999 has the date that Python's calendar gives it."""
    epoch = date(1970, 1, 1)
    for days in range(-719162, 2932896, 97):
        that = epoch + timedelta(days)
        assert civil(days) == (that.year, that.month, that.day)
        assert days_from_civil(that.year, that.month, that.day) == days


UNITS = ["h", "m", "s", "s", "ms", "us", "µs", "\u03bcs", "ns", "ns", "d", "", " "]
OFFSETS = ["Z", "Z", "z", "", "+00:00", "-00:00", "+01:30", "-23:59", "+24:00", "+24:60", "-25:00", "+0100"]
FRACTIONS = ["", "", ".", ".5", ",5", ".123456789", ".1234567891", ".000", "." + "9" * 30]


def _number(rng: random.Random) -> str:
    fraction = f"{rng.random():.{rng.randrange(25)}f}"
    return rng.choice(["0", "1", "00", str(rng.randrange(10**6)), str(rng.randrange(2**64)), fraction, ".5", "5.", "."])


def _duration(rng: random.Random) -> str:
    terms = [_number(rng) + rng.choice(UNITS) for _ in range(rng.randrange(1, 4))]
    return rng.choice(["", "", "", "-", "+", " "]) + "".join(terms)


def _timestamp(rng: random.Random) -> str:
    year = rng.choice([0, 1, 2, 1900, 1970, 2000, 2024, 2026, 9998, 9999, 10000, rng.randrange(10000)])
    month, day = rng.choice([0, 1, 2, 6, 12, 13]), rng.choice([0, 1, 28, 29, 30, 31, 32])
    hour, minute = rng.choice(["0", "00", "7", "23", "24", "007"]), rng.choice(["00", "59", "60", "5"])
    second = rng.choice(["00", "59", "60"]) + rng.choice(FRACTIONS)
    return f"{year:04}-{month:02}-{day:02}T{hour}:{minute}:{second}{rng.choice(OFFSETS)}"


def _ours(kind: str, text: str) -> str | None:
    try:
        return format_duration(parse_duration(text)) if kind == "duration" else format_timestamp(parse_timestamp(text))
    except ValueError:
        return None


@pytest.mark.parametrize("kind", ["duration", "timestamp"])
def test_generated_texts_are_read_as_upstream_reads_them(oracle: Oracle, kind: str) -> None:
    """Upstream computes ``string(duration("…"))`` to the same text, or refuses the same texts."""
    rng = random.Random(f"{SEED}:{kind}")
    make = _duration if kind == "duration" else _timestamp
    texts = [make(rng) for _ in range(CASES)]
    answers = oracle.call(
        "cel.evaluate",
        deadline=300,
        features={"listAttributes": True, "consumableCapacity": True},
        environment="stored",
        derived=True,
        expressions=[f'string({kind}("{text}"))' for text in texts],
        devices=[{"driver": "d"}],
        runs=1,
    )
    for text, answer in zip(texts, answers, strict=True):
        theirs = answer["outcomes"][0][0]["value"][1] if answer["accepted"] else None
        assert _ours(kind, text) == theirs, f"{kind} {text!r}, seed {SEED}"
