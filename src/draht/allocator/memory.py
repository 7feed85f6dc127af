"""What is worked out about a problem once and kept with it: nodes that are equal, and one node asked twice, share it.

Owns no rule; whoever works something out puts it into its own field, and asks there first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from draht.allocator.outcome import Outcome
    from draht.allocator.prune.easy import Easy
    from draht.allocator.prune.model import Model

__all__ = ["ProblemMemory"]


@dataclass(slots=True)
class ProblemMemory:
    """Of a problem; None where nobody has asked yet.

    Args:
        easy: The problem as one that needs no search, alone in a tuple; empty if it isn't one.
        strict: Why it must not be pruned, alone in a tuple; empty if it may be.
        flat: Whether its state is nothing but the positions that are held.
        models: The problem for the pruned search, by what of a state it depends on.
        outcomes: How it is decided, by what is held.
    """

    easy: tuple[Easy, ...] | None = None
    strict: tuple[str, ...] | None = None
    flat: bool | None = None
    models: dict[tuple[int, tuple[int, ...]], Model] = field(default_factory=dict)
    outcomes: dict[Hashable, Outcome] = field(default_factory=dict)
