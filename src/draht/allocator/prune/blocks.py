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
        self._multi = model.multi
        # By block, so that a look-up hashes little: what a state is made of -> its number.
        self._raw: dict[int, dict[tuple[Any, ...], int]] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._offsets = [0]
        for rules in model.rules:
            self._offsets.append(self._offsets[-1] + len(rules))
        self._lists = any(rule.elements for rules in model.rules for rule in rules)

    def number(self, block: Block, state: State, claim: int, relevant: int) -> int:
        """The number of this block's state; `relevant` are the positions that a remaining alternative may look at."""
        mask = block.mask & relevant
        allowed = state.allowed
        raw: tuple[Any, ...]
        if not allowed:
            raw = (mask & ~state.used,)
        elif len(allowed) == 1:
            raw = (mask & ~state.used, allowed[0] & mask)
        else:
            raw = (mask & ~state.used, *[value & mask for value in allowed])
        if block.fields:
            raw += (state.remaining & block.field_mask,)
        if self._multi & mask:
            raw += (state.shared & mask, state.took & mask)
        if block.sets:
            raw += tuple([state.groups[counter_set] for counter_set in block.sets])
        if self._lists and any(state.running):
            raw += (claim, state.running)
        if self._admin:
            raw += (state.mine & mask, state.used & mask)
        known = self._raw.get(block.mask)
        if known is None:
            known = self._raw[block.mask] = {}
        # Claims have their own constraints, and requests look at their own positions.
        key = (mask, len(allowed), raw)
        number = known.get(key)
        if number is None:
            number = known[key] = self._canonical(block, state, claim, mask)
        return number

    def _canonical(self, block: Block, state: State, claim: int, mask: int) -> int:
        content = (
            block.kind,
            self.statuses(block, mask & ~state.used, state.mine & mask, state.used & mask if self._admin else 0),
            self.values(block, tuple([value & mask for value in state.allowed])),
            self.amounts(block, state.remaining),
            self.shares(block, state.shared & mask),
            self.taken(block, state.took & mask),
            self.common(block, claim, state.running) if any(state.running) else (),
            self.placed(tuple([state.groups[counter_set] for counter_set in block.sets])),
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
    parts: Symmetry, states: BlockStates, position: int, claim: int, state: State, looked_at: int
) -> tuple[int, int, int]:
    """Rule 1b: what must be equal for a failed position of this node to rule out a later one.

    `looked_at` are the positions that matter from here on.
    """
    block = parts.blocks[parts.block_of[position]]
    return block.kind, parts.index_of[position], states.number(block, state, claim, looked_at)
