"""A question to the allocator, and the same question with something taken out of it.

That is how causes are found: not by guessing from rejections, but by taking a cause away and asking again. So an
explanation is true by construction, and every new feature of the allocator is covered by the same few changes.

Owns the changes. Which of them to try, and what their answers mean, is `draht.allocator.explain.causes`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import structs

from draht.allocator.errors import AllocatorError, FatalError
from draht.allocator.fit import find
from draht.allocator.search import NO_LIMITS, Limits
from draht.allocator.snapshot import Snapshot
from draht.api.resource import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

__all__ = ["Answer", "Question"]

_EVERYTHING: Final = (DeviceToleration(operator="Exists"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the allocator says to a question.

    Args:
        node: The first node that fits, or None.
        error: What ended the attempt, or kept a node from being judged; None if it simply doesn't fit.
        at: The node at which the error came.
    """

    node: str | None
    error: AllocatorError | None = None
    at: str = ""


@dataclass(frozen=True)
class Question:
    """Do these claims fit on one of these nodes?

    Args:
        snapshot: The cluster.
        claims: The claims.
        nodes: Names of the nodes to try, in this order.
        limits: Of one attempt.
    """

    snapshot: Snapshot
    claims: tuple[ResourceClaim, ...]
    nodes: tuple[str, ...]
    limits: Limits = NO_LIMITS

    def answer(self) -> Answer:
        """Ask the allocator."""
        fit = find(self.snapshot, self.claims, limits=self.limits)
        fitting = set(fit.names())
        for node in self.nodes:
            if node in fitting:
                return Answer(node)
        errors = fit.errors
        found = [(node, errors[node]) for node in self.nodes if node in errors]
        fatal = next(((node, error) for node, error in found if isinstance(error, FatalError)), None)
        node, error = fatal or (found[0] if found else ("", None))
        return Answer(None, error, node)

    @property
    def fits(self) -> bool:
        """Whether it does."""
        return self.answer().node is not None

    def on(self, nodes: Sequence[str]) -> Question:
        """On other nodes."""
        return replace(self, nodes=tuple(nodes))

    def emptied(self, keep: Callable[[ResourceClaim], bool] = lambda _claim: False) -> Question:
        """With nothing held, or only what some claims hold."""
        snapshot = self.snapshot
        for (namespace, name), claim in snapshot.claims.items():
            if not keep(claim):
                snapshot = snapshot.without_claim(namespace, name)
        return replace(self, snapshot=snapshot)

    def uncounted(self) -> Question:
        """With partitions that don't exclude each other."""
        snapshot = self.snapshot
        for piece in snapshot.slices.values():
            if any(device.consumes_counters for device in piece.spec.devices):
                devices = tuple(structs.replace(device, consumes_counters=()) for device in piece.spec.devices)
                spec = structs.replace(piece.spec, devices=devices)
                snapshot = snapshot.with_slice(structs.replace(piece, spec=spec))
        return replace(self, snapshot=snapshot)

    def only(self, claim: int, request: int, alternative: int | None = None) -> Question:
        """With one request alone, or one alternative of it as a request of its own; without constraints."""
        asked = self.claims[claim].spec.devices.requests[request]
        if alternative is not None:
            sub = asked.first_available[alternative]
            fields = {name: getattr(sub, name) for name in sub.__struct_fields__ if name != "name"}
            exactly = ExactDeviceRequest(**fields)
            asked = DeviceRequest(name=asked.name, exactly=exactly)
        devices = structs.replace(self.claims[claim].spec.devices, requests=(asked,), constraints=())
        return replace(self, claims=(_with(self.claims[claim], devices),))

    def without_constraints(self, claim: int, dropped: Container[int] | None = None) -> Question:
        """Without some constraints of a claim, by their numbers; without all of them if none are named."""
        devices = self.claims[claim].spec.devices
        kept = tuple(
            each for number, each in enumerate(devices.constraints) if dropped is not None and number not in dropped
        )
        return self._replacing(claim, _with(self.claims[claim], structs.replace(devices, constraints=kept)))

    def tolerating(self, tolerations: tuple[DeviceToleration, ...] = _EVERYTHING) -> Question:
        """With every request tolerating taints."""
        return self.changing(lambda request: structs.replace(request, tolerations=tolerations))

    def without_amounts(self) -> Question:
        """Without requested capacity."""
        return self.changing(lambda request: structs.replace(request, capacity=None))

    def selecting(self, texts: Sequence[str] = ()) -> Question:
        """With these selectors in the place of each request's own; the class still selects."""
        selectors = tuple(DeviceSelector(cel=CELDeviceSelector(expression=text)) for text in texts)
        return self.changing(lambda request: structs.replace(request, selectors=selectors))

    def counting(self, count: int) -> Question:
        """With an exact count, whatever was asked for."""
        return self.changing(lambda request: structs.replace(request, allocation_mode="ExactCount", count=count))

    def changing(self, change: Callable[[Any], Any]) -> Question:
        """With every request (``ExactDeviceRequest``) and alternative (``DeviceSubRequest``) changed."""
        changed = []
        for claim in self.claims:
            requests = tuple(
                structs.replace(
                    request,
                    exactly=None if request.exactly is None else change(request.exactly),
                    first_available=tuple(change(each) for each in request.first_available),
                )
                for request in claim.spec.devices.requests
            )
            changed.append(_with(claim, structs.replace(claim.spec.devices, requests=requests)))
        return replace(self, claims=tuple(changed))

    def _replacing(self, index: int, claim: ResourceClaim) -> Question:
        return replace(self, claims=(*self.claims[:index], claim, *self.claims[index + 1 :]))


def _with(claim: ResourceClaim, devices: DeviceClaim) -> ResourceClaim:
    return structs.replace(claim, spec=structs.replace(claim.spec, devices=devices))
