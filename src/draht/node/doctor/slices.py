"""The node's ResourceSlices: against what should be published, and against themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from draht.api.finding import Finding
from draht.api.resource import Device, ResourceSlice
from draht.node.doctor.scene import Scene
from draht.node.slices.answers import ServerAnswers
from draht.node.slices.content import gates_behind, lost_fields, plain_paths
from draht.node.slices.plan import Create, Replace, plan
from draht.node.slices.wishes import combines_counters, wishes
from draht.validation import validate

__all__ = ["CHECKS"]

_PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
_MANAGED: Final = "draht.dev/managed"
_MOST_NAMED: Final = 3


def _wished(scene: Scene) -> Iterator[Finding]:
    """What draht would publish, beside what is there."""
    present = scene.remote.slices
    if present is None:
        return
    for driver, offer in scene.expected.offers.items():
        wished = wishes(
            offer,
            ServerAnswers(),
            driver=driver,
            node_name=scene.node_name,
            combined=combines_counters(scene.remote.version),
        )
        for problem in wished.left_out:
            yield Finding(
                kind="device-left-out",
                severity="warning",
                message=f"{driver}: {problem.message}",
                fix=problem.hint or "correct what the driver offers",
                where=problem.where,
            )
        for pool, specs in wished.pools.items():
            if specs[0].node_name is None:
                continue  # slices for other nodes aren't listed with those of this one
            here = [each for each in present if each.spec.driver == driver and each.spec.pool.name == pool]
            if not here:
                yield Finding(
                    kind="slices-missing",
                    severity="broken",
                    message=f"none of the {len(specs)} ResourceSlices of {driver} is on the API server, "
                    "so the scheduler knows of no device here",
                    fix="start draht node, or see its /readyz; a kubelet removes them 30 s after its plugin has gone",
                    where=f"pool {pool}",
                )
                continue
            steps = plan(specs, here)
            published = [each.spec for each in here]
            fields = {
                path: None
                for write in steps.writes
                if isinstance(write, Replace)
                for path in plain_paths(lost_fields(write.spec, write.old.spec))
            }
            names = [sorted(device.name for spec in each for device in spec.devices) for each in (specs, published)]
            if fields and names[0] == names[1] and all(isinstance(write, Replace) for write in steps.writes):
                changed = [write.spec for write in steps.writes if isinstance(write, Replace)]
                gates = sorted({gate for spec in changed for gate in gates_behind(spec, fields)})
                yield Finding(
                    kind="slice-fields-missing",
                    severity="warning",
                    message=f"{driver}: the slices on the API server lack {', '.join(fields)}",
                    fix=f"turn on the feature gate {' and '.join(gates)} of kube-apiserver"
                    if gates
                    else "see what changes them: `kubectl get resourceslices --show-managed-fields -o yaml`",
                    where=f"pool {pool}",
                )
            elif steps.writes:
                new = sum(isinstance(write, Create) for write in steps.writes)
                yield Finding(
                    kind="slices-differ",
                    severity="warning",
                    message=f"{driver}: the slices on the API server aren't those of this machine; {len(steps.writes)} "
                    f"writes would make them so, {new} of them new slices",
                    fix="see /readyz of draht node; while it runs it repairs them within half a minute",
                    where=f"pool {pool}",
                )


def _unserved(scene: Scene) -> Iterator[Finding]:
    """Slices whose driver nobody serves on this node."""
    drivers = scene.drivers()
    for driver in sorted({each.spec.driver for each in scene.remote.slices or ()} - set(drivers)):
        yield Finding(
            kind="slices-without-plugin",
            severity="broken",
            message=f"the scheduler gives pods devices of {driver} on this node, but no plugin of it is registered",
            fix="start the driver; a kubelet that runs removes its slices after 30 s",
            where=f"node {scene.node_name}",
        )
    if scene.remote.slices is not None:
        published = {each.spec.driver for each in scene.remote.slices}
        for driver, plugins in drivers.items():
            if driver not in published and driver not in scene.expected.offers and any(one.draht for one in plugins):
                yield Finding(
                    kind="plugin-without-slices",
                    severity="warning",
                    message=f"{driver} is registered, but has no ResourceSlice on this node",
                    fix="see /readyz and the log of draht node",
                    where=str(plugins[0].socket),
                )


def _pools(scene: Scene) -> Iterator[Finding]:
    """Pools that readers can't use, or not wholly."""
    for (driver, pool), slices in _by_pool(scene.remote.slices or ()).items():
        where = f"pool {pool} of {driver}"
        newest = max(each.spec.pool.generation for each in slices)
        live = [each for each in slices if each.spec.pool.generation == newest]
        wanted = live[0].spec.pool.resource_slice_count
        if len(live) != wanted:
            yield Finding(
                kind="pool-incomplete",
                severity="broken",
                message=f"{len(live)} of {wanted} slices of generation {newest} are there: "
                "requests for all devices fail, and others don't see all",
                fix="see the log of the driver, which is to publish the rest",
                where=where,
            )
        if len(live) < len(slices):
            yield Finding(
                kind="slices-of-old-generation",
                severity="note",
                message=f"{len(slices) - len(live)} slices of older generations are left over; nobody reads them",
                fix="the driver removes them when it publishes next",
                where=where,
            )
        names = Counter(device.name for each in live for device in each.spec.devices)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            yield Finding(
                kind="device-named-twice",
                severity="broken",
                message=f"device {twice[0]} is there {names[twice[0]]} times, so the whole pool isn't used",
                fix="see the log of the driver",
                where=where,
            )
        yield from _partitions(live, where)


def _partitions(live: Sequence[ResourceSlice], where: str) -> Iterator[Finding]:
    """A GPU and its partitions that no counter keeps apart: both could be given away."""
    devices = [device for each in live for device in each.spec.devices]
    whole = {_text(device, "uuid") for device in devices if _text(device, "type") == "gpu"}
    loose = [
        device for device in devices if _text(device, "parentUUID") in whole - {""} and not device.consumes_counters
    ]
    if loose:
        yield Finding(
            kind="partitions-without-counters",
            severity="broken",
            message=f"{loose[0].name} is a partition of a GPU that is offered, too, and no counter keeps them apart: "
            "both can be given away",
            fix="turn on the feature gate DRAPartitionableDevices of kube-apiserver, or offer no partitions",
            where=where,
        )


def _owners(scene: Scene) -> Iterator[Finding]:
    if scene.remote.node is None:
        return
    uid = scene.remote.node.metadata.uid
    foreign = [
        each
        for each in scene.remote.slices or ()
        if not any(owner.kind == "Node" and owner.uid == uid for owner in each.metadata.owner_references)
    ]
    if foreign:
        yield Finding(
            kind="slice-owner-other",
            severity="warning",
            message=f"{len(foreign)} slices of this node aren't owned by its Node object: they are of an earlier node "
            "of this name, or somebody else has made them",
            fix=f"kubectl delete resourceslice {foreign[0].metadata.name}; the driver makes its own again",
            where=f"resourceslice {foreign[0].metadata.name}",
        )


def _valid(scene: Scene) -> Iterator[Finding]:
    for each in scene.remote.slices or ():
        errors = validate(each)
        if errors:
            yield Finding(
                kind="slice-invalid",
                severity="warning",
                message=f"the slice breaks {len(errors)} rules of Kubernetes 1.37, the first at {errors[0].path}: "
                f"{errors[0].text}",
                fix="update its driver; some schedulers stop at such a slice",
                where=f"resourceslice {each.metadata.name}",
            )


def _devices(scene: Scene) -> Iterator[Finding]:
    """Taints that stay, and GPUs that can't be placed near anything."""
    rootless: list[str] = []
    for each in scene.remote.slices or ():
        for device in each.spec.devices:
            for taint in device.taints:
                if taint.key == _MANAGED:
                    continue
                since = f" since {taint.time_added}" if taint.time_added else ""
                yield Finding(
                    kind="device-tainted",
                    severity="warning",
                    message=f"its driver keeps claims off device {device.name}{since}: {taint.key}={taint.value or ''} "
                    f"({taint.effect})",
                    fix="mend what it is about; draht takes the taint away by itself, NVIDIA's driver when it restarts",
                    where=f"pool {each.spec.pool.name} of {each.spec.driver}",
                )
            if _text(device, "type") == "gpu" and _PCIE_ROOT not in device.attributes:
                rootless.append(device.name)
    if rootless:
        more = f" and {len(rootless) - _MOST_NAMED} more" if len(rootless) > _MOST_NAMED else ""
        yield Finding(
            kind="no-pcie-root",
            severity="note",
            message=f"{', '.join(rootless[:_MOST_NAMED])}{more} have no {_PCIE_ROOT}, so no claim can ask for a NIC "
            "near them",
            fix="virtual machines often hide it; ask for numaNode instead",
            where=f"node {scene.node_name}",
        )


def _by_pool(slices: Sequence[ResourceSlice]) -> dict[tuple[str, str], list[ResourceSlice]]:
    found: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        found.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    return found


def _text(device: Device, name: str) -> str:
    """An attribute of the driver's own domain."""
    for key, attribute in device.attributes.items():
        if key.rpartition("/")[2] == name and attribute.string is not None:
            return attribute.string
    return ""


CHECKS: Final[tuple[Callable[[Scene], Iterator[Finding]], ...]] = (
    _wished,
    _unserved,
    _pools,
    _owners,
    _valid,
    _devices,
)
