"""``draht demo``: the twelve use cases, each in real containers."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from draht.api.errors import DrahtError
from draht.cli.output import emit, table

if TYPE_CHECKING:
    from draht.host.use_cases import Outcome

__all__ = ["demo"]

_HELP = """Run what people ask of GPUs on Kubernetes, here and now.

Each use case goes the whole way: its manifest is allocated on a machine profile, the devices are held and prepared,
and real containers get them through CDI. The machines are simulated, and what else is simulated is named. The exit
status is 0 if every case did what it should.

\b
draht demo
draht demo 04 09 --rootfs ./busybox
"""


@click.command(short_help="Run the twelve use cases in real containers.", help=_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print a list with one object for each case.")
@click.option("--engine", "engine_name", metavar="podman|docker|runc", help="Container engine.")
@click.option(
    "--rootfs",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="Directory in the place of the manifests' images; it needs a shell and ls.",
)
@click.option("--network", default="none", show_default=True, help="Network of the containers.")
@click.option(
    "--use-cases", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Directory with other cases."
)
@click.argument("numbers", nargs=-1, metavar="[NN]...")
@click.pass_context
def demo(
    ctx: click.Context,
    /,
    *,
    as_json: bool,
    engine_name: str | None,
    rootfs: str | None,
    network: str,
    use_cases: Path | None,
    numbers: tuple[str, ...],
) -> None:
    """Run the cases one after the other and show what came of them."""
    from dataclasses import replace

    from draht.driver.database import Database
    from draht.host.engines import engine
    from draht.host.local import local_host
    from draht.host.use_cases import run_case
    from draht.host.use_cases import use_cases as known_cases

    cases = known_cases(use_cases)
    chosen = [case for case in cases if not numbers or case.number in numbers]
    unknown = [number for number in numbers if number not in {case.number for case in cases}]
    if unknown:
        raise DrahtError(
            f"there is no use case {', '.join(unknown)}", hint=f"there are {', '.join(case.number for case in cases)}"
        )
    host = local_host(lambda text: click.echo(text, err=True))
    name = engine(engine_name, found=dict(host.engines)).name
    with tempfile.TemporaryDirectory(prefix="draht-demo-") as scratch:
        # Its own database: somebody may be trying the same profile.
        host = replace(host, database=Database(Path(scratch)))
        outcomes = []
        for case in chosen:
            outcome = run_case(host, case, engine=name, rootfs=rootfs, network=network)
            outcomes.append(outcome)
            if not as_json:
                _show(outcome)
    if as_json:
        emit([outcome.to_builtins() for outcome in outcomes], "json")
    else:
        click.echo()
        click.echo(table(("", "USE CASE", "SINCE", "MECHANISM", "DEVICES", "SEEN", "RESULT"), _rows(outcomes)))
        click.echo("\nAll hardware is simulated; the containers and what they see are real.")
        extra = [f"{each.case.number} {', '.join(each.case.simulated)}" for each in outcomes if each.case.simulated]
        if extra:
            click.echo(f"Prepared as simulated besides: {'; '.join(extra)}.")
    ctx.exit(0 if not any(outcome.reason for outcome in outcomes) else 1)


def _show(outcome: Outcome) -> None:
    click.echo(f"\n── {outcome.case.number} {outcome.case.use_case} ({outcome.case.profile})")
    for name, lines in outcome.seen.items():
        given = ", ".join(outcome.devices.get(name, ()))
        click.echo(f"  {name} gets {given or 'no device'}, and sees:")
        for line in lines:
            click.echo(f"    {line}")
    if outcome.reason:
        click.echo(f"  failed: {outcome.reason}")


def _rows(outcomes: Sequence[Outcome]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for each in outcomes:
        devices = dict.fromkeys(name for names in each.devices.values() for name in names)
        nodes = sorted({line for lines in each.seen.values() for line in lines if line.startswith("/dev/")})
        rows.append(
            (
                each.case.number,
                each.case.use_case,
                each.case.since,
                each.case.mechanism,
                ", ".join(devices),
                ", ".join(nodes),
                "failed" if each.reason else "ok",
            )
        )
    return rows
