"""``draht explain``: why a pod or claim of manifests or of a live cluster fits or doesn't."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from draht.api.printable import printable_lines
from draht.cli.manifest_files import BAD_INPUT, Cluster, bad_input, manifest_options, read_cluster
from draht.cli.output import emit, output_option

if TYPE_CHECKING:
    from draht.manifests import Manifests
    from draht.scheduler import Placement, Sequence

__all__ = ["explain"]

_HELP = """Say why a pod or claim fits, or doesn't: the cause, the numbers behind it, and what would help.

Without files the live cluster is read, and the answer is about what is allocated there now. In files, what stands
before it is placed first, as draht allocate does it; --alone leaves that out. The exit status is 0 if it fits, 1 if it
doesn't, 2 if something couldn't be read.

\b
draht explain pod/trainer -n team-a
draht explain -f pods.yaml --profile dgx-h100 trainer
"""


@click.command(short_help="Say why a pod or claim doesn't fit.", help=_HELP)
@manifest_options
@click.option("-n", "--namespace", help="Namespace of the pod or claim.  [default: the context's, or default]")
@click.option("--alone", is_flag=True, help="Place nothing else first.")
@output_option("text", "json", "yaml")
@click.argument("target", metavar="[pod/|claim/]NAME")
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    *,
    files: tuple[str, ...],
    namespace: str | None,
    node: str | None,
    steps: int,
    alone: bool,
    output: str,
    target: str,
    **options: Any,
) -> None:
    """Read, place what comes before, explain."""
    from draht.allocator import Limits
    from draht.scheduler import Sequence

    with bad_input():
        cluster = read_cluster(files, managed=partial(_gated, target=target, namespace=namespace), **options)
        cluster.check_node(node)
        name = _find(cluster.manifests, target, namespace or cluster.namespace, live=cluster.live)
    limits = Limits(steps=steps)
    sequence = Sequence(cluster.manifests, cluster.snapshot, node=node, limits=limits)
    placement = _placement(sequence, cluster.manifests, name, alone=alone or cluster.live)
    if placement.error is not None and not placement.claims:
        raise placement.error
    found = None if placement.fits else sequence.explain(placement, limits)
    if output == "text":
        text = _fits(placement, cluster) if found is None else f"{placement.name} doesn't fit: {found.text()}"
        click.echo(printable_lines(text))
    else:
        emit(
            {"for": placement.name, "fits": True, "node": placement.node}
            if found is None
            else {
                "for": placement.name,
                "fits": False,
                "cause": found.cause.value,
                "summary": found.summary,
                "about": found.request,
                "evidence": found.evidence,
                "nextSteps": found.next_steps,
                "blame": found.blame,
                "groups": [
                    {
                        "nodes": g.nodes,
                        "example": g.example,
                        "devices": g.devices,
                        "usable": g.usable,
                        "causes": g.causes,
                    }
                    for g in found.groups
                ],
            },
            output,
        )
    if cluster.broken:
        ctx.exit(BAD_INPUT)
    ctx.exit(0 if found is None else 1)


def _fits(placement: Placement, cluster: Cluster) -> str:
    pod = placement.pod
    if pod is not None and cluster.live:
        reason = cluster.settled.get((pod.metadata.namespace, pod.metadata.name))
        if reason is not None:
            return f"{placement.name} waits for no devices: {reason}"
        text = f"{placement.name} would get its devices on node {placement.node}"
        # Devices are only part of the story: CPU, memory, taints and volumes are kube-scheduler's.
        said = next((each.message for each in pod.status.conditions if each.type == "PodScheduled"), "")
        return f"{text}\n  kube-scheduler said last: {said}" if said else text
    if placement.node is None:
        return f"{placement.name} is allocated already, on another node"
    return f"{placement.name} fits on node {placement.node}"


def _gated(manifests: Manifests, target: str, namespace: str | None) -> bool:
    """Whether the target is a pod whose devices draht gives out."""
    from draht.controller import GATE

    name = target.partition("/")[2] or target
    return any(
        gate.name == GATE
        for (space, own), pod in manifests.pods.items()
        if own == name and namespace in {None, space}
        for gate in pod.spec.scheduling_gates
    )


def _find(manifests: Manifests, target: str, namespace: str, *, live: bool) -> str:
    """The name that a `Placement` of the target has."""
    from draht.api.errors import DrahtError

    kind, slash, name = target.partition("/")
    kinds = {"pod": ("Pod",), "claim": ("ResourceClaim",)}.get(kind) if slash else ("Pod", "ResourceClaim")
    if kinds is None:
        raise DrahtError(f"`{target}` names no pod or claim", hint="write pod/NAME, claim/NAME or NAME")
    name = name if slash else kind
    known = {"Pod": manifests.pods, "ResourceClaim": manifests.claims}
    for each in kinds:
        if (namespace, name) in known[each]:
            return f"{each} {namespace}/{name}"
    here = [
        f"{'pod' if each == 'Pod' else 'claim'}/{other}"
        for each in kinds
        for space, other in known[each]
        if space == namespace
    ]
    raise DrahtError(
        f"there is no {' or '.join(kinds)} {namespace}/{name} in the {'cluster' if live else 'files'}",
        hint=f"there are {', '.join(here[:8])}" if here else "name another namespace with -n",
    )


def _placement(sequence: Sequence, manifests: Manifests, name: str, *, alone: bool) -> Placement:
    """The placement of the target, after everything before it, or alone."""
    from draht.manifests import PodClaim, pod_claims

    kind, _, rest = name.partition(" ")
    namespace, _, own = rest.partition("/")
    if not alone and kind == "Pod":
        return next(each for each in sequence.place() if each.name == name)
    if kind == "Pod":
        pod = manifests.pods[namespace, own]
        return sequence.place_pod(pod, pod_claims(pod, manifests))
    if not alone:
        for each in sequence.place():
            if each.name == name:
                return each
    return sequence.place_pod(None, (PodClaim("", manifests.claims[namespace, own], generated=False),))
