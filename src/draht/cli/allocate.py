"""``draht allocate``: which devices the claims of manifests would get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from draht.cli.manifest_files import BAD_INPUT, bad_input, manifest_options, read_cluster
from draht.cli.output import emit, output_option, table

if TYPE_CHECKING:
    from draht.allocator import Limits
    from draht.api.errors import DrahtError
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
@click.option("--policy", metavar="NAME", help="Which of several solutions to prefer.  [default: first-fit]")
@output_option("table", "yaml", "json")
@click.pass_context
def allocate(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    node: str | None,
    steps: int,
    policy: str | None,
    output: str,
    **options: Any,
) -> None:
    """Read, decide, print."""
    from draht.allocator import Limits, policies
    from draht.cli.main import report
    from draht.manifests import ManifestError
    from draht.scheduler import Sequence

    with bad_input():
        cluster = read_cluster(files, **options)
        cluster.check_node(node)
        preference = policies.named(policy)
    limits = Limits(steps=steps)
    sequence = Sequence(cluster.manifests, cluster.snapshot, node=node, policy=preference, limits=limits)
    placements: list[Placement] = []
    complaints: list[DrahtError] = []
    for placement in sequence.place():
        placements.append(placement)
        # At once: what comes later may take away what would do.
        if not placement.fits and len(complaints) < _EXPLAINED:
            complaints.append(_complaint(placement, sequence, limits))
    if output != "table":
        claims = [each.claim for placement in placements for each in placement.claims if placement.fits]
        distinct = {(claim.metadata.namespace, claim.metadata.name): claim for claim in claims}
        emit({"apiVersion": "v1", "kind": "List", "items": list(distinct.values())}, output)
    elif placements:
        click.echo(table(("FOR", "NODE", "REQUEST", "DRIVER", "POOL", "DEVICE", "NOTE"), _rows(placements)))
    for complaint in complaints:
        report(complaint)
    unfit = sum(not placement.fits for placement in placements)
    if unfit > len(complaints):
        click.echo(f"{unfit - len(complaints)} more don't fit", err=True)
    if not placements:
        click.echo(
            "there is nothing to allocate\nhint: give files with pods that name claims, or with claims", err=True
        )
    if cluster.broken or any(isinstance(placement.error, ManifestError) for placement in placements):
        ctx.exit(BAD_INPUT)
    ctx.exit(1 if unfit else 0)


def _rows(placements: list[Placement]) -> Iterator[tuple[object, ...]]:
    for placement in placements:
        if not placement.fits:
            yield placement.name, "", "", "", "", "", "doesn't fit" if placement.error is None else "error"
            continue
        allocations = [each.claim.status.allocation for each in placement.claims]
        results = [result for each in allocations if each is not None for result in each.devices.results]
        if not results:
            yield placement.name, placement.node, "", "", "", "", "no devices are asked for"
        for result in results:
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


def _complaint(placement: Placement, sequence: Sequence, limits: Limits) -> DrahtError:
    """Why it doesn't fit, with everything placed that comes before it."""
    from draht.allocator.explain import explain
    from draht.api.errors import DrahtError

    error = placement.error
    if error is None:
        found = explain(sequence.snapshot, placement.unallocated, nodes=sequence.eligible(placement), limits=limits)
        error = DrahtError(
            f"it doesn't fit: {found.summary}", hint=f"`draht explain` says more, for {_target(placement)}"
        )
    error.where = error.where or placement.name
    error.hint = error.hint or "`draht validate` points at each mistake of a manifest"
    return error


def _target(placement: Placement) -> str:
    """What ``draht explain`` calls it."""
    kind, _, name = placement.name.partition(" ")
    namespace, _, own = name.partition("/")
    target = f"{'pod' if kind == 'Pod' else 'claim'}/{own}"
    return target if namespace == "default" else f"{target} -n {namespace}"
