"""Rule 0: a search node that is exactly one that failed before fails again.

Safe because: the search is a function of its position and its state. Always allowed, also where no other rule is.
"""

from __future__ import annotations

from draht.allocator.prune.state import State

__all__ = ["exact_key"]


def exact_key(slot: int, alternative: int, taken: int, start: int, state: State) -> tuple[object, ...]:
    """What one search node is: everything that decides the rest of the search.

    The number of results of the claim is left out because a model can't reach their limit (F3).
    """
    return (slot, alternative, taken, start, state)
