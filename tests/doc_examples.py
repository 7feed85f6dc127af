"""Runs the code blocks of a documentation page in their order, so that a page can't promise what isn't so.

What a block is, is said by its info string:

- ``yaml file=sensor.yaml`` (any language): the block is written to that file in the working directory.
- ``python``: executed; all blocks of a page share one namespace.
- ``text output``: what the Python block before it prints.
- ``console``: lines that start with ``$ `` are commands for bash (``> `` continues one), the lines after them are what
  they print on both streams; a line ``…`` stands for any lines. A command that ends with ``# exits with N`` must exit
  with that status, every other one with 0.
- anything else is shown only; a page that shows a command or Python without running it says why in an HTML comment
  right before the block: ``<!-- not run: reason -->``.

It starts nothing but bash and knows no page: a test gives the page, a directory and the environment.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Example", "examples", "run"]

_FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,})(?P<info>[^`]*)$")
_NOT_RUN = re.compile(r"^\s*<!-- not run: (?P<reason>.+) -->\s*$")
_STATUS = re.compile(r"\s+# exits with (?P<status>\d+)$")
_SECONDS = 60


@dataclass(frozen=True)
class Example:
    """A fenced block: its language, the other words of its info string, its text and where that starts."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int
    not_run: str | None = None

    @property
    def file(self) -> str | None:
        """The file that the block is written to, if it is one."""
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)


def examples(page: Path) -> Iterator[Example]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    reason: str | None = None
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            if lines[number].strip():
                found = _NOT_RUN.match(lines[number])
                reason = found["reason"] if found else None
            number += 1
            continue
        start = number + 1
        number = start
        while lines[number].strip() != opening["marks"]:
            number += 1
            assert number < len(lines), f"{page}:{start}: this block has no end"
        language, *words = shlex.split(opening["info"]) or [""]
        text = "".join(f"{line}\n" for line in textwrap.dedent("\n".join(lines[start:number])).split("\n"))
        yield Example(language, tuple(words), text, start + 1, reason)
        reason = None
        number += 1


def run(page: Path, directory: Path, environment: Mapping[str, str]) -> int:
    """Run a page's blocks in `directory`; console commands see `environment` and nothing else.

    Returns:
        How many commands and Python blocks ran.

    Raises:
        AssertionError: A block printed or returned something else; the message has the page's line and a diff.
    """
    namespace: dict[str, object] = {"__name__": f"examples of {page.name}"}
    printed = ""
    count = 0
    for example in examples(page):
        if example.not_run is not None:
            continue
        if example.file is not None:
            target = directory / example.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(example.text, encoding="utf-8")
        elif example.language == "python":
            printed = _run_python(page, example, directory, namespace)
            count += 1
        elif (example.language, example.words) == ("text", ("output",)):
            _compare(page, example.line, "the Python block above", example.text, printed)
        elif example.language == "console":
            count += _run_console(page, example, directory, environment)
    return count


def _run_python(page: Path, example: Example, directory: Path, namespace: dict[str, object]) -> str:
    output = io.StringIO()
    code = compile("\n" * (example.line - 1) + example.text, str(page), "exec")
    with contextlib.chdir(directory), contextlib.redirect_stdout(output):
        exec(code, namespace)
    return output.getvalue()


def _run_console(page: Path, example: Example, directory: Path, environment: Mapping[str, str]) -> int:
    commands: list[tuple[int, list[str], list[str]]] = []
    for offset, line in enumerate(example.text.splitlines()):
        if line.startswith("$ "):
            commands.append((example.line + offset, [line[2:]], []))
        elif line.startswith("> ") and commands and not commands[-1][2]:
            commands[-1][1].append(line[2:])
        else:
            assert commands, f"{page}:{example.line}: a console block starts with '$ '"
            commands[-1][2].append(line)
    for line_number, lines, expected in commands:
        command = "\n".join(lines)
        wanted = _STATUS.search(command)
        done = subprocess.run(
            ["bash", "-c", _STATUS.sub("", command)],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        _compare(page, line_number, command, "".join(f"{line}\n" for line in expected), done.stdout)
        status = int(wanted["status"]) if wanted else 0
        assert done.returncode == status, (
            f"{page}:{line_number}: {command!r} exits with {done.returncode}, not {status}"
        )
    return len(commands)


def _compare(page: Path, line: int, what: str, expected: str, printed: str) -> None:
    pattern = "".join(r"(?:.*\n)*" if each.strip() == "…" else re.escape(each) for each in expected.splitlines(True))
    if re.fullmatch(pattern, _without_trailing_blanks(printed)) is None:
        diff = "".join(difflib.unified_diff(expected.splitlines(True), printed.splitlines(True), "page", "printed"))
        raise AssertionError(f"{page}:{line}: {what} prints something else\n{diff}")


def _without_trailing_blanks(text: str) -> str:
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
