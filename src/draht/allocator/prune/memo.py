"""Rule 2: a search node fails if one like it, up to renaming of devices and blocks, failed before.

Owns: the canonical key of a search node.

**Rule 2.** The key is the position of the search (request, alternative, devices taken of it) with the sorted list of
the states of all blocks that remaining requests can look at. A block's state (see `blocks`) holds its kind, per class
the number of free devices, the values that constraints still allow, remaining amounts, share flags, list elements in
common, compatibility groups and, with admin access, how many devices this claim and others hold.
If a node with this key failed without error, a node with the same key is skipped. Where in the order of devices the
request has arrived is *not* part of the key.

Safe because: equal keys give a one-to-one map from the devices of the later node B to those of the failed node A that
keeps blocks together, classes apart and every status. Let Z be what the current request takes further in a completion
of B. Mapped to A, all tests see the same bits, needs, amounts and (renamed) values, so A's devices with Z' and the
mapped later choices are acceptable (F1). Sorted by position, A's devices with Z' either begin with A's devices, then
they lie below A; or a device of Z' comes before one of A's, then they were reached before A, because a request takes
sets in lexicographic order (F2). Either way they failed, so B has no completion.
Devices that no remaining alternative may look at, and blocks that have no other ones, decide nothing: amounts and
values belong to blocks.
No error hides: when A failed, its request had looked at every free position of its alternative without error (F4), and
every request entered below B corresponds to one that was entered below or before A; error bits are part of the class.
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
) -> tuple[object, ...]:
    """The key of a search node at `position` (request, alternative, taken)."""
    numbers = [states.number(block, state, claim, looked_at) for block in symmetry.blocks if block.mask & looked_at]
    numbers.sort()
    return (*position, *numbers)
