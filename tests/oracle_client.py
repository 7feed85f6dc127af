"""The test side of the oracle: asks the Go program in ``tests/oracle`` about upstream's libraries.

Owns the build, the process, the deadline of each call and what happens when the program hangs or dies: the input that
did it is in the error, and the next call starts a fresh process. It doesn't know any verb.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import resource
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import buildcache
import gotoolchain

__all__ = ["Oracle", "OracleFailure", "OracleTimeout", "build"]

MODULE = Path(__file__).parent / "oracle"
MEMORY_LIMIT = 6 << 30
"""Bytes of address space for the oracle: an input that fills memory must end the oracle, not the machine."""
SHOWN_INPUT = 4000
"""How many characters of an input an error shows."""


class OracleFailure(Exception):  # noqa: N818 - the name says what the oracle did, and tests read it so
    """The oracle panicked, died or didn't understand the question; the message holds the input."""


class OracleTimeout(OracleFailure):
    """A call had no answer before its deadline; the message holds the input."""


def build(say: Callable[[str], None] = lambda line: None) -> Path:
    """The oracle's program, built when its sources have changed.

    Args:
        say: Is told when it has to be built.

    Raises:
        gotoolchain.GoMissingError: There is no Go toolchain that is new enough.
        gotoolchain.GoBuildError: It doesn't compile.
    """
    key = buildcache.digest([MODULE / "go.mod", MODULE / "go.sum", *MODULE.glob("*.go")])
    variables = {"CGO_ENABLED": "0"}

    def compile_into(directory: Path) -> None:
        say("oracle: not built yet; building it")
        gotoolchain.build(MODULE, ["."], directory / "oracle", variables=variables)

    return buildcache.entry("oracle", key, compile_into) / "oracle"


class Oracle:
    """A running oracle. Calls are answered in order; see ``tests/oracle/main.go`` for the lines.

    Bytes among the parameters travel as base64, which is what Go's ``[]byte`` fields expect.
    """

    def __init__(self, program: Path) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._received = b""
        self._last_id = 0

    def call(self, verb: str, /, *, deadline: float = 10.0, **params: object) -> Any:
        """The result of one request.

        Args:
            verb: What is asked.
            deadline: Seconds until the oracle counts as hanging.
            params: The verb's parameters.

        Raises:
            OracleTimeout: There was no answer in time.
            OracleFailure: The oracle panicked, died or didn't understand.
        """
        return self.call_many(verb, [params], deadline=deadline)[0]

    def call_many(self, verb: str, many: Sequence[Mapping[str, object]], *, deadline: float = 10.0) -> list[Any]:
        """The results of many requests of one verb, sent without waiting for the answers in between.

        The deadline counts for each request from the moment the one before it was answered. The first request that
        fails ends the call.

        Raises:
            OracleTimeout: A request had no answer in time.
            OracleFailure: The oracle panicked, died or didn't understand.
        """
        first_id = self._last_id + 1
        self._last_id += len(many)
        lines = [
            json.dumps({"id": first_id + index, "verb": verb, "params": params}, default=_as_json).encode() + b"\n"
            for index, params in enumerate(many)
        ]
        results: list[Any] = []
        answers = self._exchange(lines, deadline)
        try:
            for line, answer in zip(lines, answers, strict=True):
                reply = json.loads(answer)
                if reply["id"] != first_id + len(results):
                    raise OracleFailure(f"oracle answered {reply!r}\nto {_shown(line)}")
                if "failure" in reply:
                    raise OracleFailure(f"oracle failed on {_shown(line)}\n{reply['failure']}")
                results.append(reply["result"])
        except BaseException:
            self.close()  # answers that are still under way must not be taken for those of the next call
            raise
        finally:
            answers.close()
        return results

    def close(self) -> None:
        """End the process; the next call starts another."""
        process, self._process = self._process, None
        self._received = b""
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process, closed with it
            self._process = subprocess.Popen(
                [self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, bufsize=0
            )
            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        return self._process

    def _exchange(self, lines: list[bytes], deadline: float) -> Generator[bytes, None, None]:
        """Yield the answer to each line while the lines are being written."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        to_send = memoryview(b"".join(lines))
        answered = 0
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            if to_send:
                ready.register(process.stdin, selectors.EVENT_WRITE)
            until = time.monotonic() + deadline
            while answered < len(lines):
                events = ready.select(max(0.0, until - time.monotonic()))
                if not events and time.monotonic() >= until:
                    raise OracleTimeout(f"oracle had no answer within {deadline} s to {_shown(lines[answered])}")
                for key, _ in events:
                    if key.fileobj is process.stdin:
                        to_send = self._send(process, to_send)
                        if not to_send:
                            ready.unregister(process.stdin)
                        continue
                    received = process.stdout.read(1 << 20)
                    if not received:
                        raise OracleFailure(f"oracle died {self._last_words(process)}\non {_shown(lines[answered])}")
                    *whole, self._received = (self._received + received).split(b"\n")
                    for answer in whole:
                        answered += 1
                        yield answer
                    if whole:
                        until = time.monotonic() + deadline

    def _send(self, process: subprocess.Popen[bytes], to_send: memoryview) -> memoryview:
        assert process.stdin is not None
        try:
            return to_send[os.write(process.stdin.fileno(), to_send[: 1 << 16]) :]
        except BlockingIOError:
            return to_send
        except BrokenPipeError:
            return memoryview(b"")  # it died; reading its output says so, with what it said

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        status = process.wait()
        assert self._stderr is not None
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip()
        return f"with status {status} saying {said[:1000]!r}" if said else f"with status {status}"


def _as_json(value: object) -> object:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a parameter of type {type(value).__name__} can't be sent to the oracle")


def _shown(line: bytes) -> str:
    text = line.decode().rstrip("\n")
    return text if len(text) <= SHOWN_INPUT else f"{text[:SHOWN_INPUT]}… ({len(text)} characters)"
