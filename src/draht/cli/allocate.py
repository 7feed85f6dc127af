"""``draht allocate``: which devices claims of manifests or of a live cluster would get, or with ``--apply`` do get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from draht.cli.manifest_files import BAD_INPUT, Cluster, bad_input, manifest_options, read_cluster
from draht.cli.output import emit, output_option, table

if TYPE_CHECKING:
    from draht.allocator import Limits
    from draht.api.core import Pod
    from draht.api.errors import DrahtError
    from draht.api.resource import ResourceClaim
    from draht.cli.live import Connection
    from draht.manifests import Manifests
    from draht.scheduler import Placement, Sequence

__all__ = ["allocate"]

_EXPLAINED = 10
"""Pods and claims whose reason is told; a table of thousands has its own rows."""

_HELP = """Decide which devices pods and claims get.

Pods are placed one after the other in the order of the files, or of a live cluster in that of the scheduler's queue,
each on the first node that fits, and then claims that no pod uses. yaml and json print the claims with their
allocation. The exit status is 0 if everything fits, 1 if something doesn't, 2 if something couldn't be read.

Nothing is written anywhere without --apply. It writes the allocations of the live cluster's pods that wait at the gate
draht.dev/placement, pins them to their node and opens the gate; kube-scheduler binds them. --pod names a pod that is to
be served without the gate.

\b
draht allocate -f pods.yaml --profile dgx-h100
draht allocate --cluster -f another-pod.yaml
draht allocate --apply
"""


@click.command(short_help="Decide which devices pods and claims get.", help=_HELP)
@manifest_options
@click.option("--policy", metavar="NAME", help="Which of several solutions to prefer.  [default: first-fit]")
@click.option("--apply", "write", is_flag=True, help="Write the decisions to the live cluster.")
@click.option("--pod", "pods", multiple=True, metavar="[NAMESPACE/]NAME", help="Only this pod; repeatable.")
@click.option("-n", "--namespace", help="Only pods and claims of this namespace.  [default: all]")
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
    write: bool,
    pods: tuple[str, ...],
    namespace: str | None,
    output: str,
    **options: Any,
) -> None:
    """Read, decide, print, and perhaps write."""
    from draht.allocator import Limits, policies
    from draht.cli.main import report
    from draht.manifests import ManifestError
    from draht.scheduler import Sequence

    if write and (files or options["profile"]):
        raise click.UsageError("--apply decides for the live cluster alone: leave out -f and --profile")
    with bad_input():
        cluster = read_cluster(files, managed=lambda _manifests: True, **options)
        cluster.check_node(node)
        preference = policies.named(policy)
        queue = _open(_chosen(cluster, pods, namespace, gated=write), cluster)
    limits = Limits(steps=steps)
    sequence = Sequence(queue, cluster.snapshot, node=node, policy=preference, limits=limits)
    placements: list[Placement] = []
    complaints: list[DrahtError] = []
    for placement in sequence.place():
        if (
            cluster.live
            and placement.pod is None
            and (write or not any(_is_new(each.claim, cluster) for each in placement.claims))
        ):
            continue
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
    if write:
        complaints += apply(cluster, options["connection"], placements)
    for complaint in complaints:
        report(complaint)
    unfit = sum(not placement.fits for placement in placements)
    if unfit > len(complaints):
        click.echo(f"{unfit - len(complaints)} more don't fit", err=True)
    if not placements:
        click.echo(f"there is nothing to allocate\nhint: {_nothing(cluster, write=write)}", err=True)
    if cluster.broken or any(isinstance(placement.error, ManifestError) for placement in placements):
        ctx.exit(BAD_INPUT)
    ctx.exit(1 if complaints or unfit else 0)


def _chosen(cluster: Cluster, pods: tuple[str, ...], namespace: str | None, *, gated: bool) -> Manifests:
    """What is to be placed: the pods that are named, or of all those that wait for draht or for anybody.

    Raises:
        DrahtError: A pod that is named isn't there, or waits for nothing.
    """
    from draht.api.errors import DrahtError
    from draht.controller import GATE

    queue = cluster.queue()
    if not pods and namespace is None and not gated:
        return queue
    named = [
        (space or namespace or cluster.namespace, name) for space, _, name in (pod.rpartition("/") for pod in pods)
    ]
    for key in named:
        if key not in queue.pods:
            reason = cluster.settled.get(key)
            raise DrahtError(
                f"pod {'/'.join(key)} waits for no devices: {reason}" if reason else f"there is no pod {'/'.join(key)}",
                hint=None if reason else "name a pod as NAMESPACE/NAME, or its namespace with -n",
            )
    waiting = {
        key: pod
        for key, pod in queue.pods.items()
        if (key in named if named else not gated or any(gate.name == GATE for gate in pod.spec.scheduling_gates))
        and namespace in {None, key[0]}
    }
    claims = {key: claim for key, claim in queue.claims.items() if namespace in {None, key[0]}}
    return replace(queue, pods=waiting, claims=queue.claims if pods else claims)


def apply(cluster: Cluster, connection: Connection, placements: list[Placement]) -> list[DrahtError]:
    """Write the decisions one after the other; those that couldn't be written."""
    import asyncio

    from draht.controller import Decision, DecisionError, Writer
    from draht.kube import Client

    async def write() -> list[DrahtError]:
        failed: list[DrahtError] = []
        async with Client(connection.config()) as client:
            known = [claim for claim in cluster.manifests.claims.values() if claim.status.allocation is not None]
            writer = Writer(client, known=[claim.metadata.uid for claim in known])
            for placement in placements:
                if not placement.fits or placement.pod is None or placement.node is None:
                    continue
                unwritten = [each.claim for each in placement.claims if _is_new(each.claim, cluster)]
                if any(not claim.metadata.uid for claim in unwritten):
                    # The controller makes claims from templates; the special claim of extended resources is the
                    # scheduler's own, and one made by anybody else would be deleted as stale.
                    failed.append(_unmade(placement))
                    continue
                node = cluster.snapshot.nodes[placement.node]
                decision = Decision(placement.pod, tuple(unwritten), node)
                try:
                    await writer.write(decision)
                except DecisionError as error:
                    error.where = error.where or placement.name
                    failed.append(error)
        return failed

    return asyncio.run(write())


def _open(queue: Manifests, cluster: Cluster) -> Manifests:
    """Without the claims that only pods use which wait for no decision: those wait for their pod."""
    settled, waiting = (
        {key for pod in pods for key in _used(pod)}
        for pods in ([cluster.manifests.pods[key] for key in cluster.settled], queue.pods.values())
    )
    claims = {key: claim for key, claim in queue.claims.items() if key not in settled or key in waiting}
    return replace(queue, claims=claims)


def _used(pod: Pod) -> Iterator[tuple[str, str]]:
    """Namespaces and names of the claims that a pod uses, as far as they are made."""
    for name in (
        *(entry.resource_claim_name for entry in pod.spec.resource_claims),
        *(entry.resource_claim_name for entry in pod.status.resource_claim_statuses),
    ):
        if name:
            yield pod.metadata.namespace, name


def _is_new(claim: ResourceClaim, cluster: Cluster) -> bool:
    known = cluster.manifests.claims.get((claim.metadata.namespace, claim.metadata.name))
    return known is None or known.status.allocation is None


def _unmade(placement: Placement) -> DrahtError:
    from draht.api.errors import DrahtError
    from draht.manifests.claims import EXTENDED

    if any(each.entry == EXTENDED for each in placement.claims):
        return DrahtError(
            "devices of extended resources are chosen by kube-scheduler",
            where=placement.name,
            hint="name claims in the pod to have draht choose",
        )
    return DrahtError("its claims aren't made yet", where=placement.name, hint="run it again in a moment")


def _nothing(cluster: Cluster, *, write: bool) -> str:
    if write:
        return "no pod waits at the gate draht.dev/placement; --pod names one that has no gate"
    return "no pod waits for devices" if cluster.live else "give files with pods that name claims, or with claims"


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
    from draht.api.errors import DrahtError

    error = placement.error
    if error is None:
        found = sequence.explain(placement, limits)
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
