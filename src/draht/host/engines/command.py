"""Calling an engine's command-line client: bounded in time, failures in the engine's own words.

Owns how text of a failed command becomes one sentence. It knows no engine's options, and nothing about containers that
are attached to a terminal (`draht.host.engines.attach`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Any, Literal

from draht.host.engine import CommandError, EngineError

__all__ = ["Command", "Outcome", "first_sentence"]

DEADLINE = 60.0
"""Seconds an engine has for a question or a change. Pulling images has no deadline: the user sees progress."""

_NOISE = re.compile(
    r"""^(?:time="[^"]*"\s+level=\w+\s+msg=|level=\w+\s+msg=|ERRO\[\d+\]\s*|Error:\s*|docker:\s*|runc:\s*"""
    r"""|Error\ response\ from\ daemon:\s*|error:\s*)""",
    re.VERBOSE,
)
_WARNING = re.compile(r'^(?:time="[^"]*"\s+level=(?:warning|info|debug)|WARN\[|INFO\[|WARNING:)')
_LONGEST = 600

_COMMAND_FAILURES = {
    127: re.compile(r'exec: ".*": .*(?:no such file or directory|not found)|executable file `.*` not found'),
    126: re.compile(r'exec: ".*": .*permission denied|open executable: Permission denied', re.DOTALL),
}
"""Exit status → how runc and crun say that the container's command can't be executed."""


class Outcome:
    """What a command printed and returned."""

    def __init__(self, status: int, stdout: str, stderr: str) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr

    @property
    def complaint(self) -> str:
        """The failure in one line, without log prefixes."""
        return first_sentence(self.stderr) or first_sentence(self.stdout) or f"exit status {self.status}"


class Command:
    """An engine's executable with the options that precede every sub-command.

    Args:
        engine: Name for messages.
        path: The executable.
        options: Global options.
        environ: Environment of the client; None is that of this process.
    """

    def __init__(
        self, engine: str, path: str, options: Sequence[str] = (), environ: Mapping[str, str] | None = None
    ) -> None:
        self.engine = engine
        self.path = path
        self.options = tuple(options)
        self.environ = environ

    def with_options(self, *options: str) -> Command:
        """The same executable with these global options instead."""
        return Command(self.engine, self.path, options, self.environ)

    def argv(self, *arguments: str) -> list[str]:
        """The full command line."""
        return [self.path, *self.options, *arguments]

    def run(self, *arguments: str, deadline: float | None = DEADLINE, apart: bool = False) -> Outcome:
        """Run to the end with captured output, whatever the status.

        Args:
            *arguments: Sub-command and its arguments.
            deadline: Seconds, or None to wait as long as it takes.
            apart: In a session of its own, where Ctrl-C doesn't reach it.

        Raises:
            EngineError: It can't be executed, or didn't end before the deadline.
        """
        try:
            done = subprocess.run(
                self.argv(*arguments),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline,
                check=False,
                env=self.environ,
                start_new_session=apart,
            )
        except subprocess.TimeoutExpired:
            raise EngineError(
                f"{self.engine} did not answer `{arguments[0]}` within {deadline:.0f} s",
                hint=f"see whether `{self.engine} ps` answers; an engine that hangs often waits for its storage",
            ) from None
        except (OSError, ValueError) as error:
            raise self._not_executable(error) from None
        return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def must(self, what: str, *arguments: str, deadline: float = DEADLINE) -> str:
        """Run, and return stdout.

        Args:
            what: What was tried, as the end of "podman can't …".
            *arguments: Sub-command and its arguments.
            deadline: Seconds.

        Raises:
            EngineError: Also when the status isn't 0, with the engine's own words.
        """
        outcome = self.run(*arguments, deadline=deadline)
        if outcome.status != 0:
            raise self.failure(what, outcome)
        return outcome.stdout

    def visible(self, what: str, *arguments: str, stdin: IO[bytes] | None = None) -> None:
        """Run with its progress on stderr for the user, without a deadline; stdout is dropped.

        Raises:
            EngineError: The status isn't 0; the engine has said why on stderr.
        """
        try:
            done = subprocess.run(
                self.argv(*arguments),
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.DEVNULL,
                check=False,
                env=self.environ,
            )
        except (OSError, ValueError) as error:
            raise self._not_executable(error) from None
        if done.returncode != 0:
            raise EngineError(f"{self.engine} can't {what}: see its message above")

    def json(self, what: str, *arguments: str) -> Any:
        """Run, and decode stdout as JSON.

        Raises:
            EngineError: As `must`, or the output isn't JSON.
        """
        return self.decode(what, self.must(what, *arguments))

    def decode(self, what: str, text: str) -> Any:
        """Decode an output as JSON.

        Raises:
            EngineError: It isn't JSON.
        """
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise EngineError(
                f"{self.engine} can't {what}: its answer is not JSON", hint=f"is `{self.path}` really {self.engine}?"
            ) from None

    def failure(self, what: str, outcome: Outcome, *, hint: str | None = None) -> EngineError:
        """The error for a failed command."""
        return EngineError(f"{self.engine} can't {what}: {outcome.complaint}", hint=hint)

    def refusal(self, phase: Literal["create", "start"], outcome: Outcome, *, hint: str | None = None) -> EngineError:
        """The error for a container that wasn't made or started; a `CommandError` if its own command is the reason."""
        message = f"{self.engine} can't {phase} the container: {outcome.complaint}"
        for status, words in _COMMAND_FAILURES.items():
            if words.search(outcome.complaint):
                return CommandError(message, status=status, hint=hint)
        return EngineError(message, hint=hint)

    def _not_executable(self, error: Exception) -> EngineError:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        return EngineError(f"{self.path} can't be executed: {reason.lower()}")


def first_sentence(text: str) -> str:
    """The first line that is an error, else the last line, without log prefixes, quotes and full stop; bounded."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not _WARNING.match(line)]
    if not telling:
        return ""
    chosen = next((line for line in telling if _NOISE.match(line)), telling[-1])
    while match := _NOISE.match(chosen):
        chosen = chosen[match.end() :]
    if len(chosen) > 1 and chosen[0] == chosen[-1] == '"':
        chosen = chosen[1:-1].replace('\\"', '"')
    chosen = chosen.rstrip(".").strip()
    return chosen if len(chosen) <= _LONGEST else chosen[:_LONGEST] + " …"
