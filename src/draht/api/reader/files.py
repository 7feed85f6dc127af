"""Files, standard input and texts to objects, strictly."""

from __future__ import annotations

import gc
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from draht.api import yaml
from draht.api.kinds import identity
from draht.api.meta import Object
from draht.api.reader import hint as hints
from draht.api.reader.document import Foreign, Located, Reading
from draht.api.reader.json_text import Entry, JsonText, scan
from draht.api.reader.problem import Code, Problem
from draht.api.reader.stream import TOO_LARGE, documents, roots
from draht.api.reader.strict import Walker
from draht.api.reader.written import Piece, Source

__all__ = ["MAX_BYTES", "STDIN", "ReadResult", "read_files", "read_text"]

MAX_BYTES: Final = 256 * 1024 * 1024
"""Largest text: the slices of 5,000 nodes with 8 GPUs each have 34 MB in YAML, and 87 MB in indented JSON."""
MAX_VALUES: Final = 8_000_000
"""Most values of a text that is read item by item; those slices have 3.5 million."""
_COST_OF_ITEM: Final = 8

STDIN = "<stdin>"
"""How problems name standard input."""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What texts hold, good and bad beside each other.

    Attributes:
        objects: Objects without errors in the order they were written; lists are taken apart.
        others: Objects of kinds that draht doesn't read; each has a warning among the problems.
        problems: Everything that is wrong, in the order of the files and lines.
    """

    objects: tuple[Located, ...] = ()
    others: tuple[Foreign, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that kept an object from being read."""
        return tuple(problem for problem in self.problems if not problem.warning)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that didn't."""
        return tuple(problem for problem in self.problems if problem.warning)


def read_files(paths: Iterable[str | Path], *, stdin: BinaryIO | None = None, max_bytes: int = MAX_BYTES) -> ReadResult:
    """Read files of objects; problems of one never hide the objects of another. Raises nothing for bad input.

    Args:
        paths: Files; ``-`` is standard input.
        stdin: What ``-`` reads; without it, ``-`` is reported as a problem.
        max_bytes: Largest file; see `read_text`.
    """
    with _collector_paused():
        return _told([_read(path, stdin, max_bytes) for path in paths])


def read_text(data: bytes | str, *, source: str = "<input>", max_bytes: int = MAX_BYTES) -> ReadResult:
    """Read the objects of a YAML or JSON text.

    Args:
        data: The text; bytes in UTF-8 or UTF-16.
        source: What problems call the text.
        max_bytes: Largest text. What is larger than `draht.api.yaml.MAX_BYTES` is read item by item: it must be JSON,
            or lists in the form that programs write, or documents that are small enough themselves.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    with _collector_paused():
        return _told([_read_text(data, source, max_bytes)])


def _told(results: Sequence[ReadResult]) -> ReadResult:
    """The results as one; objects of a kind that isn't read are told once, where the first one is."""
    count = Counter((each.api_version, each.kind) for result in results for each in result.others)
    told: set[tuple[str, str]] = set()
    problems: list[Problem] = []
    for result in results:
        here = list(result.problems)
        for each in result.others:
            kind = (each.api_version, each.kind)
            if kind not in told:
                told.add(kind)
                here.append(_foreign(each, count[kind] - 1))
        problems += sorted(here, key=lambda problem: problem.line or 0) if len(here) > len(result.problems) else here
    return ReadResult(
        tuple(item for result in results for item in result.objects),
        tuple(item for result in results for item in result.others),
        tuple(problems),
    )


def _foreign(first: Foreign, more: int) -> Problem:
    message = f"{first.api_version} {first.kind} is not read by draht"
    if more:
        message += f", nor {'is' if more == 1 else 'are'} {more} more of them"
    hint = hints.unknown_kind(first.api_version, first.kind)
    return Problem("unknown-kind", message, first.source, first.line, first.column, first.path, hint, warning=True)


def _read_text(data: bytes, source: str, max_bytes: int) -> ReadResult:
    if len(data) > max_bytes:
        message = f"the text has more than the {max_bytes} bytes that are read"
        return ReadResult(problems=(Problem("unreadable", message, source, hint="split the file"),))
    text = _TextReading(source)
    plain = _json(data)
    if plain is None or not text.read_json(plain):
        text = _TextReading(source)
        text.read_yaml(data)
    return text.result()


def _json(data: bytes) -> JsonText | None:
    """A text that is one JSON object; None for any other."""
    if data.lstrip()[:1] != b"{" or sum(map(data.count, (b",", b"[", b"{"))) > MAX_VALUES:
        return None
    try:
        return scan(data.decode())
    except UnicodeDecodeError:
        return None


class _TextReading:
    """One text, while it is read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._walker = Walker(source)
        self._reading = Reading(self._walker, source)
        self._objects: list[Located] = []
        self._others: list[Foreign] = []
        self._left = MAX_VALUES

    def result(self) -> ReadResult:
        problems = sorted(self._walker.problems, key=lambda problem: (problem.line or 0, problem.column or 0))
        if self._walker.dropped:
            problems.append(Problem("unreadable", f"{self._walker.dropped} more problems are not shown", self._source))
        return ReadResult(tuple(self._objects), tuple(self._others), tuple(problems))

    def read_json(self, text: JsonText) -> bool:
        """Read a JSON text; False, and nothing read, if it has to be read as YAML, which says what is wrong with it."""
        if text.items is None:
            return self._take(text.whole, "", None)
        found, error = roots(Source(text.envelope).whole(), self._source, spare=text.gap)
        is_list, item = (False, None) if error else self._reading.envelope(found[0])
        if not is_list:
            return False
        kind = None if item is None else identity(item)
        for index, each in enumerate(text.items):
            if not self._take(each, f"items[{index}]", kind):
                self._item(each.piece, index, item)
        return True

    def read_yaml(self, data: bytes) -> None:
        """Read a text in YAML, of which JSON is a part."""
        for document in documents(data, self._source):
            self._walker.piece = document.piece
            if document.error is not None:
                self._broken(document.error)
            elif document.root is not None and document.items is None:
                self._add(self._reading.root(document.root, document.piece, document.number))
            elif document.root is not None:
                is_list, item = self._reading.envelope(document.root)
                if not is_list:
                    self._walker.report(document.root, "", "unreadable", TOO_LARGE, hint="split the file")
                for index, piece in enumerate(document.items if is_list and document.items else ()):
                    if self._left <= 0:
                        message = f"holds more than {MAX_VALUES} values"
                        self._broken(yaml.YamlError(message, source=self._source, hint="split the file"))
                        break
                    self._item(piece, index, item)

    def _take(self, entry: Entry, path: str, kind: tuple[str, str] | None) -> bool:
        """Whether an entry is an object as it stands, and of the kind that it has to be."""
        if entry.object is None or kind not in {None, entry.kind}:
            return False
        piece = entry.piece
        found = Located(entry.object, self._source, piece.lines + 1, piece.column + 1, path, piece, 0, path)
        self._objects.append(found)
        return True

    def _item(self, piece: Piece, index: int, item: type[Object] | None) -> None:
        self._walker.piece = piece
        found, error = roots(piece, self._source)
        # So many are as costly as one small value is by itself.
        self._left -= _COST_OF_ITEM
        if error is not None:
            self._broken(error)
            return
        for root in found:
            self._left -= yaml.size(root)
            for node in root.value if piece.item else (root,):
                self._add(self._reading.item(node, piece, index, item))

    def _add(self, found: list[Located | Foreign]) -> None:
        for each in found:
            if isinstance(each, Located):
                self._objects.append(each)
            else:
                self._others.append(each)

    def _broken(self, error: yaml.YamlError) -> None:
        line, column, piece = error.line, error.column, self._walker.piece
        if piece is not None and line is not None and column is not None:
            line, column = line + piece.lines, column + (piece.column if line == 1 else 0)
        code: Code = "syntax" if error.resumable else "unreadable"
        self._walker.add(Problem(code, error.message, self._source, line, column, hint=error.hint))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic garbage collection meanwhile.

    Nodes and structs have no cycles, but there are so many of them that looking for cycles takes three quarters of the
    time: 6.3 s instead of 2.3 s for the largest text.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _read(path: str | Path, stdin: BinaryIO | None, max_bytes: int) -> ReadResult:
    source = str(path)
    try:
        if source == "-":
            source = STDIN
            if stdin is None:
                return _unreadable(source, "there is no standard input here", "name a file")
            data = stdin.read(max_bytes + 1)
        else:
            if stat.S_ISDIR(Path(path).stat().st_mode):
                return _unreadable(source, "it is a directory", f"name the files in it: {source.rstrip('/')}/*.yaml")
            with Path(path).open("rb") as file:
                data = file.read(max_bytes + 1)
    except FileNotFoundError:
        return _unreadable(source, "there is no such file", None)
    except OSError as error:
        reason = error.strerror or str(error)
        return _unreadable(source, f"it can't be read: {reason[:1].lower()}{reason[1:]}", None)
    except ValueError:
        return _unreadable(source, "it can't be read: a file name has no null byte", None)
    result = _read_text(data, source, max_bytes)
    if not result.objects and not result.others and not result.problems:
        nothing = Problem("unreadable", "it holds no objects", source, warning=True)
        return ReadResult(problems=(nothing,))
    return result


def _unreadable(source: str, message: str, hint: str | None) -> ReadResult:
    return ReadResult(problems=(Problem("unreadable", message, source, hint=hint),))
