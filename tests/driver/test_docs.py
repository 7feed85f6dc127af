"""The page about the drivers does what it says."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from doc_examples import run
from draht.api import yaml
from draht.api.reader.strict import Walker
from draht.driver.vendors.drivers import DRIVERS
from draht.driver.vendors.nvidia_config import API_VERSION, KINDS, faults, read
from draht.driver.vendors.nvidia_settings import unsupported

PAGE = Path(__file__).parents[2] / "docs" / "drivers.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+Config)` \| (?:`(\{.*\})`)? *\| (accepts|refuses) \|$", TEXT, re.MULTILINE)


def test_the_examples_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block prints what the page shows."""
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run(PAGE, tmp_path, {"PATH": path, "LC_ALL": "C.UTF-8"}) > 0


@pytest.mark.parametrize(("kind", "fields", "answer"), ROWS)
def test_the_table_of_parameters_is_what_the_code_does(kind: str, fields: str, answer: str) -> None:
    """A row that is accepted has no effect to carry out; one that is refused is valid and refused."""
    (node,) = yaml.documents(fields or "{}")
    value = {"apiVersion": API_VERSION, "kind": kind, **Walker("page").untyped(node, "")}
    config, wrong = read(value, where="x")
    assert config is not None, wrong
    assert faults(config, where="x") == []
    assert ("refuses" if unsupported(config, where="x") else "accepts") == answer


def test_every_kind_and_every_driver_is_on_the_page() -> None:
    """A new one is introduced to its readers."""
    assert {kind for kind, _, _ in ROWS} == set(KINDS)
    for driver in DRIVERS:
        assert f"| `{driver.name}` |" in TEXT
