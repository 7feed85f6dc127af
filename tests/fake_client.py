"""A fake engine client: an executable that answers by a table and keeps a list of how it was called.

The table maps the beginning of a command line (without global options) to what is printed and returned; the longest
match wins, and what isn't in it fails. Real clients are exercised by the table test over real engines; this one brings
the answers that real ones give on other machines.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

__all__ = ["FakeClient"]

_PROGRAM = """#!{python} -S
import json, sys, time
table = json.load(open({table!r}))
words = sys.argv[1:]
while words and words[0].startswith("--") and " ".join(words) not in table:
    words = words[2:]
line = " ".join(words)
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
best = max((key for key in table if line.startswith(key)), key=len, default=None)
answer = table.get(best, {{"stderr": "Error: not in the table: " + line, "status": 64}})
time.sleep(answer.get("sleep", 0))
sys.stdout.write(answer.get("stdout", ""))
sys.stderr.write(answer.get("stderr", ""))
sys.exit(answer.get("status", 0))
"""


class FakeClient:
    """One fake executable in a directory of the test."""

    def __init__(self, directory: Path, name: str) -> None:
        self.path = directory / name
        self._table_file = directory / f"{name}.table"
        self._calls_file = directory / f"{name}.calls"
        self._table: dict[str, dict[str, Any]] = {}
        self.path.write_text(
            _PROGRAM.format(python=sys.executable, table=str(self._table_file), calls=str(self._calls_file)),
            encoding="utf-8",
        )
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        self._save()

    def answer(
        self, command: str, stdout: object = "", *, stderr: str = "", status: int = 0, sleep: float = 0
    ) -> FakeClient:
        """Answer command lines that begin so; what isn't a string is printed as JSON."""
        text = stdout if isinstance(stdout, str) else json.dumps(stdout)
        self._table[command] = {"stdout": text, "stderr": stderr, "status": status, "sleep": sleep}
        self._save()
        return self

    def calls(self, word: str = "") -> list[list[str]]:
        """The argument lists it was called with, of calls that have this word."""
        if not self._calls_file.exists():
            return []
        lines = self._calls_file.read_text(encoding="utf-8").splitlines()
        return [call for call in map(json.loads, lines) if not word or word in call]

    def _save(self) -> None:
        self._table_file.write_text(json.dumps(self._table), encoding="utf-8")
