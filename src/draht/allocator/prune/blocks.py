"""Rule 1b: a device whose block is like that of a failed device is skipped, too.

Owns: the state of a block at a search node, in a form that is equal for blocks nothing tells apart, and the test
whether one failed choice rules out another one in an isomorphic block.

**Rule 1b.** After device x of block P failed at a search node, skip a later device y of block Q if P and Q are
isomorphic (`Block.kind`), x and y are in corresponding classes, and in the state of this node remaining amounts, share
flags, allowed values, common list elements, compatibility groups and, class by class, the number of free devices agree.

Safe because: let C be the devices that this request has already at this node, and y + Z a completion of it, Z the
further devices of this request. Exchange P and Q, class by class, in y + Z and in everything that later requests take:
all tests see equal bits, needs, remaining amounts and values (renamed), so C + x + Z' is acceptable with the later
choices (F1). As a set sorted by position, C + x + Z' either begins with C + x, then it lies in x's subtree; or some
device of Z' comes before x or before one of C, then it was reached earlier in this request, because the search takes
sets in lexicographic order (F2). Either way it failed before, so y has no completion.
No error hides: x's subtree and all that came before it in this request ended without error. So (F4) this alternative
has no free error position up to the last one looked at, and x's block none that corresponds to one of y's; requests
entered below y correspond to requests entered before, and error bits are part of the class.

Not used with admin access (the status of a device is then more than free or used). A device that may be allocated
several times takes part: everything about it, amounts and flag, is in the block's state.
"""

from __future__ import annotations

from typing import Any

from draht.allocator.prune.model import Model
from draht.allocator.prune.state import State
from draht.allocator.prune.symmetry import Block, Symmetry

__all__ = ["BlockStates", "alike_blocks"]


class BlockStates:
    """Interns the state of blocks during one search, so that equal states of isomorphic blocks have equal numbers."""

    def __init__(self, model: Model) -> None:
        self._admin = model.admin
        self._raw: dict[tuple[Any, ...], int] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._offsets = [0]
        for rules in model.rules:
            self._offsets.append(self._offsets[-1] + len(rules))

    def number(self, block: Block, state: State, claim: int, relevant: int) -> int:
        """The number of this block's state; `relevant` are the positions that a remaining alternative may look at."""
        mask = block.mask & relevant
        free = mask & ~state.used
        mine = mask & state.mine
        used = mask & state.used if self._admin else 0
        allowed = tuple([value & mask for value in state.allowed])
        remaining = state.remaining & block.field_mask
        shared = state.shared & block.mask
        took = state.took & mask
        running = state.running if block.values and any(state.running) else ()
        groups = tuple([state.groups[counter_set] for counter_set in block.sets])
        raw = (block.mask, claim, free, mine, used, allowed, remaining, shared, took, running, groups)
        number = self._raw.get(raw)
        if number is None:
            number = self._raw[raw] = self._canonical(block, raw)
        return number

    def _canonical(self, block: Block, raw: tuple[Any, ...]) -> int:
        _, claim, free, mine, used, allowed, remaining, shared, took, running, groups = raw
        content = (
            block.kind,
            self.statuses(block, free, mine, used),
            self.values(block, allowed),
            self.amounts(block, remaining),
            self.shares(block, shared),
            self.taken(block, took),
            self.common(block, claim, running),
            self.placed(groups),
        )
        return self._numbers.setdefault(content, len(self._numbers))

    def statuses(self, block: Block, free: int, mine: int, used: int) -> tuple[Any, ...]:
        """Per class, how many devices are free, and with admin access how many this claim and others hold."""
        if not used:
            return tuple([(members & free).bit_count() for members in block.classes])
        return tuple(
            [
                ((members & free).bit_count(), (members & mine).bit_count(), (members & used).bit_count())
                for members in block.classes
            ]
        )

    def values(self, block: Block, allowed: tuple[int, ...]) -> tuple[Any, ...]:
        """Per constraint, which classes it still accepts."""
        return tuple([tuple([bool(members & mask) for members in block.classes]) for mask in allowed])

    def amounts(self, block: Block, remaining: int) -> tuple[Any, ...]:
        """Per field, what remains."""
        return tuple([remaining >> shift & mask for shift, mask in block.fields])

    def shares(self, block: Block, shared: int) -> tuple[Any, ...]:
        """Per class, whether the device holds a share, so that its needs aren't charged again."""
        return tuple([bool(members & shared) for members in block.classes]) if shared else ()

    def taken(self, block: Block, took: int) -> tuple[Any, ...]:
        """Per class, whether the current request has the device and so can't take it although it is free."""
        return tuple([bool(members & took) for members in block.classes]) if took else ()

    def common(self, block: Block, claim: int, running: tuple[int | None, ...]) -> tuple[Any, ...]:
        """Per match constraint with lists, the values that the devices so far have in common.

        They belong to one block; elsewhere no class is accepted any more, which `values` tells.
        """
        offset = self._offsets[claim]
        return tuple(
            [
                tuple([number for number, element in enumerate(block.values[offset + index]) if element & (bits or 0)])
                for index, bits in enumerate(running)
            ]
        )

    def placed(self, groups: tuple[int | None, ...]) -> tuple[Any, ...]:
        """Per counter set, the compatibility groups that devices placed on it have in common."""
        return groups


def alike_blocks(
    parts: Symmetry, states: BlockStates, failed: int, position: int, claim: int, state: State, looked_at: int
) -> bool:
    """Rule 1b: whether the failure of one position at this node rules out a later one in another block.

    `looked_at` are the positions that matter from here on.
    """
    one = parts.blocks[parts.block_of[failed]]
    other = parts.blocks[parts.block_of[position]]
    if one.kind != other.kind or one is other or parts.index_of[failed] != parts.index_of[position]:
        return False
    return states.number(one, state, claim, looked_at) == states.number(other, state, claim, looked_at)
