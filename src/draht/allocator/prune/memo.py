"""Rule 2: a search node fails if one like it, up to renaming of devices and blocks, failed before.

Owns: the canonical key of a search node.

**Rule 2.** The key is the position of the search (request, alternative, devices taken of it) with the sorted list of
the states of all blocks that remaining requests can look at. A block's state (see `blocks`) holds its kind, per class
the number of free devices that the current request may still take and of the others, the values that constraints still
allow, remaining amounts, share flags, running intersections and, with admin access, what the claim holds already.
If a node with this key failed without error, a node with the same key is skipped.

Safe because: equal keys give a one-to-one map between the devices of both nodes that keeps blocks together, classes
apart and every status. A completion of one node becomes a completion of the other: the current request needs devices
"after start", which are counted apart; later requests need free devices of a class; all tests see the same bits,
needs, amounts and (renamed) values (F1, F2). Devices that no remaining alternative may look at, and blocks that have no
other ones, decide nothing: amounts and values belong to blocks.
No error hides: if the failed node met no error it had no free error position where it looked (F4); where the other
node looks is the same up to the map, and error bits are part of the class.
The number of results isn't part of the key: a model can't reach their limit (F3).
"""

from __future__ import annotations

from draht.allocator.prune.blocks import BlockStates
from draht.allocator.prune.model import Model
from draht.allocator.prune.state import State
from draht.allocator.prune.symmetry import Symmetry

__all__ = ["canonical_key", "relevant"]


def relevant(model: Model) -> tuple[int, ...]:
    """For each request, the positions that any later request may look at."""
    masks = [0]
    for slot in reversed(model.slots):
        mask = masks[-1]
        for choice in slot:
            mask |= choice.candidates | choice.errors | choice.fixed_mask
        masks.append(mask)
    return tuple(reversed(masks))


def canonical_key(
    symmetry: Symmetry,
    states: BlockStates,
    position: tuple[int, int, int],
    claim: int,
    state: State,
    looked_at: int,
    split: int,
) -> tuple[object, ...]:
    """The key of a search node at `position` (request, alternative, taken)."""
    numbers = [
        states.number(block, state, claim, looked_at, split) for block in symmetry.blocks if block.mask & looked_at
    ]
    numbers.sort()
    return (*position, *numbers)
