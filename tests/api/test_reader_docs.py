"""The examples of docs/reading.md do what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reading.md"
_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_example_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written, code shares one namespace, and each output block is what the code before it printed."""
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    names: dict[str, object] = {}
    compared = 0
    for language, info, content in _BLOCK.findall(PAGE.read_text()):
        if language == "yaml":
            Path(info.strip().removeprefix("file=")).write_text(content)
        elif language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(content, str(PAGE), "exec"), names)
        elif info.strip() == "output":
            assert printed.getvalue() == content
            compared += 1
    assert compared == 3
