"""``draht devices``: the GPUs and network functions of this machine, of a machine profile, or of a live cluster.

Owns the command and its tables; `draht.cli.device_tree` draws the tree, `draht.cli.cluster_devices` shows a cluster.
What is held by whom on this machine is shown by ``draht ps``.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.core import ParameterSource

from draht.api.printable import printable, printable_lines
from draht.cli.cdi_options import directories_option, open_cache
from draht.cli.device_tree import headline, label, names, size, tree
from draht.cli.live import Connection, connection_options, read_live
from draht.cli.output import emit, output_option, table
from draht.hardware import simulated
from draht.hardware.inventory import Inventory
from draht.hardware.machine import MachineProvider
from draht.hardware.topology import DISTANCES

__all__ = ["devices"]

MATRIX = 64
"""Most rows and columns of the distance matrix: nobody reads a wider one, and its cost grows with their product."""


@click.command()
@click.option("--profile", metavar="PROFILE", help="Show a simulated machine: the name of a profile, or its file.")
@click.option("--root", default="/", show_default=True, help="Read /sys and /proc below this directory.")
@directories_option
@connection_options
@output_option("table", "wide", "tree", "json", "yaml")
@click.pass_context
def devices(
    ctx: click.Context,
    /,
    profile: str | None,
    root: str,
    directories: tuple[str, ...],
    connection: Connection,
    output: str,
) -> None:
    """Show the GPUs and NICs of this machine, of a profile, or with --cluster what a cluster's nodes publish."""
    if connection.wanted and profile is None:
        _cluster(ctx, connection, output)
        return
    if profile is not None:
        if {ctx.get_parameter_source(name) for name in ("root", "directories")} & {ParameterSource.COMMANDLINE}:
            raise click.UsageError("--profile shows a simulated machine; --root and --dir are for a real one")
        inventory = simulated.from_profile(profile)
    else:
        inventory = MachineProvider(open_cache(directories), root).inventory()
    if output in {"json", "yaml"}:
        emit(inventory.to_builtins(), output)
        return
    lines = {"table": _table, "wide": _wide, "tree": tree}[output](inventory)
    for line in lines:
        click.echo(printable_lines(line))
    for problem in inventory.problems:
        click.echo(f"problem: {printable(f'{problem.where}: {problem.message}')}", err=True)
    if not inventory.gpus() and not inventory.instances():
        click.echo("no GPU was found", err=True)
        click.echo("hint: `draht devices --profile dgx-h100` shows a simulated machine", err=True)


def _cluster(ctx: click.Context, connection: Connection, output: str) -> None:
    from draht.cli import cluster_devices
    from draht.manifests import Manifests

    live = read_live(connection)
    for sentence in live.missing:
        click.echo(f"warning: {printable(sentence)}", err=True)
    manifests = Manifests.of(live.objects)
    if output in {"json", "yaml"}:
        emit(cluster_devices.plain(manifests), output)
    elif output in {"wide", "tree"}:
        raise click.UsageError(f"-o {output} is for one machine; a cluster is shown as table, json or yaml")
    else:
        for line in cluster_devices.lines(manifests):
            click.echo(printable_lines(line))
    if not manifests.slices:
        click.echo(
            "no node publishes devices\nhint: `draht node` does, and `kubectl get resourceslices` shows", err=True
        )
    ctx.exit(2 if live.missing else 0)


def _table(inventory: Inventory) -> Iterator[str]:
    yield from headline(inventory)
    rows = [
        (
            label(device, inventory),
            device.product,
            size(device.memory_bytes),
            device.pci_address,
            device.numa_node,
            device.uuid,
            names(device),
        )
        for device in inventory.devices
    ]
    if rows:
        yield ""
        yield table(("DEVICE", "PRODUCT", "MEMORY", "PCI ADDRESS", "NUMA", "UUID", "NAMES"), rows)


def _wide(inventory: Inventory) -> Iterator[str]:
    yield from headline(inventory)
    rows = []
    for device in inventory.devices:
        near, how_far = inventory.nearest_nics(device) if device.kind in {"gpu", "accelerator"} else ((), None)
        rows.append(
            (
                label(device, inventory),
                device.product,
                device.architecture,
                device.compute_capability,
                size(device.memory_bytes),
                device.pci_address,
                device.pcie_root,
                device.numa_node,
                ", ".join(label(nic, inventory) for nic in near) + (f" ({how_far})" if how_far else ""),
                device.id,
                names(device),
                ", ".join(device.device_nodes),
            )
        )
    if rows:
        header = (
            "DEVICE",
            "PRODUCT",
            "ARCHITECTURE",
            "CC",
            "MEMORY",
            "PCI ADDRESS",
            "PCIE ROOT",
            "NUMA",
            "NEAREST NIC",
        )
        yield ""
        yield table((*header, "ID", "NAMES", "NODES"), rows)
    yield from _matrix(inventory)


def _matrix(inventory: Inventory) -> Iterator[str]:
    """Distances between GPUs and to network functions, with what their names mean."""
    gpus, nics = inventory.gpus(), inventory.nics()
    if not gpus or len(gpus) + len(nics) < 2:
        return
    columns = [*gpus, *nics]
    if len(columns) > MATRIX:
        yield ""
        yield f"the distances between {len(columns)} devices are left out; `-o tree` shows what lies between them"
        return
    rows = [(label(gpu, inventory), *(inventory.distance(gpu, other) for other in columns)) for gpu in gpus]
    yield ""
    yield table(("DISTANCE", *(label(device, inventory) for device in columns)), rows)
    yield ""
    used = {"NV#" if cell.startswith("NV") else cell for _, *cells in rows for cell in cells}
    yield table(("DISTANCE", "WHAT LIES BETWEEN"), [(name, DISTANCES[name]) for name in DISTANCES if name in used])
