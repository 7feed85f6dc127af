"""``draht allocate``: which devices the claims of manifests would get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from draht.cli.manifest_files import BAD_INPUT, manifest_options, read_cluster
from draht.cli.output import emit, output_option, table

if TYPE_CHECKING:
    from draht.scheduler import Placement, Sequence

__all__ = ["allocate"]

_EXPLAINED = 10
"""Pods and claims whose reason is told; a table of thousands has its own rows."""

_HELP = """Decide which devices pods and claims get.

Pods are placed one after the other in the order of the files, each on the first node that fits, and then claims that no
pod uses. Nothing is written anywhere: yaml and json print the claims with their allocation. The exit status is 0 if
everything fits, 1 if something doesn't, 2 if something couldn't be read.

\b
draht allocate -f pods.yaml --profile dgx-h100
kubectl get resourceslices,deviceclasses,resourceclaims -A -o yaml | draht allocate -f - -f pod.yaml
"""


@click.command(short_help="Decide which devices pods and claims get, from files.", help=_HELP)
@manifest_options
@click.option("--node", metavar="NODE", help="Try this node only.")
@click.option("--policy", metavar="NAME", help="Which of several solutions to prefer.  [default: first-fit]")
@output_option("table", "yaml", "json")
@click.pass_context
def allocate(
    ctx: click.Context, /, *, files: tuple[str, ...], node: str | None, policy: str | None, output: str, **options: Any
) -> None:
    """Read, decide, print."""
    from draht.allocator import policies
    from draht.api.errors import DrahtError
    from draht.scheduler import Sequence

    cluster = read_cluster(files, **options)
    if node is not None and node not in cluster.snapshot.nodes:
        known = ", ".join(list(cluster.snapshot.nodes)[:8])
        raise DrahtError(f"there is no node `{node}`", hint=f"there are {known or 'none: no slice names one'}")
    sequence = Sequence(cluster.manifests, cluster.snapshot, node=node, policy=policies.named(policy))
    placements = list(sequence.place())
    if output == "table":
        click.echo(table(("FOR", "NODE", "REQUEST", "DRIVER", "POOL", "DEVICE", "NOTE"), _rows(placements)))
    else:
        claims = [each.claim for placement in placements for each in placement.claims if placement.node]
        distinct = {(claim.metadata.namespace, claim.metadata.name): claim for claim in claims}
        emit({"apiVersion": "v1", "kind": "List", "items": list(distinct.values())}, output)
    unfit = [placement for placement in placements if placement.node is None]
    for placement in unfit[:_EXPLAINED]:
        _complain(placement, sequence)
    if len(unfit) > _EXPLAINED:
        click.echo(f"{len(unfit) - _EXPLAINED} more don't fit", err=True)
    if cluster.broken:
        ctx.exit(BAD_INPUT)
    ctx.exit(0 if all(placement.node for placement in placements) else 1)


def _rows(placements: list[Placement]) -> Iterator[tuple[object, ...]]:
    for placement in placements:
        if placement.node is None:
            yield placement.name, "", "", "", "", "", "doesn't fit" if placement.error is None else "error"
        for each in placement.claims if placement.node else ():
            assert each.claim.status.allocation is not None
            for result in each.claim.status.allocation.devices.results:
                taken = ", ".join(f"{name} {amount}" for name, amount in (result.consumed_capacity or {}).items())
                notes = [taken, "admin access" if result.admin_access else ""]
                yield (
                    placement.name,
                    placement.node,
                    result.request,
                    result.driver,
                    result.pool,
                    result.device,
                    ", ".join(filter(None, notes)),
                )


def _complain(placement: Placement, sequence: Sequence) -> None:
    from draht.allocator.explain import explain
    from draht.api.errors import DrahtError
    from draht.cli.main import report

    error = placement.error
    if error is None:
        found = explain(sequence.snapshot, placement.unallocated, nodes=sequence.eligible(placement))
        target = placement.name.replace("ResourceClaim", "claim").replace("Pod", "pod").split()
        hint = f"`draht explain` says more, for {target[0]}/{target[1].partition('/')[2]}"
        error = DrahtError(f"it doesn't fit: {found.summary}", where=placement.name, hint=hint)
    error.where = error.where or placement.name
    report(error)
