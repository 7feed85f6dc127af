"""Spec files and directories that a user may not read: said so, with the step that helps, and nothing else is lost.

Each look is made by a process of a user without rights, because root may read everything.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cdi_command import run
from cdi_corpus import CORPUS, PLACED
from draht import cdi
from requirements import require

GOOD = CORPUS / "valid" / "intel-npu.yaml"
GOOD_NAME = "intel.com/npu=npu0"
NOBODY = 65534


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def _as_nobody(action: Callable[[], object]) -> Any:
    """What an action returns to a user without rights; in a fork, because that user may not read the checkout."""
    require(os.geteuid() == 0, "becoming another user takes root")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child
        try:
            os.close(reader)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writer, json.dumps(action()).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return json.loads(data)


def _seen_by_nobody(name: str, *directories: Path) -> tuple[list[str], list[str] | None, list[str]]:
    """Names on offer, the first cause with its step, and the states of the directories."""

    def look() -> object:
        cache = cdi.Cache(directories)
        diagnosis = cdi.explain_unresolvable(cache, [name], others=())
        findings = diagnosis.names[0].findings
        first = [findings[0].cause, findings[0].message, findings[0].next_step] if findings else None
        return [cache.devices(), first, [report.state for report in diagnosis.directories]]

    devices, finding, states = _as_nobody(look)
    return devices, finding, states


def _printed_to_nobody(*arguments: str) -> tuple[int, str]:
    """Status and output of a command."""
    run(*arguments[:1], "--help")  # what is imported late is imported while it may be read

    def command() -> object:
        outcome = run(*arguments)
        return [outcome.status, outcome.stdout + outcome.stderr]

    status, output = _as_nobody(command)
    return status, output


@pytest.mark.parametrize("entry", [entry for entry in PLACED if "mode" in entry], ids=lambda entry: entry["name"])
def test_a_file_that_only_root_may_read(public: Path, entry: dict[str, dict[str, str]]) -> None:
    """A rootless user learns the file, its mode and the command that helps, and it helps."""
    ((_, source),) = entry["place"].items()
    path = public / "nvidia.yaml"
    shutil.copy(CORPUS / source, path)
    path.chmod(int(str(entry["mode"]), 8))
    shutil.copy(GOOD, public / "good.yaml")
    name = entry["lost"][0]  # type: ignore[index]
    devices, finding, _ = _seen_by_nobody(name, public)
    assert devices == [GOOD_NAME]
    assert finding is not None
    cause, message, step = finding
    assert cause == "unreadable-file"
    assert f"belongs to root and has mode 0600, and you are user {NOBODY}" in message
    command = step.removeprefix("let everybody read it: ")
    subprocess.run(command.split(), check=True)
    assert name in _seen_by_nobody(name, public)[0]


def test_a_directory_that_only_root_may_list(public: Path) -> None:
    """An unreadable directory is said to be that, hides no other one, and the step makes it readable."""
    closed, opened = public / "closed", public / "open"
    closed.mkdir(mode=0o700)
    opened.mkdir(mode=0o755)
    shutil.copy(CORPUS / "valid/nvidia-small.yaml", closed)
    (closed / "nvidia-small.yaml").chmod(0o644)
    shutil.copy(GOOD, opened / "good.yaml")
    devices, finding, states = _seen_by_nobody("nvidia.com/gpu=0", closed, opened)
    assert devices == [GOOD_NAME]
    assert states == ["unreadable", "read"]
    assert finding is not None
    assert finding[0] == "unreadable-directory"
    subprocess.run(finding[2].removeprefix("give users the right to list it, as with: ").split(), check=True)
    assert "nvidia.com/gpu=0" in _seen_by_nobody("nvidia.com/gpu=0", closed, opened)[0]


def test_a_directory_below_one_that_only_root_may_enter(public: Path) -> None:
    """A directory that can't even be reached is unreadable, not missing."""
    (public / "private" / "cdi").mkdir(parents=True)
    (public / "private").chmod(0o700)
    _, finding, states = _seen_by_nobody("nvidia.com/gpu=0", public / "private" / "cdi")
    assert states == ["unreadable"]
    assert finding is not None


def test_a_directory_that_a_user_may_list_but_not_enter(public: Path) -> None:
    """The names are seen and nothing else: the files count as unreadable, and the step makes them readable."""
    half = public / "half"
    half.mkdir()
    shutil.copy(CORPUS / "valid/nvidia-small.yaml", half)
    half.chmod(0o744)
    devices, finding, _ = _seen_by_nobody("nvidia.com/gpu=0", half)
    assert devices == []
    assert finding is not None
    assert finding[0] == "unreadable-file"
    subprocess.run(finding[2].removeprefix("let everybody enter it: ").split(), check=True)
    assert "nvidia.com/gpu=0" in _seen_by_nobody("nvidia.com/gpu=0", half)[0]


def test_commands_of_a_user_who_may_not_look(public: Path) -> None:
    """Every command that reads directories or files says what may not be read, in one line, without a traceback."""
    private = public / "private"
    private.mkdir(mode=0o700)
    shutil.copy(GOOD, private / "good.yaml")
    options = ("--dir", str(private))
    status, output = _printed_to_nobody("cdi", "validate", *options)
    assert (status, output.startswith(f"{private}: the directory can't be read: permission denied\n")) == (1, True)
    status, output = _printed_to_nobody("cdi", "validate", str(private / "good.yaml"))
    assert (status, output.startswith(f"{private / 'good.yaml'}: the file can't be read: permission denied\n")) == (
        1,
        True,
    )
    status, output = _printed_to_nobody("cdi", "dirs", *options)
    assert (status, "permission denied" in output) == (0, True)
    for command in (["list"], ["devices"]):
        assert _printed_to_nobody("cdi", *command, *options)[0] == 0
    status, output = _printed_to_nobody("cdi", "show", GOOD_NAME, *options)
    assert (status, output.startswith("error: ")) == (1, True)
