"""``draht cdi``: what CDI offers on this machine, and tools for people who write specs.

Owns the group and the commands that only look. Those that work on files are in ``cdi_files``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import click

from draht import cdi as cdi_
from draht.api.printable import printable
from draht.cdi.unread import ignored_files
from draht.cli.cdi_files import inject, lower, validate
from draht.cli.cdi_options import directories_option, host_root_option, open_cache, refuse
from draht.cli.output import emit, output_option, table

__all__ = ["cdi"]


@click.group()
def cdi() -> None:
    """Look at, check, change and apply CDI specs."""


@cdi.command("list")
@directories_option
@output_option("table", "json", "yaml")
def list_(directories: tuple[str, ...], output: str) -> None:
    """Show the spec files, those with problems too."""
    cache = open_cache(directories)
    errors = cache.errors()
    files: list[dict[str, Any]] = [
        {
            "path": spec.path,
            "priority": spec.priority,
            "kind": spec.spec.kind,
            "cdiVersion": spec.spec.cdi_version,
            "minimumVersion": cdi_.minimum_version(spec.spec),
            "devices": [device.name for device in spec.spec.devices],
            "problems": [str(error) for error in errors.get(spec.path, ())],
        }
        for spec in cache.specs()
    ]
    loaded = {file["path"] for file in files}
    files += [
        {"path": path, "problems": [str(error) for error in found]}
        for path, found in errors.items()
        if path not in loaded
    ]
    if output != "table":
        emit(files, output)
        return
    rows = [
        (
            file["path"],
            file.get("kind"),
            file.get("cdiVersion"),
            len(file["devices"]) if "devices" in file else None,
            _problem_cell(file["path"], file["problems"]),
        )
        for file in files
    ]
    click.echo(table(("FILE", "KIND", "VERSION", "DEVICES", "PROBLEM"), rows))
    if not files:
        _say_nothing("spec files", cache)


@cdi.command()
@click.argument("patterns", nargs=-1)
@directories_option
@output_option("table", "json", "yaml")
def devices(patterns: tuple[str, ...], directories: tuple[str, ...], output: str) -> None:
    """Show the devices on offer; with PATTERNS (as 'nvidia.com/*=all'), those that match one."""
    cache = open_cache(directories)
    found = [
        {"name": loaded.qualified_name, "path": loaded.spec.path, "annotations": loaded.device.annotations}
        for name in cache.devices()
        if (not patterns or any(fnmatchcase(name, pattern) for pattern in patterns))
        and (loaded := cache.device(name)) is not None
    ]
    if output == "table":
        click.echo(table(("NAME", "FILE"), [(device["name"], device["path"]) for device in found]))
        if not found:
            _say_nothing("matching devices" if patterns else "devices", cache)
    else:
        emit(found, output)
    if cache.errors():
        count = len(cache.errors())
        files = "1 file has" if count == 1 else f"{count} files have"
        click.echo(f"warning: {files} problems: draht cdi list", err=True)


@cdi.command()
@click.argument("name")
@directories_option
@host_root_option
@output_option("table", "json", "yaml")
def show(name: str, directories: tuple[str, ...], host_root: str, output: str) -> None:
    """Show what the device NAME changes in a container, the common part of its spec included."""
    cache = open_cache(directories, host_root)
    loaded = cache.device(name)
    if loaded is None:
        refuse(cdi_.explain_unresolvable(cache, [name]))
    spec = loaded.spec.spec
    edits = cache.edits_for([name])
    if output != "table":
        shown = {
            "name": name,
            "path": loaded.spec.path,
            "cdiVersion": spec.cdi_version,
            "minimumVersion": cdi_.minimum_version(spec),
            "annotations": {**spec.annotations, **loaded.device.annotations},
            "containerEdits": edits,
        }
        emit(shown, output)
        return
    click.echo(f"name: {name}\nfile: {printable(loaded.spec.path)}\nCDI version: {spec.cdi_version}")
    annotations = {**spec.annotations, **loaded.device.annotations}
    for title, lines in (("annotations", [f"{k}: {v}" for k, v in annotations.items()]), *_edit_sections(edits)):
        if lines:
            click.echo("\n".join([f"{title}:", *(f"  {printable(line)}" for line in lines)]))
    for finding in cdi_.explain_unresolvable(cache, [name]).names[0].findings:
        click.echo(f"warning: {printable(finding.message)}\nhint: {printable(finding.next_step)}", err=True)


@cdi.command()
@directories_option
@output_option("table", "json", "yaml")
def dirs(directories: tuple[str, ...], output: str) -> None:
    """Show the spec directories, weakest first, and what became of each."""
    reports = cdi_.explain_unresolvable(open_cache(directories), ()).directories
    ignored = {report.path: [file.path for file in ignored_files(report.path)] for report in reports}
    if output == "table":
        rows = [
            (report.path, report.problem or report.state, report.specs, report.broken, len(ignored[report.path]))
            for report in reports
        ]
        click.echo(table(("DIRECTORY", "STATE", "SPECS", "PROBLEMS", "IGNORED"), rows))
        return
    emit(
        [
            {
                "path": report.path,
                "priority": priority,
                "state": report.state,
                "problem": report.problem,
                "specs": report.specs,
                "broken": report.broken,
                "ignored": ignored[report.path],
            }
            for priority, report in enumerate(reports)
        ],
        output,
    )


@cdi.command("schema")
@click.option("--version", default=cdi_.VERSIONS[-1], show_default=True, help="CDI version.")
@output_option("json", "yaml")
def schema(version: str, output: str) -> None:
    """Print the JSON Schema of specs of a CDI version, for editors and other languages."""
    emit(cdi_.json_schema(version), output)


cdi.add_command(validate)
cdi.add_command(inject)
cdi.add_command(lower)


def _problem_cell(path: str, problems: list[str]) -> str:
    if not problems:
        return ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return problems[0].removeprefix(path).lstrip(": ") + more


def _edit_sections(edits: cdi_.ContainerEdits) -> Iterator[tuple[str, list[str]]]:
    """Title and lines of each kind of edit, in the order in which they are applied."""
    yield "environment", list(edits.env)
    yield "device nodes", [_node_line(node) for node in edits.device_nodes]
    yield "network devices", [f"{device.host_interface_name} as {device.name}" for device in edits.net_devices]
    yield "mounts", [_mount_line(mount) for mount in edits.mounts]
    yield "hooks", [f"{hook.hook_name}: {' '.join(hook.args) or hook.path}" for hook in edits.hooks]
    if edits.intel_rdt is not None:
        yield "RDT", [edits.intel_rdt.clos_id or "-", *(edits.intel_rdt.schemata or ())]
    yield "groups", [str(gid) for gid in edits.additional_gids]


def _node_line(node: cdi_.DeviceNode) -> str:
    source = f" from {node.host_path}" if node.host_path and node.host_path != node.path else ""
    numbers = f" {node.type} {node.major}:{node.minor}".rstrip() if node.type or node.major else ""
    return f"{node.path}{source}{numbers}" + (f" {node.permissions}" if node.permissions else "")


def _mount_line(mount: cdi_.Mount) -> str:
    target = f" at {mount.container_path}" if mount.container_path != mount.host_path else ""
    return f"{mount.host_path}{target} ({','.join(mount.options)})"


def _say_nothing(what: str, cache: cdi_.Cache) -> None:
    places = ", ".join(directory.path for directory in cache.directories()) or "no directory"
    click.echo(f"there are no {what} in {places}; see draht cdi dirs", err=True)
