"""Rule 1b: a device whose block is like that of a failed device is skipped, too.

Owns: the state of a block at a search node, in a form that is equal for blocks nothing tells apart, and the test
whether one failed choice rules out another one in an isomorphic block.

**Rule 1b.** After device x of block P failed at a search node, skip a later device y of block Q if P and Q are
isomorphic (`Block.kind`) with x and y in corresponding classes, and in the state of this node

1. remaining amounts, share flags, allowed values, placed compatibility groups and, class by class, the number of free
   devices agree, and
2. class by class, P has at least as many free devices after x as Q after y, and
3. class by class, Q has at least as many free devices after x as P after y.

Safe because: exchange the blocks P and Q in a completion of y, class by class. The rest of this request uses positions
after y only (F2): those in Q become devices of P that must lie after x, which is what 2 allows; those in P become
devices of Q after x, which is 3; positions in other blocks lie after y, hence after x. Later requests start at position
0 and need only equal numbers of free devices, which is 1. All tests see equal bits, needs, remaining amounts and values
(renamed), so the result is acceptable (F1) and x would have had a completion.
No error hides: an error position of this alternative after y is after x, free below x as it is below y, and would have
ended x's subtree if this request had a further device to take; later requests were entered below x in the same state
up to the exchange, and error bits are part of the class.

Not used with admin access (the status of a device is then more than free or used), nor for a class that may be
allocated several times unless the block states say that everything about it agrees (they do: amounts and flags).
"""

from __future__ import annotations

from typing import Any

from draht.allocator.prune.model import Model
from draht.allocator.prune.state import State
from draht.allocator.prune.symmetry import Block, Symmetry

__all__ = ["BlockStates", "dominated"]


class BlockStates:
    """Interns the state of blocks during one search, so that equal states of isomorphic blocks have equal numbers."""

    def __init__(self, model: Model) -> None:
        self._field_mask = (1 << model.width) - 1
        self._admin = model.admin
        self._raw: dict[tuple[Any, ...], int] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._offsets = [0]
        for rules in model.rules:
            self._offsets.append(self._offsets[-1] + len(rules))

    def number(self, block: Block, state: State, claim: int, relevant: int, split: int) -> int:
        """The number of this block's state.

        `relevant` are the positions that any remaining alternative may look at. `split` are those that the current
        request may still take; devices in it are counted apart from the others.
        """
        mask = block.mask & relevant
        free = mask & ~state.used
        mine = mask & state.mine
        used = mask & state.used if self._admin else 0
        allowed = tuple([value & mask for value in state.allowed])
        remaining = state.remaining & block.field_mask
        shared = state.shared & block.mask
        running = state.running if block.values and any(state.running) else ()
        groups = state.groups if block.sets else ()
        raw = (block.mask, claim, free, mine, used, split & mask, allowed, remaining, shared, running, groups)
        number = self._raw.get(raw)
        if number is None:
            number = self._raw[raw] = self._canonical(block, raw)
        return number

    def _canonical(self, block: Block, raw: tuple[Any, ...]) -> int:
        _, claim, free, mine, used, split, allowed, remaining, shared, running, groups = raw
        content = (
            block.kind,
            self.statuses(block, free, mine, used, split),
            self.values(block, allowed),
            self.amounts(block, remaining),
            self.shares(block, shared),
            self.common(block, claim, running),
            self.placed(block, groups),
        )
        return self._numbers.setdefault(content, len(self._numbers))

    def statuses(self, block: Block, free: int, mine: int, used: int, split: int) -> tuple[Any, ...]:
        """Per class, how many devices are free, and with admin access how many this claim holds and others hold.

        Each counts what the current request may still take apart from the rest.
        """
        others = used & ~mine
        return tuple(
            [
                (
                    (members & free & split).bit_count(),
                    (members & free & ~split).bit_count(),
                    (members & mine & split).bit_count(),
                    (members & mine & ~split).bit_count(),
                    (members & others & split).bit_count(),
                    (members & others & ~split).bit_count(),
                )
                for members in block.classes
            ]
        )

    def values(self, block: Block, allowed: tuple[int, ...]) -> tuple[Any, ...]:
        """Per constraint, which classes it still accepts."""
        return tuple([tuple([bool(members & mask) for members in block.classes]) for mask in allowed])

    def amounts(self, block: Block, remaining: int) -> tuple[Any, ...]:
        """Per field, what remains."""
        return tuple([remaining >> shift & self._field_mask for shift in block.shifts])

    def shares(self, block: Block, shared: int) -> tuple[Any, ...]:
        """Per class, whether the device holds a share, so that its needs aren't charged again."""
        return tuple([bool(members & shared) for members in block.classes]) if shared else ()

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

    def placed(self, block: Block, groups: tuple[tuple[int, frozenset[str]], ...]) -> tuple[Any, ...]:
        """Per counter set, the compatibility groups that devices placed on it have in common."""
        return tuple([(block.sets.index(name), names) for name, names in groups if name in block.sets])


def dominated(
    symmetry: Symmetry,
    states: BlockStates,
    failed: int,
    position: int,
    claim: int,
    state: State,
    looked_at: int,
    candidates: int,
) -> bool:
    """Whether the failure of position `failed` at this node rules out the later `position`, in another block.

    `looked_at` are the positions that matter from here on, `candidates` those that the current request may take.
    """
    one = symmetry.blocks[symmetry.block_of[failed]]
    other = symmetry.blocks[symmetry.block_of[position]]
    if one.kind != other.kind or one is other or symmetry.index_of[failed] != symmetry.index_of[position]:
        return False
    if states.number(one, state, claim, looked_at, 0) != states.number(other, state, claim, looked_at, 0):
        return False
    free = candidates & ~state.used
    after_failed = free & -1 << failed + 1
    after = free & -1 << position + 1
    for mine, theirs in zip(one.classes, other.classes, strict=True):
        if (mine & after_failed).bit_count() < (theirs & after).bit_count():
            return False
        if (theirs & after_failed).bit_count() < (mine & after).bit_count():
            return False
    return True
