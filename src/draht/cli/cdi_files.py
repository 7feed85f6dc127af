"""``draht cdi validate``, ``inject`` and ``lower``: commands that take a file and give a verdict or a new file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import click

from draht import cdi
from draht.api.printable import printable
from draht.cdi.check import Problem, check
from draht.cdi.errors import CDIError, ConflictError, HostDeviceError, SpecError, UnresolvableDeviceError
from draht.cdi.files import list_specs
from draht.cli.cdi_options import PATH, directories_option, host_root_option, open_cache, read_input, refuse
from draht.cli.output import emit, output_option

__all__ = ["inject", "lower", "validate"]


@click.command()
@click.argument("files", nargs=-1, type=PATH)
@directories_option
@output_option("table", "json", "yaml")
@click.pass_context
def validate(ctx: click.Context, files: tuple[str, ...], directories: tuple[str, ...], output: str) -> None:
    """Check spec FILES, directories of them, or - for standard input.

    Without FILES, check all specs of the spec directories, together: also for devices that two of them define.
    Every problem is shown with its line and field. Exits with 1 if there is any.
    """
    verdicts = list(_verdicts(files, directories))
    conflicts = [] if files else _conflicts(directories)
    if output == "table":
        for line in (line for verdict in verdicts for line in _verdict_lines(verdict)):
            click.echo(printable(line))
        for line in (line for problem in conflicts for line in _problem_lines(problem)):
            click.echo(printable(line))
        if not verdicts:
            click.echo(f"no specs in {', '.join(directories)}", err=True)
    else:
        emit([*verdicts, *({"file": each.file, "valid": False, "problems": [each]} for each in conflicts)], output)
    if conflicts or not all(verdict["valid"] for verdict in verdicts):
        ctx.exit(1)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--spec", "oci_file", required=True, type=PATH, help="OCI config.json; - for standard input.")
@directories_option
@host_root_option
def inject(names: tuple[str, ...], oci_file: str, directories: tuple[str, ...], host_root: str) -> None:
    """Print an OCI runtime spec (config.json) with the devices of that NAME added, as an engine would."""
    data, source = read_input(oci_file)
    oci = _oci(data, source)
    cache = open_cache(directories, host_root)
    try:
        cache.inject(oci, names)
    except (UnresolvableDeviceError, HostDeviceError):
        diagnosis = cdi.explain_unresolvable(cache, names)
        if not diagnosis.unresolvable:
            raise
        refuse(diagnosis)
    click.echo(json.dumps(oci, indent=2))


@click.command()
@click.argument("file", type=PATH)
@click.option("--to", "version", required=True, help=f"CDI version: {', '.join(cdi.VERSIONS)}.")
@click.option("--drop-annotations", is_flag=True, help="Leave annotations out where the version has none.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="Output format; by default that of FILE.")
def lower(file: str, version: str, drop_annotations: bool, output: str | None) -> None:
    """Print the spec in FILE (- for standard input) as one that readers of an older CDI version understand.

    It has the same effect on containers. If a feature can't be expressed in that version, it is refused.
    """
    data, source = read_input(file)
    spec = cdi.lower(cdi.decode(data, source=source), version, drop_annotations=drop_annotations)
    looks_like_json = data.lstrip()[:1] == b"{"
    format_: Any = output or ("json" if looks_like_json else "yaml")
    click.echo(cdi.encode(spec, format=format_), nl=False)


def _verdicts(files: Sequence[str], directories: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One verdict per file, and per file in a directory; a directory that can't be read counts as a bad file."""
    for file in files or directories:
        # A spec directory may be missing, a file that somebody names may not.
        if files and (file == "-" or not os.path.isdir(file)):  # noqa: PTH112 - Path.is_dir raises if it may not look
            yield _verdict(file)
            continue
        try:
            entries = list_specs(file)
        except CDIError as error:
            yield _unreadable(file, error)
            continue
        for entry in entries:
            yield _verdict(entry.path)


def _verdict(file: str) -> dict[str, Any]:
    try:
        data, source = read_input(file)
    except CDIError as error:
        return _unreadable(file, error)
    spec, problems = check(data, source=source)
    if spec is None or problems:
        return {"file": source, "valid": False, "problems": list(problems)}
    return {
        "file": source,
        "valid": True,
        "kind": spec.kind,
        "cdiVersion": spec.cdi_version,
        "minimumVersion": cdi.minimum_version(spec),
        "devices": [device.name for device in spec.devices],
        "problems": [],
    }


def _unreadable(file: str, error: CDIError) -> dict[str, Any]:
    return {"file": file, "valid": False, "problems": [Problem(message=error.message, file=file, hint=error.hint)]}


def _verdict_lines(verdict: dict[str, Any]) -> Iterator[str]:
    if verdict["valid"]:
        count = len(verdict["devices"])
        devices = "1 device" if count == 1 else f"{count} devices"
        yield f"{verdict['file']}: valid: {verdict['kind']}, {devices}, CDI {verdict['cdiVersion']}"
    for problem in verdict["problems"]:
        yield from _problem_lines(problem)


def _problem_lines(problem: Problem) -> Iterator[str]:
    yield str(problem)
    if problem.hint:
        yield f"  hint: {problem.hint}"


def _conflicts(directories: Sequence[str]) -> list[Problem]:
    found: list[ConflictError] = list(open_cache(directories).conflicts())
    return [Problem(message=error.message, file=error.paths[0], hint=error.hint) for error in found]


def _oci(data: bytes, source: str) -> dict[str, Any]:
    try:
        oci = json.loads(data, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise SpecError("the JSON is nested too deep", where=source) from None
    except ValueError as error:
        raise SpecError(f"not JSON: {error}", where=source, hint="give the config.json of a bundle") from None
    if not isinstance(oci, dict):
        raise SpecError("not a JSON object", where=source, hint="give the config.json of a bundle")
    return oci


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:60]} is too large a number")
    return number
