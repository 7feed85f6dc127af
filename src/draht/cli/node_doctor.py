"""``draht doctor --node``: what keeps pods with claims from working on this node, each finding with its fix.

Owns the options, what the agent of this node should publish as far as they tell, and the report's two forms.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from draht.api.errors import DrahtError
from draht.cli.findings import finding_parts, plain_findings
from draht.cli.output import emit, table

if TYPE_CHECKING:
    from draht.node.agent import Settings
    from draht.node.doctor import Expectation, Report

__all__ = ["node_options", "plain", "refuse_without_node", "show", "text"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--node", is_flag=True, help="Check this machine as a node of Kubernetes."),
    click.option(
        "--node-name", envvar="NODE_NAME", metavar="NAME", help="The Node object.  [$NODE_NAME or the host's name]"
    ),
    click.option("--kubelet-root", type=click.Path(), help="The kubelet's directory.  [/var/lib/kubelet]"),
    click.option("--cdi-dir", type=click.Path(), help="Where the container runtime looks for CDI specs."),
    click.option("--state-dir", type=click.Path(), help="Directory of the machine's database."),
    click.option("--host-root", type=click.Path(), help="Where the host's files are seen.  [/; in a pod nowhere]"),
    click.option("--kubeconfig", type=click.Path(), metavar="FILE", help="The cluster, instead of the pod's own."),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
    click.option(
        "--driver", "drivers", multiple=True, metavar="NAME|FILE.py[:CLASS]", help="As `draht node` is started with."
    ),
    click.option("--profile", envvar="DRAHT_PROFILE", metavar="NAME|FILE", help="As `draht node` is started with."),
    click.option("--partitions", is_flag=True, help="As `draht node` is started with."),
    click.option("--shares", is_flag=True, help="As `draht node` is started with."),
    click.option(
        "--slices",
        "slice_files",
        multiple=True,
        type=click.Path(),
        metavar="FILE",
        help="As `draht node` is started with.",
    ),
    click.option("--device-plugin", metavar="all|GPU,…", help="As `draht node` is started with."),
)


def node_options(command: _Command) -> _Command:
    """``--node`` and what goes with it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_without_node(options: Mapping[str, Any]) -> None:
    """See that nobody gives a node's options and forgets ``--node``; those from the environment don't count.

    Raises:
        click.UsageError: Somebody did.
    """
    ctx = click.get_current_context()
    for name in options:
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("only `draht doctor --node` takes the options of a node")


def show(
    output: str,
    *,
    node_name: str | None,
    kubelet_root: str | None,
    cdi_dir: str | None,
    state_dir: str | None,
    host_root: str | None,
    kubeconfig: str | None,
    context: str | None,
    **agent: Any,
) -> None:
    """Look at the node, print, and end with status 1 if something is broken."""
    from draht import cdi
    from draht.cli.live import Connection, extra

    with extra("node"):
        from draht.node.agent import Settings
        from draht.node.doctor import NodeDirectories, examine
    from draht.host.condition import database_state
    from draht.host.places import cdi_directory, state_directory
    from draht.kube import Client

    directories = NodeDirectories(
        kubelet=Path(kubelet_root or "/var/lib/kubelet"),
        cdi=Path(cdi_dir) if cdi_dir else cdi_directory(),
        state=Path(state_dir) if state_dir else state_directory(),
        root=Path(host_root) if host_root else None if in_pod() else Path("/"),
    )
    settings = Settings(
        node_name=node_name or platform.node().lower(),
        kubelet=directories.kubelet,
        cdi_directory=directories.cdi,
        metadata_directory=directories.state,
        state_directory=directories.state,
    )
    expected = _expectation(settings, **agent)
    cache = cdi.Cache(list(dict.fromkeys((*cdi.DEFAULT_DIRECTORIES, str(directories.cdi)))))

    async def look() -> Report:
        common: dict[str, Any] = {
            "cache": cache,
            "database": lambda: database_state(directories.state),
            "expected": expected,
        }
        try:
            config = Connection(kubeconfig=kubeconfig, context=context).config()
        except DrahtError as error:
            return await examine(settings.node_name, directories, client=None, unreachable=str(error), **common)
        async with Client(config, user_agent="draht-doctor") as client:
            return await examine(settings.node_name, directories, client=client, **common)

    report = asyncio.run(look())
    if output == "table":
        click.echo(text(report, width=shutil.get_terminal_size((100, 24)).columns))
    else:
        emit(plain(report), output)
    if report.broken:
        sys.exit(1)


def in_pod(account: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this process is in a pod, whose files aren't the host's."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and account.is_dir()


def _expectation(settings: Settings, *, device_plugin: str | None, **agent: Any) -> Expectation:
    """What the agent would publish; whatever can't be asked is told and hides nothing else."""
    from draht.cli.node_parts import Parts
    from draht.node.doctor import Expectation
    from draht.node.taints import with_health

    try:
        parts = Parts.of(settings, device_plugin=device_plugin or "", labels=True, **agent)
    except DrahtError as error:
        return Expectation(problems=(str(error),))
    offers = {}
    labels: Mapping[str, str] = {}
    problems = []
    for driver in parts.drivers:
        driver.node_name = settings.node_name
        try:
            offers[driver.name] = with_health(driver.discover(), driver.health())
        except (DrahtError, OSError) as error:
            problems.append(f"{driver.name}: {error}")
    if parts.labels is not None:
        try:
            labels = parts.labels.wanted()
        except (DrahtError, OSError) as error:
            problems.append(f"labels: {error}")
    return Expectation(offers=offers, labels=labels, problems=tuple(problems))


def text(report: Report, *, width: int = 100) -> str:
    """The report for a person."""
    facts = [
        ("node", report.node),
        ("versions", ", ".join(f"{name} {version}" for name, version in report.versions.items())),
        *report.places.items(),
        ("seen", ", ".join(f"{count} {name}" for name, count in report.counts.items()) or "nothing"),
    ]
    parts = []
    if report.drivers:
        parts.append(table(("DRIVER", "REGISTERED BY"), list(report.drivers.items())))
    parts.append("\n".join(f"{name + ':':10}{value}" for name, value in facts))
    parts += finding_parts(report.findings, width=width, good="nothing stops pods with claims on this node")
    return "\n\n".join(parts)


def plain(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {
        "node": report.node,
        "versions": dict(report.versions),
        "places": dict(report.places),
        "drivers": dict(report.drivers),
        "seen": dict(report.counts),
        "findings": plain_findings(report.findings),
        "broken": report.broken,
    }
