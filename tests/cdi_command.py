"""Runs ``draht`` inside the test's process, and as the installed script where the process itself matters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from draht.api.errors import DrahtError
from draht.cli.main import draht

__all__ = ["Outcome", "run", "run_script", "script"]


class Outcome(NamedTuple):
    """What a command printed and returned."""

    status: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.stdout.splitlines()


def run(*arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> Outcome:
    """Run a command in this process, with errors shown as ``draht.cli.main.main`` shows them."""
    result = CliRunner().invoke(draht, arguments, input=stdin, env=dict(environment or {}))
    error = result.exception
    if isinstance(error, DrahtError):
        shown = f"error: {error}\n" + (f"hint: {error.hint}\n" if error.hint else "")
        return Outcome(error.exit_code, result.stdout, result.stderr + shown)
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return Outcome(result.exit_code, result.stdout, result.stderr)


def script() -> str:
    """The installed ``draht``."""
    return str(Path(sys.executable).with_name("draht"))


def run_script(*arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> Outcome:
    """Run the installed script in a process of its own."""
    done = subprocess.run(
        [script(), *arguments],
        input=stdin,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **(environment or {})},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
