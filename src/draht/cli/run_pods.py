"""``draht run -f``: the pods of manifests as containers of this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from draht.api.errors import DrahtError

if TYPE_CHECKING:
    from draht.api.core import Container, Pod
    from draht.host.order import ContainerOrder
    from draht.manifests import Manifests

__all__ = ["container_orders", "read_pods", "run_files"]

_LEFT_OUT = {
    "init_containers": "init containers",
    "ephemeral_containers": "ephemeral containers",
    "volumes": "volumes",
    "security_context": "the security context",
}
"""Fields of a pod that need a kubelet."""


def run_files(
    files: Sequence[str],
    *,
    say: Callable[[str], None],
    profile: str | None,
    kind: str | None,
    partitions: bool,
    shares: bool,
    engine_name: str | None,
    wait: float,
    rootfs: str | None,
    network: str | None,
) -> int:
    """Run the pods, pass on what they write, and return the first status that isn't 0.

    Raises:
        DrahtError: A manifest can't be read, a claim doesn't fit, the engine fails.
    """
    from draht.driver.slices import publish
    from draht.host.claims import ClaimsAsk
    from draht.host.engines import engine
    from draht.host.local import local_host, local_inventory, refuse_owned
    from draht.host.order import PodsOrder, Wanted
    from draht.host.ownership import look
    from draht.host.pods import run_pods

    manifests = read_pods(files)
    host = local_host(say)
    assert host.cache is not None
    inventory, _ = local_inventory(host.cache, profile=profile, kind=kind)
    if (partitions or shares) and not inventory.simulated:
        raise DrahtError("partitions and shares of real GPUs can't be made yet", hint="try them with --profile")
    published = publish(inventory, node_name=inventory.machine, partitions=partitions, shares=shares)
    ask = ClaimsAsk(inventory, published, manifests, inventory.machine)
    refuse_owned(inventory, ask, look())
    orders = tuple(order for pod in manifests.pods.values() for order in container_orders(pod, rootfs, say))
    if inventory.simulated:
        say(f"simulated: {inventory.machine} is a machine profile, its GPUs compute nothing")
    several = len(orders) > 1

    def output(name: str, line: bytes) -> None:
        sys.stdout.buffer.write((f"{name}: ".encode() if several else b"") + line + b"\n")
        sys.stdout.buffer.flush()

    wanted = Wanted(
        inventory=inventory,
        ask=ask,
        engine=engine(engine_name, found=dict(host.engines)).name,
        command=tuple(f"pod {pod.metadata.name}" for pod in manifests.pods.values()),
        wait=wait,
    )
    outcome = run_pods(host, PodsOrder(wanted=wanted, containers=orders, network=network, output=output))
    return next((status for status in outcome.statuses.values() if status), 0)


def read_pods(files: Sequence[str]) -> Manifests:
    """The manifests that pods need; claims that nobody uses play no part.

    Raises:
        DrahtError: Something can't be read, or there is no pod.
    """
    from draht.cli.manifest_files import manifests_of, read_manifests
    from draht.manifests import pod_claims

    read = read_manifests(files)
    if read.errors:
        first, *more = read.errors
        raise DrahtError(
            f"{first}" + (f" (and {len(more)} more)" if more else ""),
            hint=first.hint or "`draht validate -f` shows all problems",
        )
    manifests = manifests_of(read.objects)
    if not manifests.pods:
        raise DrahtError(
            "there is no pod in the files", hint="draht run -f runs pods; see `draht allocate -f` for claims"
        )
    used = {
        (each.claim.metadata.namespace, each.claim.metadata.name)
        for pod in manifests.pods.values()
        for each in pod_claims(pod, manifests)
    }
    claims = {key: each for key, each in manifests.claims.items() if key in used or each.status.allocation}
    return replace(manifests, claims=claims)


def container_orders(pod: Pod, rootfs: str | None, say: Callable[[str], None]) -> Iterator[ContainerOrder]:
    """What the containers of a pod run; what needs a kubelet is left out, and said.

    Args:
        pod: The pod.
        rootfs: Directory that takes the place of every image.
        say: Told what is left out.

    Raises:
        DrahtError: A container has neither image nor root file system.
    """
    from draht.host.order import ContainerOrder

    left_out = [words for name, words in _LEFT_OUT.items() if getattr(pod.spec, name)]
    if any(variable.value_from for each in pod.spec.containers for variable in each.env):
        left_out.append("variables with valueFrom")
    if any(each.env_from for each in pod.spec.containers):
        left_out.append("envFrom")
    if left_out:
        say(f"note: pod {pod.metadata.name}: {', '.join(left_out)} are left out; they need a kubelet")
    for each in pod.spec.containers:
        if rootfs is None and not each.image:
            raise DrahtError(
                f"container {each.name} of pod {pod.metadata.name} has no image", hint="give it one, or use --rootfs"
            )
        yield ContainerOrder(
            name=f"{pod.metadata.name}/{each.name}",
            image=None if rootfs else each.image,
            rootfs=rootfs,
            command=_command(each),
            env={variable.name: variable.value for variable in each.env if variable.value_from is None},
        )


def _command(container: Container) -> tuple[str, ...]:
    return (*container.command, *container.args)
