"""Requests as a search sees them: what is asked for, in how many ways, and what is wrong with it.

Made by `draht.allocator.plan`, independent of nodes and names of claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from draht.allocator.constraint import Constraint
    from draht.allocator.errors import Failure
    from draht.allocator.expressions import Derivation, Expression
    from draht.api.quantity import Quantity
    from draht.api.resource import DeviceClass, DeviceToleration

__all__ = ["MAX_RESULTS", "Alternative", "ClaimPlan", "Mode", "Request", "Test"]

MAX_RESULTS: Final = 32
"""Most devices a claim can get (``AllocationResultsMaxSize``)."""


class Mode(Enum):
    """How many devices a request asks for."""

    EXACT = "ExactCount"
    ALL = "All"


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """One selector of a class or of a request.

    Args:
        expression: The compiled text, or why it doesn't compile: an error when a device is tested, not before.
        origin: Words for messages: ``class gpu, selector 0``.
    """

    expression: Expression
    origin: str


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One way to satisfy a request: the request itself, or one entry of its prioritised list.

    Args:
        index: Position in `Plan.alternatives`.
        claim: Index of the claim.
        request: Index of the request in `Plan.requests`.
        reference: ``request`` or ``request/subrequest``, as results and constraints spell it.
        mode: Exact count or all.
        count: Devices asked for; 0 for all.
        admin: Admin access: devices in use may be chosen, only those of the same claim may not.
        device_class: The class, None where it is missing (then there is a failure).
        tests: Class selectors, then request selectors; the first that is false ends the test of a device.
        tolerations: As given; also copied into results.
        amounts: Requested capacity, None where nothing is requested.
        constraints: Indexes into `ClaimPlan.constraints` of those that are about it, in order.
        derived: Derived attributes by name.
        failure: What upstream finds wrong with it before it looks at devices.
    """

    index: int
    claim: int
    request: int
    reference: str
    mode: Mode = Mode.EXACT
    count: int = 0
    admin: bool = False
    device_class: DeviceClass | None = None
    tests: tuple[Test, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()
    amounts: Mapping[str, Quantity] | None = None
    constraints: tuple[int, ...] = ()
    derived: Mapping[str, Derivation] | None = None
    failure: Failure | None = None

    def tolerates(self, taints: tuple[tuple[str, str, str], ...]) -> bool:
        """Whether none of the taints (key, value, effect) keeps the request away."""
        return all(any(_tolerates(t, *taint) for t in self.tolerations) for taint in taints)


def _tolerates(toleration: DeviceToleration, key: str, value: str, effect: str) -> bool:
    if toleration.effect not in {"", effect} or toleration.key not in {"", key}:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == value
    return toleration.operator == "Exists"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One request of a claim.

    Args:
        index: Position in `Plan.requests`.
        claim: Index of the claim.
        alternatives: Indexes into `Plan.alternatives`; exactly one where it isn't a list.
        prioritised: Whether it is a list (``firstAvailable``), even one of a single entry.
        failure: A switched-off feature it uses; found before anything about its alternatives.
    """

    index: int
    claim: int
    alternatives: tuple[int, ...]
    prioritised: bool
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ClaimPlan:
    """One claim.

    Args:
        requests: Indexes into `Plan.requests`.
        constraints: In the order of the claim.
        failure: A constraint that is none; found after the requests.
    """

    requests: tuple[int, ...]
    constraints: tuple[Constraint, ...]
    failure: Failure | None = None
