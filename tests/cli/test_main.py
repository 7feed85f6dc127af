"""What all commands have in common: how they end and how they tell errors."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from draht.api.errors import DrahtError
from draht.cli.main import draht, report

SCRIPT = Path(sys.executable).parent / "draht"


def test_an_interrupted_command_ends_as_the_shell_expects() -> None:
    """Status 130, which no command uses for an answer."""
    process = subprocess.Popen(
        [SCRIPT, "allocate", "-f", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        status = None
        for _ in range(100):
            # Interrupted before its first line of Python, it would have no say in how it ends.
            time.sleep(0.1)
            if Path(f"/proc/{process.pid}/wchan").exists() and _reads(process.pid):
                process.send_signal(signal.SIGINT)
                status = process.wait(30)
                break
        assert status == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


def _reads(pid: int) -> bool:
    """Whether it waits for its standard input: the system call is read on descriptor 0."""
    try:
        return Path(f"/proc/{pid}/syscall").read_text().split()[:2] == ["0", "0x0"]
    except OSError:
        return False


def test_a_name_with_a_line_break_makes_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise a file could put an error into draht's mouth."""
    report(DrahtError("it doesn't fit", where="Pod a/b\nerror: all is lost\x1b[2J", hint="wait"))
    assert capsys.readouterr().err == "error: Pod a/b\\nerror: all is lost\\x1b[2J: it doesn't fit\nhint: wait\n"


def test_every_command_has_help() -> None:
    """The list names all of them, and each explains itself."""
    listed = CliRunner().invoke(draht, ["--help"]).output
    for name in draht.list_commands(None):  # type: ignore[arg-type]  # the list doesn't depend on it
        assert f"  {name} " in listed
        shown = CliRunner().invoke(draht, [name, "--help"])
        assert shown.exit_code == 0
        assert "Usage:" in shown.output
