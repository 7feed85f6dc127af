"""What an explanation says: one cause, what shows it, and what to do next. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Dominant", "Explanation", "NodeGroup"]


class Dominant(StrEnum):
    """The cause to look at first; stable names for programs."""

    FITS = "fits"
    """Nothing is in the way."""
    ERROR = "error"
    """The claim, its class or a selector is wrong; the allocator gives up everywhere."""
    INCOMPLETE_POOL = "incomplete-pool"
    """A driver is publishing a pool, and all of its devices are asked for."""
    INVALID_POOL = "invalid-pool"
    """A driver published slices that contradict each other."""
    NO_NODE = "no-node"
    """There is no node to look at."""
    NODE_CHOICE = "node-choice"
    """It fits on nodes that may not be used."""
    NO_DEVICES = "no-devices"
    """No device belongs to the class."""
    SELECTOR = "selector"
    """Too few devices of the class are what the request selects."""
    TAINT = "taint"
    """Devices that would do have taints that the request doesn't tolerate."""
    CAPACITY = "capacity"
    """No device has the amounts that are requested, or its policy forbids them."""
    COUNTERS = "counters"
    """Partitions of the same devices exclude each other."""
    TOPOLOGY = "topology"
    """There are enough devices, but not on one node."""
    CONSTRAINT = "constraint"
    """No combination has the attribute in common, or apart, as a constraint wants it."""
    TOGETHER = "together"
    """Every request can be satisfied, but not all of them at once."""
    RESULT_LIMIT = "result-limit"
    """The claim would get more devices than a claim can have."""
    HELD = "held"
    """What would do is held by others."""
    BUDGET = "budget"
    """The search was stopped before it had an answer."""
    FEATURE = "feature"
    """Something that the claim or its devices need is switched off in the release that is asked about."""


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes on which the request that matters finds the same.

    Args:
        nodes: How many they are.
        example: The name of the first one.
        devices: Devices that one of them has.
        usable: Devices of these that would be taken.
        causes: Why not the others, with their number.
    """

    nodes: int
    example: str
    devices: int
    usable: int
    causes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why claims fit or don't.

    Args:
        cause: What to look at first.
        summary: One sentence.
        request: ``claim, request`` that matters, where it is one.
        evidence: Sentences with the numbers behind the summary.
        next_steps: What would help, the least first; each would by itself unless it says otherwise.
        groups: What the request that matters finds on the nodes, largest group first.
        node: The node where it fits, if it does.
        blame: Names that go with the cause, for programs: the taint, the constraint's index, the pool, the holders.
    """

    cause: Dominant
    summary: str
    request: str | None = None
    evidence: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    node: str | None = None
    blame: tuple[str, ...] = field(default=())

    @property
    def fits(self) -> bool:
        """Whether there is nothing to explain."""
        return self.cause is Dominant.FITS

    def text(self) -> str:
        """The explanation for a terminal."""
        lines = [self.summary]
        if self.request:
            lines.append(f"  about: {self.request}")
        lines += [f"  because: {each}" for each in self.evidence]
        for group in self.groups:
            some = f"{group.nodes} nodes like {group.example}" if group.nodes > 1 else f"node {group.example}"
            why = ", ".join(f"{number} {cause}" for cause, number in group.causes.items())
            lines.append(f"  {some}: {group.usable} of {group.devices} devices usable" + (f" ({why})" if why else ""))
        lines += [f"  next: {each}" for each in self.next_steps]
        return "\n".join(lines)
