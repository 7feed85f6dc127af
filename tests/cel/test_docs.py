"""The page about selectors does what it says, and shows every function."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from cel_base import evaluate
from doc_examples import run
from draht.cel.library.authorization import LIBRARY as AUTHORIZATION
from draht.cel.library.formatting import MAX_LENGTH
from draht.cel.library.kubernetes import BASE, BINDINGS
from draht.cel.library.lists import MAX_ELEMENTS
from draht.cel.library.standard_operators import MAX_ELEMENTS as MAX_CONCATENATED
from draht.cel.selector import MAX_COST

PAGE = Path(__file__).parents[2] / "docs" / "cel.md"
_ROW = re.compile(r"^\| `(?P<expression>.+)` \| `(?P<result>.+)` \|$", re.MULTILINE)

ROWS = [
    (match["expression"], match["result"])
    for match in _ROW.finditer(PAGE.read_text(encoding="utf-8").partition("## Functions")[2])
]


@pytest.mark.parametrize(("expression", "result"), ROWS)
def test_a_line_of_the_tables_is_true(expression: str, result: str) -> None:
    """The expression has the result."""
    if result == "error":
        assert evaluate(expression)[0] == "error"
    else:
        assert evaluate(f"({expression}) == ({result})") == ["bool", True]


def test_the_examples_of_the_page_work(tmp_path: Path) -> None:
    """Every command and every Python block prints what the page shows."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run(PAGE, tmp_path, {"PATH": path, "LC_ALL": "C.UTF-8"}) > 3


def test_the_page_shows_every_function() -> None:
    """No function and no macro is left out, but operators and what can't be called."""
    names = {function.name for library in BASE if library is not AUTHORIZATION for function in library.functions}
    names |= {macro.name for library in (*BASE, BINDINGS) for macro in library.macros}
    text = PAGE.read_text(encoding="utf-8")
    callable_ = {name for name in names if re.fullmatch(r"[a-zA-Z][\w.]*", name)}
    formats = {name for name in callable_ if name.startswith("format.") and name != "format.named"}
    missing = sorted(name for name in callable_ - formats if f"{name}(" not in text)
    missing += sorted(name for name in formats if f"`{name.removeprefix('format.')}`" not in text)
    assert not missing


def test_the_page_knows_the_limits() -> None:
    """The numbers of the table of differences are those of the code."""
    text = PAGE.read_text(encoding="utf-8").partition("## Where draht differs")[2]
    for limit in (MAX_LENGTH, MAX_ELEMENTS, MAX_CONCATENATED, MAX_COST):
        assert f"{limit:,}" in text
