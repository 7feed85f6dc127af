"""The page about CDI does what it says, and lists what it promises to list."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import get_args

from cdi_deviations import DEVIATIONS
from doc_examples import run
from draht import cdi
from draht.cdi.diagnosis import Cause

PAGE = Path(__file__).parents[2] / "docs" / "cdi.md"


def test_the_examples_of_the_page_work(tmp_path: Path) -> None:
    """Every command and every Python block prints what the page shows."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for directory in ("etc/cdi", "run/cdi"):
        (tmp_path / directory).mkdir(parents=True)
    environment = {"PATH": path, "LC_ALL": "C.UTF-8", "DRAHT_CDI_DIRS": "etc/cdi:run/cdi"}
    assert run(PAGE, tmp_path, environment) > 15


def test_the_page_lists_the_deviations() -> None:
    """Each deliberate difference that the comparisons with Go allow for is in the page, word for word."""
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition("| What | draht | The Go library v1.1.2 | Why |\n|---|---|---|---|\n")
    table, _, _ = rest.partition("\n\n")
    rows = [f"| {each.name} | {each.ours} | {each.theirs} | {each.reason} |" for each in DEVIATIONS]
    assert table.strip().splitlines() == rows, "the table should be:\n" + "\n".join(rows)


def test_the_page_explains_every_cause() -> None:
    """The table of causes is that of the code."""
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(get_args(Cause))


def test_the_page_knows_every_version() -> None:
    """The table of versions has all of them."""
    text = PAGE.read_text(encoding="utf-8")
    _, _, rest = text.partition("| Version | Adds |")
    assert re.findall(r"\d\.\d\.\d", rest.partition("\n\n")[0]) == list(cdi.VERSIONS)
