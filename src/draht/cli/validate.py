"""``draht validate``: manifests judged as kube-apiserver would, every error at once.

Owns how verdicts look. What is read strictly is said by `draht.api.reader`, what an object may hold by
`draht.validation`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from draht.api.printable import printable
from draht.api.reader import Located, Problem, read_files
from draht.cli.output import emit, output_option
from draht.validation import ALL, DEFAULT, FieldError, Gates, dropped_fields, is_judged, written_path
from draht.validation import validate as judge

__all__ = ["validate"]

_SUFFIXES = (".yaml", ".yml", ".json")
_DROPPED = "a server drops this field unless its alpha feature is on"
_NO_NAMESPACE = "a server drops it: objects of this kind don't live in a namespace"


@dataclass(slots=True)
class _File:
    """What is said about one file."""

    name: str
    problems: list[Problem] = field(default_factory=list)
    objects: list[_Verdict] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return all(problem.warning for problem in self.problems) and not any(each.errors for each in self.objects)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is said about one object."""

    located: Located
    judged: bool
    errors: tuple[FieldError, ...]
    dropped: tuple[str, ...]

    @classmethod
    def of(cls, located: Located, gates: Gates) -> _Verdict:
        obj = located.object
        # The server may say the same twice, once for each of its two sets of rules.
        errors = {(error.path, error.text): error for error in reversed(judge(obj, gates=gates))}
        return cls(located, is_judged(obj), tuple(reversed(errors.values())), dropped_fields(obj, gates=gates))

    def where(self, path: str) -> tuple[str, str]:
        """File, line and column of a field, and its path as the file has it."""
        written = written_path(self.located.object, path)
        return self.located.where(written), written


@click.command()
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    type=click.Path(readable=False),
    help="A manifest, a directory of them, or - for standard input; may be repeated.",
)
@click.option("--all-features", is_flag=True, help="Judge with every feature gate on, alpha included.")
@output_option("table", "json", "yaml")
@click.pass_context
def validate(ctx: click.Context, filenames: tuple[str, ...], all_features: bool, output: str) -> None:
    """Check manifests as kube-apiserver 1.37 checks what is created, without a cluster.

    ResourceClaims, ResourceClaimTemplates, ResourceSlices, DeviceClasses and DeviceTaintRules are judged with their CEL
    expressions; other kinds are read strictly. Every error is shown with its place, its field and the next step.
    Exits with 1 if there is any.
    """
    gates = ALL if all_features else DEFAULT
    files = [_check(name, gates) for name in _expanded(filenames)]
    if output == "table":
        for line in (line for file in files for line in _lines(file)):
            click.echo(printable(line))
        if not files:
            click.echo(f"no manifests in {', '.join(filenames)}", err=True)
    else:
        emit([_structured(file) for file in files], output)
    if not all(file.valid for file in files):
        ctx.exit(1)


def _expanded(names: Sequence[str]) -> Iterator[str]:
    """The files, and the manifests of directories in the order of their names."""
    for name in names:
        entries: list[Path] = []
        try:
            is_directory = name != "-" and Path(name).is_dir()
            if is_directory:
                entries = sorted(each for each in Path(name).iterdir() if each.suffix in _SUFFIXES)
        except OSError:
            # The reader says what is wrong with it.
            is_directory = False
        yield from map(str, entries) if is_directory else [name]


def _check(name: str, gates: Gates) -> _File:
    result = read_files([name], stdin=None if sys.stdin is None else sys.stdin.buffer)
    shown = "<stdin>" if name == "-" else name
    return _File(shown, list(result.problems), [_Verdict.of(located, gates) for located in result.objects])


# For people


def _lines(file: _File) -> Iterator[str]:
    for problem in file.problems:
        yield str(problem)
        if problem.hint:
            yield f"  hint: {problem.hint}"
    for verdict in file.objects:
        yield from _verdict_lines(verdict)
    if file.valid:
        yield f"{file.name}: valid: {_summary(file)}"


def _verdict_lines(verdict: _Verdict) -> Iterator[str]:
    """What is said about an object, in the order of the file."""
    said: list[tuple[str, list[str]]] = []
    for error in verdict.errors:
        place, written = verdict.where(error.path)
        said.append((place, list(_error_lines(place, written, error))))
    for path in verdict.dropped:
        place, written = verdict.where(path)
        reason = _NO_NAMESPACE if path == "metadata.namespace" else _DROPPED
        said.append((place, [f"{place}: warning: {written}: {reason}"]))
    for _, lines in sorted(said, key=lambda each: _line_and_column(each[0])):
        yield from lines


def _line_and_column(place: str) -> tuple[int, int]:
    _, line, column = place.rsplit(":", 2)
    return int(line), int(column)


def _error_lines(place: str, written: str, error: FieldError) -> Iterator[str]:
    if error.picture is None:
        yield f"{place}: {written}: {error.text}"
        if error.hint:
            yield f"  hint: {error.hint}"
        return
    yield f"{place}: {written}: the expression doesn't compile"
    for line in error.picture.split("\n"):
        yield f"  {line}"


def _summary(file: _File) -> str:
    kinds: dict[str, int] = {}
    for verdict in file.objects:
        suffix = "" if verdict.judged else " (only read)"
        name = verdict.located.object.kind + suffix
        kinds[name] = kinds.get(name, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no objects"


# For programs


def _structured(file: _File) -> dict[str, Any]:
    return {
        "file": file.name,
        "valid": file.valid,
        "problems": file.problems,
        "objects": [_structured_verdict(verdict) for verdict in file.objects],
    }


def _structured_verdict(verdict: _Verdict) -> dict[str, Any]:
    obj = verdict.located.object
    return {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "namespace": obj.metadata.namespace,
        "name": obj.metadata.name or obj.metadata.generate_name,
        "where": verdict.located.where(),
        "judged": verdict.judged,
        "valid": not verdict.errors,
        "errors": [_structured_error(verdict, error) for error in verdict.errors],
        "droppedFields": list(verdict.dropped),
    }


def _structured_error(verdict: _Verdict, error: FieldError) -> dict[str, Any]:
    place, written = verdict.where(error.path)
    shown = {"path": written, "kind": error.kind, "message": error.text, "where": place}
    if error.hint:
        shown["hint"] = error.hint
    if error.picture:
        shown["picture"] = error.picture
    return shown
