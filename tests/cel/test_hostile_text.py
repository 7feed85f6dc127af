"""Texts that are made to break a parser."""

from __future__ import annotations

import inspect
import random
import sys

import pytest

from cel_hostile import DEEP, HOSTILE
from cel_trees import ALL_MACROS, random_text
from draht.cel.errors import CompileError
from draht.cel.lexer import MOST_ISSUES
from draht.cel.parser import parse, parse_text


def _error(text: str) -> CompileError | None:
    try:
        parse(text, ALL_MACROS)
    except CompileError as error:
        return error
    return None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_judged(name: str) -> None:
    """Every hostile text becomes a tree or an error with a picture that a terminal can show."""
    error = _error(HOSTILE[name])
    if error is not None:
        assert 0 < len(error.issues) <= MOST_ISSUES
        assert len(error.picture()) < 10_000
        assert error.picture().replace("\n", "").isprintable()


@pytest.mark.parametrize("name", DEEP)
def test_what_the_language_allows_is_read(name: str) -> None:
    """The deepest and longest texts that upstream reads are read."""
    parse(DEEP[name], ALL_MACROS)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_needs_little_stack(name: str) -> None:
    """Reading needs no more of Python's stack than a short text does."""
    depth = len(inspect.stack(0))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 60)
    try:
        _error(HOSTILE[name])
    finally:
        sys.setrecursionlimit(limit)


def test_reading_takes_linear_work() -> None:
    """Twice the text needs about twice the steps, for texts that grow in each way."""
    for before, core, after in (("(", "1", ")"), ("a.b", "", ""), ('"""', "", ""), ("[=,", "1", "]"), ("-", "1", "")):
        counts = [_steps(before * size + core + after * size) for size in (1_000, 2_000)]
        assert counts[1] < 2.5 * counts[0] + 1_000, f"{before!r}: {counts}"


def _steps(text: str) -> int:
    """How many Python lines and calls reading the text takes."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]  # typeshed wants frame types that tests needn't name
    try:
        _error(text)
    finally:
        sys.settrace(None)
    return count


def test_places_are_inside_the_text() -> None:
    """2,000 random texts: every issue names a line and column of the text, or the place just behind it."""
    rng = random.Random(47)
    for _ in range(2_000):
        text = random_text(rng)
        lines = text.split("\n")
        error = _error(text)
        for issue in error.issues if error else ():
            assert 1 <= issue.line <= len(lines), repr(text)
            assert 1 <= issue.column <= len(lines[issue.line - 1]) + 1, repr(text)
        ranges = {} if error else parse_text(text, ALL_MACROS).ranges
        assert all(0 <= start < end <= len(text) for start, end in ranges.values()), repr(text)
