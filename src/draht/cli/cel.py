"""``draht cel``: what a selector means, what it costs, which devices it matches and why the others not.

Owns the two commands and their texts. What a selector may say is `draht.cel`'s, why it doesn't hold for a device
`draht.cel.reasons`'.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click

from draht.api.errors import DrahtError
from draht.api.printable import printable, printable_lines
from draht.cli.manifest_files import BAD_INPUT, bad_input, read_manifests, tell_problems
from draht.cli.output import emit, output_option, table

if TYPE_CHECKING:
    from draht.api.resource import Device as WireDevice
    from draht.api.resource import ResourceSlice
    from draht.cel.errors import CompileError
    from draht.cel.mentions import Mentions
    from draht.cel.reasons import Reason

__all__ = ["cel"]


@click.group()
def cel() -> None:
    """Check selectors (CEL expressions) and try them on devices."""


@cel.command()
@click.argument("expression")
@click.option("--derived", is_flag=True, help="Check the expression of a derived attribute: it may have other types.")
@output_option("table", "json")
def check(expression: str, derived: bool, output: str) -> None:
    """Say whether an API server takes EXPRESSION, what it costs and what it reads.

    The verdict is that of Kubernetes 1.37 on an object that is created, with all feature gates on.
    """
    from draht.cel import CompileError, Features, compile_derived, compile_selector
    from draht.validation.limits import EXPRESSION_BYTES, EXPRESSION_COST

    size = len(expression.encode("utf-8", "surrogateescape"))
    if size > EXPRESSION_BYTES:
        raise DrahtError(f"the expression has {size:,} bytes, more than {EXPRESSION_BYTES:,}", hint="shorten it")
    try:
        compiled = (compile_derived if derived else compile_selector)(expression, Features(stored=False))
    except CompileError as error:
        _refuse(error, output)
    cost, reads = compiled.cost, _reads(compiled.mentions)
    valid = cost.most <= EXPRESSION_COST
    if output == "json":
        emit(
            {
                "valid": valid,
                "type": str(compiled.checked.output),
                "cost": {"least": cost.least, "most": cost.most, "limit": EXPRESSION_COST},
                "reads": reads,
                "issues": [],
            },
            output,
        )
    else:
        click.echo(f"{'valid' if valid else 'too expensive'}: {compiled.checked.output}")
        click.echo(f"cost: {_range(cost.least, cost.most)} of {EXPRESSION_COST:,} units")
        click.echo(printable(f"reads: {', '.join(reads) or 'nothing of the device'}"))
        if not valid:
            click.echo("hint: bound what it goes through, or compare fewer texts", err=True)
    sys.exit(0 if valid else 1)


@cel.command("eval")
@click.argument("expression")
@click.option("--profile", metavar="NAME|FILE", help="Try it on the devices of this machine profile.")
@click.option("--partitions", is_flag=True, help="The profile's GPUs may be cut into MIG partitions.")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE|DIR",
    help="Try it on the devices of the ResourceSlices in this file; `-` is standard input; repeatable.",
)
@output_option("table", "json")
def evaluate(expression: str, profile: str | None, partitions: bool, files: tuple[str, ...], output: str) -> None:
    """Show which devices EXPRESSION matches and what decides about the others.

    Exits with 0 if it matches a device.
    """
    from draht.cel import CompileError, Device, compile_selector
    from draht.cel.reasons import why_not

    if profile is None and not files:
        raise click.UsageError("say with --profile or -f on which devices to try it")
    try:
        selector = compile_selector(expression)
    except CompileError as error:
        _refuse(error, output)
    with bad_input():
        slices, simulated, broken = _slices(profile, partitions, files)
    answers = [
        (slice_, device, why_not(selector, Device.of(slice_.spec.driver, device)))
        for slice_ in slices
        for device in slice_.spec.devices
    ]
    matches = sum(reason is None for _, _, reason in answers)
    if output == "json":
        devices = [_builtins(*answer) for answer in answers]
        emit({"matches": matches, "simulated": simulated, "devices": devices}, output)
    else:
        _show(answers, matches, simulated)
    sys.exit(BAD_INPUT if broken else 0 if matches else 1)


def _show(
    answers: Sequence[tuple[ResourceSlice, WireDevice, Reason | None]], matches: int, simulated: str | None
) -> None:
    if simulated is not None:
        click.echo(printable(f"simulated machine {simulated}"))
    rows = [
        (
            f"{slice_.spec.driver}/{slice_.spec.pool.name}/{device.name}",
            _answer(reason),
            None if reason is None else reason.condition,
            None if reason is None else _because(reason),
        )
        for slice_, device, reason in answers
    ]
    if rows:
        click.echo(table(("DEVICE", "ANSWER", "DECIDED BY", "BECAUSE"), rows))
    click.echo(f"{matches} of {len(answers)} devices match")
    if not rows:
        click.echo("there are no devices\nhint: give files with ResourceSlices, or a profile", err=True)
    hints = dict.fromkeys(
        reason.error.hint for _, _, reason in answers if reason is not None and reason.error and reason.error.hint
    )
    for hint in hints:
        click.echo(printable_lines(f"hint: {hint}"), err=True)


def _answer(reason: Reason | None) -> str:
    if reason is None:
        return "match"
    return "no" if reason.error is None else "error"


def _because(reason: Reason) -> str:
    parts = [str(reading) for reading in reason.readings]
    return "; ".join([reason.error.message, *parts] if reason.error is not None else parts)


def _builtins(slice_: ResourceSlice, device: WireDevice, reason: Reason | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "driver": slice_.spec.driver,
        "pool": slice_.spec.pool.name,
        "device": device.name,
        "answer": _answer(reason),
    }
    if reason is not None:
        found["decidedBy"] = reason.condition
        found["readings"] = {reading.name: reading.value for reading in reason.readings}
        if reason.error is not None:
            found |= {"error": reason.error.message, "errorKind": reason.error.kind, "hint": reason.error.hint}
    return found


def _slices(
    profile: str | None, partitions: bool, files: Sequence[str]
) -> tuple[list[ResourceSlice], str | None, bool]:
    """The slices, the name of the machine that is simulated, and whether a file couldn't be read in part."""
    from draht.api.conversion import to_v1
    from draht.api.resource import ResourceSlice
    from draht.driver.slices import publish
    from draht.hardware.simulated import from_profile

    read = read_manifests(files)
    tell_problems(read)
    objects = (to_v1(each.object) for each in read.objects)
    slices = [each for each in objects if isinstance(each, ResourceSlice)]
    simulated = None
    if profile is not None:
        inventory = from_profile(profile)
        simulated = inventory.machine
        slices += publish(inventory, node_name=inventory.machine, partitions=partitions).slices
    return slices, simulated, bool(read.errors)


def _refuse(error: CompileError, output: str) -> NoReturn:
    if output == "json":
        issues = [
            {"message": issue.message, "line": issue.line, "column": issue.column, "hint": issue.hint}
            for issue in error.issues
        ]
        emit({"valid": False, "issues": issues}, output)
    else:
        click.echo(printable_lines(error.picture()))
    sys.exit(1)


def _range(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _reads(mentions: Mentions) -> list[str]:
    if mentions.everything:
        return ["everything"]
    names = [
        name
        for name, read in (("driver", mentions.driver), ("allowMultipleAllocations", mentions.allow_multiple))
        if read
    ]
    for key in sorted(mentions.keys):
        if not key.whole:
            names.append(f"{key.map} {key.domain}/{key.id}")
        else:
            names.append(f"{key.map} of {key.domain}" if key.domain else f"all {key.map}")
    return names
