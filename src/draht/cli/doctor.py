"""``draht doctor``: what stops or degrades `draht run` on this machine, each finding with its fix."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from draht import cdi
from draht.cli.findings import finding_parts, plain_findings
from draht.cli.node_doctor import node_options, refuse_without_node, show
from draht.cli.output import emit, output_option, table
from draht.host.doctor import Report, examine
from draht.host.engines import engines
from draht.host.local import database_directory, spec_directories
from draht.host.machine import Machine, read_machine
from draht.host.ownership import look
from draht.host.places import cdi_directory, state_directory

__all__ = ["doctor"]


_HELP = """Check engines, CDI specs and permissions of this machine, or with --node a node of Kubernetes.

Ends with status 1 if something is broken, that is, if `draht run`, or pods with claims, can't work at all.

\b
draht doctor
draht doctor --node --node-name worker-0
"""


@click.command(short_help="Check this machine, or a node of Kubernetes.", help=_HELP)
@output_option("table", "json", "yaml")
@node_options
def doctor(output: str, *, node: bool, **options: Any) -> None:
    """Look, print, and say by the status whether something is broken."""
    from draht.host.condition import database_state

    if node:
        show(output, **options)
        return
    refuse_without_node(options)

    machine = read_machine()
    directory = database_directory()
    report = examine(
        engines(state=state_directory()),
        machine=machine,
        cache=cdi.Cache(spec_directories()),
        state=directory,
        cdi_directory=cdi_directory(),
        ownership=look(),
        database=lambda: database_state(directory),
    )
    if output == "table":
        click.echo(text(report, width=shutil.get_terminal_size((100, 24)).columns))
    else:
        emit(plain(report), output)
    if report.broken:
        sys.exit(1)


def text(report: Report, *, width: int = 100) -> str:
    """The report for a person."""
    parts = [
        table(
            ("ENGINE", "VERSION", "READS CDI UP TO", "LOOKS FOR SPECS IN", "USABLE"),
            [
                (
                    info.name,
                    info.version,
                    info.cdi_version,
                    " ".join(info.spec_directories),
                    ("yes, rootless" if info.rootless else "yes") if info.usable else "no",
                )
                for info in report.engines
            ],
        ),
        "\n".join(f"{name + ':':10}{value}" for name, value in _facts(report)),
    ]
    parts += finding_parts(report.findings, width=width, good="nothing stops `draht run` on this machine")
    return "\n\n".join(parts)


def plain(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {
        "versions": dict(report.versions),
        "user": report.user,
        "machine": _machine(report.machine),
        "places": dict(report.places),
        "engines": [
            {
                "name": info.name,
                "version": info.version,
                "path": info.path,
                "cdiVersion": info.cdi_version,
                "cdiSource": info.cdi_source,
                "specDirectories": list(info.spec_directories),
                "rootless": info.rootless,
                "usable": info.usable,
            }
            for info in report.engines
        ],
        "findings": plain_findings(report.findings),
        "broken": report.broken,
    }


def _facts(report: Report) -> list[tuple[str, str]]:
    machine = report.machine
    return [
        ("versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())),
        ("user", report.user),
        ("cgroups", machine.cgroups + ("" if machine.cgroups_writable else ", not writable")),
        ("limits", f"{machine.nofile or 'unlimited'} open files, {machine.nproc or 'unlimited'} processes"),
        ("state", report.places["state"]),
        ("specs", report.places["cdi"]),
    ]


def _machine(machine: Machine) -> dict[str, Any]:
    return {
        "cgroups": machine.cgroups,
        "cgroupsWritable": machine.cgroups_writable,
        "systemd": machine.systemd,
        "openFiles": machine.nofile,
        "processes": machine.nproc,
        "effectiveCapabilities": f"{machine.effective_capabilities:016x}",
    }
