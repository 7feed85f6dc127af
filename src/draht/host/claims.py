"""Claims on one machine: pods and claims of manifests, asked for beside what the machine's database holds.

The allocator decides which devices; this module tells it what is taken (units of the database become allocated devices)
and turns its answer into what a hold and containers need. Devices that a manifest's slices bring and the machine
doesn't have, such as a channel of a fabric, are simulated, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from draht.allocator import Limits, Snapshot
from draht.allocator.explain import explain
from draht.allocator.explain.question import Question
from draht.allocator.explain.tally import tally
from draht.api.core import Pod
from draht.api.meta import ObjectMeta
from draht.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from draht.driver.slices import Published
from draht.driver.waiting import Demand
from draht.hardware.inventory import Device, Inventory
from draht.host.errors import SelectionError
from draht.host.selection import Choice, Part
from draht.manifests import Manifests, PodClaim, container_requests
from draht.scheduler import Placement
from draht.scheduler import Sequence as PodSequence

__all__ = ["ClaimsAsk", "Given"]

STEPS: Final = 200_000
"""Bound of one decision; a transaction of the database is open meanwhile."""

_Device = tuple[str, str, str]
"""Driver, pool and name."""


@dataclass(frozen=True, slots=True)
class Given:
    """One device that a container gets, as its claim says.

    Args:
        device: The device of the inventory, or what would be made of it.
        result: The allocation's entry.
        parameters: Opaque parameters that apply to it, classes' first.
    """

    device: Device
    result: DeviceRequestAllocationResult
    parameters: tuple[object, ...] = ()


@dataclass(frozen=True)
class ClaimsAsk:
    """Everything that some manifests ask for, as one `draht.host.selection.Ask`.

    Args:
        inventory: The machine.
        published: Its slices.
        manifests: Pods, claims, templates, classes; slices of others.
        node: Name of the machine as a node.
    """

    inventory: Inventory
    published: Published
    manifests: Manifests
    node: str

    @property
    def amount(self) -> str:
        """See `draht.host.selection.Ask`."""
        return str(sum(demand.wanted for demand in self.demands()))

    def demands(self) -> tuple[Demand, ...]:
        """See `draht.host.selection.Ask`."""
        return self._demands

    def choose(self, taken: AbstractSet[str]) -> Choice | None:
        """See `draht.host.selection.Ask`."""
        self.demands()
        placements = self._place(self._snapshot(taken))
        if any(each.node is None for each in placements):
            return None
        parts = tuple(self._parts(placements))
        # One device may have come to several claims; the hold has it once. What is only looked at isn't held.
        held = {given.device.id: given.device for given in self._given(placements) if not given.result.admin_access}
        if not held:
            raise SelectionError("nothing would be held: no claim asks for a device of its own")
        return Choice(
            devices=tuple(held.values()),
            cdi_names=() if self.inventory.simulated else _names(held.values()),
            units=frozenset(unit for device in held.values() for unit in device.units),
            parts=parts,
        )

    @cached_property
    def _demands(self) -> tuple[Demand, ...]:
        snapshot = self._snapshot(frozenset())
        placements = self._place(snapshot)
        for each in placements:
            if each.error is not None:
                raise SelectionError(each.error.message, where=each.error.where or each.name, hint=each.error.hint)
            if each.node is None:
                found = explain(self._after(snapshot, placements, each), each.unallocated, nodes=(self.node,))
                raise SelectionError(
                    f"{each.name} doesn't fit on {self.inventory.machine}: {found.summary}"
                    + "".join(f"; {line}" for line in found.evidence),
                    hint="; ".join(found.next_steps) or None,
                )
        demands = tuple(self._demand(snapshot, claim) for each in placements for claim in each.claims)
        return tuple(demand for of_claim in demands for demand in of_claim)

    def _demand(self, snapshot: Snapshot, each: PodClaim) -> Iterator[Demand]:
        """For each request as many devices as it got on the empty machine, from those that would do for it."""
        allocation = each.claim.status.allocation
        assert allocation is not None
        bare = msgspec.structs.replace(each.claim, status=ResourceClaimStatus())
        for index, request in enumerate(each.claim.spec.devices.requests):
            results = [r for r in allocation.devices.results if r.request.partition("/")[0] == request.name]
            held = [result for result in results if not result.admin_access]
            if not held:
                continue
            names = [sub.name for sub in request.first_available]
            alternative = names.index(held[0].request.partition("/")[2]) if names else None
            question = Question(snapshot, (bare,), (self.node,)).only(0, index, alternative)
            usable = [device for group in tally(question).groups for device in group.usable]
            candidates = dict.fromkeys(self._device((d[0], d[1], d[2])).units for d in usable)
            wanted = len({(r.driver, r.pool, r.device) for r in held})
            yield Demand(min(wanted, len(candidates)), tuple(candidates))

    def _place(self, snapshot: Snapshot) -> tuple[Placement, ...]:
        sequence = PodSequence(self.manifests, snapshot, node=self.node, limits=Limits(steps=STEPS))
        return tuple(sequence.place())

    def _after(self, snapshot: Snapshot, placements: Sequence[Placement], stop: Placement) -> Snapshot:
        """The snapshot as the placement saw it."""
        for each in placements:
            if each is stop:
                break
            snapshot = snapshot.with_claims(claim.claim for claim in each.claims if each.node)
        return snapshot

    def _snapshot(self, taken: AbstractSet[str]) -> Snapshot:
        return self._base.with_claims([_holding("taken", self._blocked(taken))]) if taken else self._base

    @cached_property
    def _base(self) -> Snapshot:
        node = self.manifests.nodes.get(self.node)
        return Snapshot.of(
            slices=[*self.published.slices, *self.manifests.slices.values()],
            classes=self.manifests.classes.values(),
            claims=self.manifests.claims.values(),
            nodes=[node] if node else None,
            taint_rules=self.manifests.taint_rules.values(),
        )

    def _blocked(self, taken: AbstractSet[str]) -> Iterator[_Device]:
        """Published devices that stand for taken units, so that counters are charged once for each unit."""
        left = set(taken)
        # The largest first: a GPU that is taken whole isn't also taken as its partitions.
        for key, device in sorted(self.published.devices.items(), key=lambda item: -len(item[1].units)):
            if device.units <= left:
                left -= device.units
                yield (key[0], self.node, key[1])
        for key, device in self.published.devices.items():
            # What no device covers exactly blocks whole devices, which is on the safe side.
            if device.units & left and device.kind != "mig":
                yield (key[0], self.node, key[1])

    def _given(self, placements: Sequence[Placement]) -> Iterator[Given]:
        seen: set[tuple[str, str]] = set()
        for placement in placements:
            for each in placement.claims:
                key = (each.claim.metadata.namespace, each.claim.metadata.name)
                if key not in seen:
                    seen.add(key)
                    yield from self._of_claim(each.claim, None)

    def _of_claim(self, claim: ResourceClaim, request: str | None) -> Iterator[Given]:
        allocation = claim.status.allocation
        assert allocation is not None
        for result in allocation.devices.results:
            base = result.request.partition("/")[0]
            if request not in {None, base}:
                continue
            parameters = tuple(
                config.opaque.parameters
                for config in allocation.devices.config
                if config.opaque is not None
                and config.opaque.driver == result.driver
                and (not config.requests or result.request in config.requests or base in config.requests)
            )
            yield Given(self._device((result.driver, result.pool, result.device)), result, parameters)

    def _parts(self, placements: Sequence[Placement]) -> Iterator[Part]:
        for placement in placements:
            pod = placement.pod
            if pod is None:
                continue
            for container in pod.spec.containers:
                given = [
                    each
                    for claim, request in container_requests(pod, container.name, placement.claims, self.manifests)
                    for each in self._of_claim(claim.claim, request)
                ]
                if any(each.parameters for each in given) and not self.inventory.simulated:
                    raise SelectionError(
                        f"the claims of pod {pod.metadata.name} bring settings for the driver, "
                        "which aren't applied to real devices yet",
                        hint="leave the configuration out of claim and class, or try it with --profile",
                    )
                if given:
                    yield _part(pod, container.name, given, simulated=self.inventory.simulated)

    def _device(self, key: _Device) -> Device:
        """The device of the inventory; one that only a manifest's slice knows is simulated."""
        known = self.published.devices.get((key[0], key[2])) if key[1] == self.node else None
        if known is not None:
            return known
        if not self.inventory.simulated:
            raise SelectionError(
                f"device {'/'.join(key)} isn't one of this machine",
                hint="leave slices of other machines out, or try it with --profile",
            )
        return Device(
            id="/".join(key),
            kind="other",
            units=frozenset({"/".join(key)}),
            device_nodes=(f"/dev/draht/{key[0]}/{key[2]}",),
            simulated=True,
        )


def _names(devices: Iterable[Device]) -> tuple[str, ...]:
    return tuple(name for device in devices for name in device.cdi_names[:1])


def _part(pod: Pod, container: str, given: Sequence[Given], *, simulated: bool) -> Part:
    devices = {each.device.id: each.device for each in given}
    env = {}
    settings = {each.result.device: list(each.parameters) for each in given if each.parameters}
    if settings:
        env["DRAHT_SIMULATED_CONFIG"] = msgspec.json.encode(settings).decode()
    shares = {each.result.device: each.result.consumed_capacity for each in given if each.result.consumed_capacity}
    if shares:
        env["DRAHT_SIMULATED_SHARE"] = msgspec.json.encode(shares).decode()
    return Part(
        name=f"{pod.metadata.name}/{container}",
        devices=tuple(devices.values()),
        cdi_names=() if simulated else _names(devices.values()),
        env=env,
    )


def _holding(name: str, devices: Iterator[_Device]) -> ResourceClaim:
    """A claim that holds devices, for what is taken outside of manifests."""
    results = tuple(
        DeviceRequestAllocationResult(request="held", driver=driver, pool=pool, device=device)
        for driver, pool, device in devices
    )
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="draht"),
        status=ResourceClaimStatus(allocation=AllocationResult(devices=DeviceAllocationResult(results=results))),
    )
