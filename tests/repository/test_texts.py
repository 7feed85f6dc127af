"""Rules for every tracked file that no linter knows: what may not be in it, and how long it may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracked_files import ROOT, assert_none, text_of, tracked

LONGEST = 500
"""Lines; a longer file says why in its docstring with a sentence that starts with ``Length:``."""
LARGEST = 1 << 20
"""Bytes of one tracked file."""

# One letter of each word in brackets: this file keeps its own rules.
FORBIDDEN = {
    "a path of one machine": re.compile(
        r"(?<![\w./-])/(?:work|root)/(?!\.\.\.)[\w.-]+|"
        + "|".join(re.escape(f"{path}/") for path in (ROOT, Path.home()))
    ),
    "a note to finish something": re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X])\b"),
}
REASONED = re.compile(r"#\s*(?:noqa: [A-Z0-9, ]+|type: ignore\[[\w, -]+\])(?P<rest>.*)$")


def offending_lines(rule: re.Pattern[str]) -> list[str]:
    """``path:line: text`` for every match of a rule."""
    found = []
    for path in tracked():
        if path.name in {"go.sum", "LICENSE"}:
            continue
        for number, line in enumerate((text_of(path) or "").splitlines(), 1):
            if rule.search(line):
                found.append(f"{path}:{number}: {line.strip()[:120]}")
    return found


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_names(what: str) -> None:
    """What says nothing to a reader elsewhere, or isn't finished, stays out of the repository."""
    assert_none(offending_lines(FORBIDDEN[what]))


def test_tracked_files_are_text_of_bounded_size() -> None:
    """Build output and binaries aren't committed; test data that needs odd bytes is made by its test."""
    assert_none([str(path) for path in tracked() if text_of(path) is None])
    assert_none([str(path) for path in tracked() if (ROOT / path).stat().st_size > LARGEST])


def test_long_files_say_why() -> None:
    """A source file above 500 lines gives its reason in its docstring."""
    silent = []
    for path in tracked(".py", ".go"):
        text = text_of(path) or ""
        if text.count("\n") > LONGEST and "Length: " not in text[:3000]:
            silent.append(f"{path} has {text.count(chr(10))} lines")
    assert_none(silent)


def test_exceptions_from_the_linters_have_a_reason() -> None:
    """Each ``noqa`` and ``type: ignore`` is followed by why it is right, or has a comment above it that says so.

    Tests may ignore types without a word: handing over what doesn't belong there is what they are for.
    """
    bare = []
    for path in tracked(".py"):
        above = ""
        for number, line in enumerate((text_of(path) or "").splitlines(), 1):
            found = REASONED.search(line)
            silent = found is not None and len(found["rest"].strip(" #-:")) < 8 and not above.lstrip().startswith("#")
            if found and silent and not (path.parts[0] == "tests" and "type: ignore" in found[0]):
                bare.append(f"{path}:{number}: {line.strip()}")
            above = line
    assert_none(bare)


def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11.0 to 3.11.4, Debian 12's among them, match ``(…)?+`` wrongly (CPython gh-100061 and gh-106052).

    A possessive class such as ``[a-z]*+`` and an atomic group such as ``(?>(…)?)`` are fine.
    """
    possessive = re.compile(r"\)(?:[*+?]|\{+[\d,]*\}+)\+")
    assert_none([place for place in offending_lines(possessive) if place.startswith("src/")])


def skips(path: Path) -> Iterator[str]:
    """Every place in a test module that lets a test go by without running, and doesn't do it through `require`."""
    for node in ast.walk(ast.parse(text_of(path) or "")):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            reasoned = any(keyword.arg == "reason" for keyword in node.keywords)
            if re.fullmatch(r"pytest\.(mark\.)?(skip|skipif|importorskip)", called) and path.name != "requirements.py":
                yield f"{path}:{node.lineno}: {called}; use requirements.require"
            elif called == "pytest.mark.xfail" and not reasoned:
                yield f"{path}:{node.lineno}: {called} without a reason"


def test_tests_are_skipped_in_one_way() -> None:
    """A test that can't run goes through `require`, which fails it in CI; an expected failure has a reason."""
    assert_none([place for path in tracked(".py") if path.parts[0] == "tests" for place in skips(path)])
