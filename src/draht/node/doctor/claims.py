"""Claims of this node: what the database has, what the files say, what the API server has, and which pods wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from draht import cdi
from draht.api.core import Pod
from draht.api.finding import Finding
from draht.api.resource import ResourceClaim
from draht.cdi.spec_findings import spec_findings
from draht.driver.claims.spec import file_name, parse_file_name
from draht.node.doctor.scene import Scene, results

__all__ = ["CHECKS"]

_HALF_WAY: Final = 120.0
"""Seconds; a call of the kubelet has 45."""
_SOON: Final = 10.0
"""Seconds that a pod may be without its devices after the kubelet has taken it."""
_MOST_RESERVED: Final = 256
"""Pods that may share a claim (``ResourceClaimReservedForMaxSize``)."""


def _database(scene: Scene) -> Iterator[Finding]:
    condition, sentence, fix = scene.local.database
    if condition == "unreadable":
        yield Finding(
            kind="database-unreadable",
            severity="broken",
            message=sentence,
            fix=fix or "start draht node again: it keeps the file aside and finds the claims in their CDI specs",
            where=str(scene.directories.state),
        )


def _specs(scene: Scene) -> Iterator[Finding]:
    """The directories of CDI specs, and what is in them."""
    directory = scene.directories.cdi
    if scene.exists(directory) == "missing" and any(scene.local.claims or ()):
        yield Finding(
            kind="cdi-directory-missing",
            severity="broken",
            message="claims are prepared, but the directory of their CDI specs isn't there",
            fix="start draht node again, which makes it, or name the right one with --cdi-dir",
            where=str(directory),
        )
    usual = {Path(each).resolve() for each in cdi.DEFAULT_DIRECTORIES}
    if directory.resolve() not in usual:
        yield Finding(
            kind="cdi-directory-unusual",
            severity="note",
            message="container runtimes read CDI specs of this directory only if they are told to",
            fix="see cdi_spec_dirs in the runtime's configuration, or use /var/run/cdi",
            where=str(directory),
        )
    yield from spec_findings(scene.local.cache, scene.directories.root)


def _files(scene: Scene) -> Iterator[Finding]:
    """Prepared claims without the files that their containers need: the CDI device can't be resolved then."""
    for claim in scene.local.claims or ():
        if claim.state != "prepared":
            continue
        if claim.boot_id not in {"", scene.local.boot_id} and scene.local.boot_id != "unknown":
            yield Finding(
                kind="claim-of-earlier-boot",
                severity="broken",
                message=f"claim {claim.record.title} was prepared before the reboot and not since, so its containers "
                "can't start",
                fix="start draht node: it prepares such claims again before the kubelet can ask",
                where=f"claim {claim.record.title}",
            )
            continue
        missing = [path for path in claim.files if not Path(path).exists()]
        if missing:
            yield Finding(
                kind="claim-files-missing",
                severity="broken",
                message=f"claim {claim.record.title} is prepared, but {missing[0]} is gone: its containers don't start "
                "(unresolvable CDI devices)",
                fix="start draht node again, which writes it anew; find out what empties the directory",
                where=f"claim {claim.record.title}",
            )


def _states(scene: Scene) -> Iterator[Finding]:
    for claim in scene.local.claims or ():
        title = claim.record.title
        if claim.state != "prepared" and scene.now - claim.record.since > _HALF_WAY:
            yield Finding(
                kind="claim-half-way",
                severity="warning",
                message=f"claim {title} has been {claim.state} for {(scene.now - claim.record.since) / 60:.0f} minutes",
                fix="see the log of draht node for its claim_uid; a start of the agent rolls it back",
                where=f"claim {title}",
            )
        conditions = [one for device in (claim.answer.status if claim.answer else ()) for one in device.conditions]
        for condition in conditions:
            if condition.type == "Ready" and condition.status == "False":
                yield Finding(
                    kind="claim-not-ready",
                    severity="warning",
                    message=f"a device of claim {title} can't be used: {condition.message or condition.reason}",
                    fix="delete the pod, so that it gets another device, or bring the device back",
                    where=f"claim {title}",
                )
                break
        if claim.adopted:
            yield Finding(
                kind="claim-adopted",
                severity="note",
                message=f"claim {title} was found in its CDI spec after the database had been lost",
                where=f"claim {title}",
            )


def _left_over_specs(scene: Scene) -> Iterator[Finding]:
    """Specs of claims that nothing on the node knows."""
    if scene.local.claims is None and scene.local.database[0] != "absent":
        return
    known = {file_name(claim.record.driver, claim.record.uid) for claim in scene.local.claims or ()}
    for path in _listed(scene.directories.cdi):
        found = parse_file_name(path.name)
        if found is not None and path.name not in known:
            yield Finding(
                kind="claim-spec-stale",
                severity="warning",
                message=f"a CDI spec of {found[0]} is for a claim that isn't prepared here",
                fix="start draht node again: it takes the claim over or removes the file; if another driver wrote it, "
                "it is that driver's",
                where=str(path),
            )


def _ends(scene: Scene) -> Iterator[Finding]:
    """Prepared claims whose claim or pod is gone: their devices stay occupied."""
    if scene.remote.claims is None:
        return
    by_uid = {each.metadata.uid: each for each in scene.remote.claims}
    here = None if scene.remote.pods is None else {each.metadata.uid for each in scene.remote.pods}
    for claim in scene.local.claims or ():
        title = claim.record.title
        found = by_uid.get(claim.record.uid)
        users = [] if found is None else [user for user in found.status.reserved_for if user.resource == "pods"]
        if found is None:
            yield Finding(
                kind="claim-gone",
                severity="warning",
                message=f"claim {title} is prepared here, but the API server doesn't have it any more",
                fix="the kubelet unprepares it when its pod has ended; if no pod runs, restart the kubelet",
                where=f"claim {title}",
            )
        elif here is not None and not any(user.uid in here for user in users) and not _by_group(found):
            yield Finding(
                kind="claim-without-pod",
                severity="warning",
                message=f"claim {title} is prepared here, but no pod on this node uses it",
                fix="the kubelet unprepares it within a minute; if it doesn't, restart the kubelet",
                where=f"claim {title}",
            )


def _waiting(scene: Scene) -> Iterator[Finding]:
    """Pods on this node that wait for their claims."""
    drivers = scene.drivers()
    prepared = {(row.record.uid, row.record.driver) for row in scene.local.claims or () if row.state == "prepared"}
    told: set[tuple[str, str]] = set()
    for pod, claim in scene.waiting():
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        title = f"{claim.metadata.namespace}/{claim.metadata.name}"
        if claim.status.allocation is None:
            yield Finding(
                kind="claim-not-allocated",
                severity="broken",
                message=f"pod {name} is on this node, but its claim {title} isn't allocated: somebody named the node "
                "past the scheduler",
                fix="let it be scheduled: a node selector on kubernetes.io/hostname instead of nodeName",
                where=f"pod {name}",
            )
        for driver in dict.fromkeys(result.driver for result in results(claim)):
            if (name, driver) in told:
                continue
            if driver not in drivers:
                told.add((name, driver))
                yield Finding(
                    kind="driver-not-registered",
                    severity="broken",
                    message=f"pod {name} waits: the driver {driver} of its claim {title} isn't registered on this node",
                    fix="start that driver here; the kubelet tries again by itself",
                    where=f"pod {name}",
                )
            elif driver in scene.ours() and scene.local.claims is not None:
                said = _last_event(scene, pod.metadata.uid)
                if (claim.metadata.uid, driver) in prepared or not (said or _has_waited(pod, scene.now)):
                    continue
                told.add((name, driver))
                yield Finding(
                    kind="claim-not-prepared",
                    severity="broken",
                    message=f"pod {name} waits for claim {title}, which {driver} hasn't prepared"
                    + (f": {said}" if said else ""),
                    fix=f"see the log of draht node for claim_uid {claim.metadata.uid}",
                    where=f"pod {name}",
                )


def _shared(scene: Scene) -> Iterator[Finding]:
    """One device for two claims, devices that nobody offers, and claims that are full."""
    if scene.remote.claims is None:
        return
    pools = {(each.spec.driver, each.spec.pool.name) for each in scene.remote.slices or ()}
    offered = {
        (each.spec.driver, each.spec.pool.name, device.name)
        for each in scene.remote.slices or ()
        for device in each.spec.devices
    }
    owner: dict[tuple[str, str, str], str] = {}
    for claim in scene.remote.claims:
        title = f"{claim.metadata.namespace}/{claim.metadata.name}"
        mine = [result for result in results(claim) if (result.driver, result.pool) in pools]
        for result in mine:
            device = (result.driver, result.pool, result.device)
            if device not in offered:
                yield Finding(
                    kind="device-not-offered",
                    severity="broken",
                    message=f"claim {title} has device {result.device}, which {result.driver} doesn't offer any more",
                    fix="see why the device has gone; delete the pod to have its claim allocated anew",
                    where=f"claim {title}",
                )
            if result.admin_access or result.share_id:
                continue
            if device in owner:
                yield Finding(
                    kind="device-allocated-twice",
                    severity="broken",
                    message=f"claims {owner[device]} and {title} both have device {result.device} of {result.driver}",
                    fix="delete one of the pods; draht prepares a device for one claim only, other drivers may not",
                    where=f"pool {result.pool}",
                )
            owner.setdefault(device, title)
        if mine and len(claim.status.reserved_for) >= _MOST_RESERVED:
            yield Finding(
                kind="claim-full",
                severity="warning",
                message=f"claim {title} is used by {_MOST_RESERVED} pods, which is all that a claim may be",
                fix="give further pods another claim, or reserve it for a PodGroup",
                where=f"claim {title}",
            )


def _by_group(claim: ResourceClaim) -> bool:
    """Whether something else than a pod uses it; which pods that means isn't known here."""
    return any(user.resource != "pods" for user in claim.status.reserved_for)


def _has_waited(pod: Pod, now: float) -> bool:
    """Whether the kubelet has had the pod for longer than a preparation takes; in doubt it has."""
    try:
        return now - datetime.fromisoformat(pod.status.start_time or "").timestamp() > _SOON
    except ValueError:
        return True


def _last_event(scene: Scene, pod_uid: str) -> str:
    found = [each for each in scene.remote.events or () if each.involved_object.uid == pod_uid]
    found.sort(key=lambda each: str(each.last_timestamp or each.event_time or ""))
    return found[-1].message if found else ""


def _listed(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


CHECKS: Final[tuple[Callable[[Scene], Iterator[Finding]], ...]] = (
    _database,
    _specs,
    _files,
    _states,
    _left_over_specs,
    _ends,
    _waiting,
    _shared,
)
