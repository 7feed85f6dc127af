"""What pruning may know of a problem: choices, rules and needs by position, and nothing that has a name.

Owns: `Model`, the part of a problem that decides which sets of (request, device) choices are acceptable. Positions are
bit numbers in upstream's search order. Everything that never changes during a search is folded into masks.

Why it exists: the safety of every pruning rule is an argument about *symmetry* of exactly these values. What isn't here
can't be part of the argument, so a problem that needs more (see `strict`) is never pruned.

Doesn't do: searching, building masks from objects (that is `draht.allocator.problem`).

Facts about a model that the rules build on; `strict` refuses problems for which one doesn't hold:

- F1, sets: whether a set of choices is acceptable doesn't depend on the order in which they are made, and every subset
  of an acceptable set is acceptable. Holds for use, match and distinct values of known types, list values (a running
  intersection, pairwise disjointness), compatibility groups (a running intersection per counter set), counters and
  capacities with amounts that aren't negative.
- F2, combinations: a request takes its devices in ascending positions, so after a choice at position p only positions
  after p matter to the rest of this request; the next request starts at position 0 again.
- F3, results: nothing but the chosen positions decides whether the rest of the search can succeed. The limit of 32
  results a claim can't be reached.
- F4, errors: a fatal error is met exactly when the search looks at a free position with an error bit of the alternative
  it works on. Every loop over positions is complete unless it ends in success or in such an error, therefore: if a
  request was entered and failed without error, it had no free error position.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from draht.allocator.prune.symmetry import Symmetry

__all__ = ["Choice", "Model", "ModelMemory", "Root", "Rule"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One alternative of a request.

    `candidates` passed every test that doesn't change during a search. `errors` are positions where upstream fails for
    good when it looks at them while they are free. `fixed` is the list of an "All" request in its order, `fixed_mask`
    the same as a mask. `rules` are indexes into the rules of the claim. `takes[position]` is the packed amount that one
    share takes, for devices that may be allocated more than once, and `take_guards[position]` are the guard bits of
    these fields; both are empty when there are none.
    """

    count: int
    candidates: int
    errors: int = 0
    admin: bool = False
    fixed: tuple[int, ...] | None = None
    rules: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()
    take_guards: tuple[int, ...] = ()

    fixed_mask: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """A constraint of one claim: devices must match in a value, or be distinct in it.

    `same[position]` is the mask of positions that share a value with this one, itself included; 0 where the attribute
    is missing. `elements[position]` is a bit set of values where some device has several of them (list attributes), and
    empty where every device has at most one.
    """

    distinct: bool
    same: tuple[int, ...]
    present: int
    elements: tuple[int, ...] = ()
    by_element: dict[int, int] = field(default_factory=dict, compare=False)

    def holders(self, elements: int) -> int:
        """The positions that have one of these values."""
        known = self.by_element.get(elements)
        if known is None:
            known = 0
            for position, values in enumerate(self.elements):
                if values & elements:
                    known |= 1 << position
            self.by_element[elements] = known
        return known


@dataclass(slots=True)
class ModelMemory:
    """What the pruned search works out about a model once; None where nobody has asked yet.

    Args:
        relevant: See `draht.allocator.prune.memo.relevant`.
        bits: For each position a bit for each different mask that it is in.
        partitions: By the rule that makes it, which positions can be exchanged.
    """

    relevant: tuple[int, ...] | None = None
    bits: list[int] | None = None
    partitions: dict[Callable[[Model], Symmetry], Symmetry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """The whole of what the search decides on.

    `slots[i]` are the alternatives of the i-th request over all claims, `claim_of[i]` its claim, `rules[c]` the
    constraints of claim c. Devices in `multi` may be taken any number of times. `needs[position]` is charged when a
    device is taken, for one in `multi` only the first time. Amounts are fields of one integer: a field has its guard
    bit on top, which survives a subtraction only if the amount was large enough; `guards[position]` are the guard bits
    that must survive. `fields[position]` are the fields that a position may charge, as (shift, mask with the guard).
    `groups[position]` are the compatibility groups of what it consumes, as (index of the counter set, bits).
    """

    size: int
    slots: tuple[tuple[Choice, ...], ...]
    claim_of: tuple[int, ...]
    rules: tuple[tuple[Rule, ...], ...]
    multi: int = 0
    needs: tuple[int, ...] = ()
    guards: tuple[int, ...] = ()
    fields: tuple[tuple[tuple[int, int], ...], ...] = ()
    groups: tuple[tuple[tuple[int, int], ...], ...] = ()
    memory: ModelMemory = field(default_factory=ModelMemory, compare=False)

    @property
    def admin(self) -> bool:
        """Whether a request asks for admin access."""
        return any(choice.admin for slot in self.slots for choice in slot)


@dataclass(frozen=True, slots=True)
class Root:
    """Where a search starts: used positions, remaining amounts (guard bits set), devices that hold a share already.

    `groups` has for each counter set the compatibility groups that all devices placed on it have in common, as bits;
    None where nothing is placed. Devices without groups have a bit of their own.
    """

    used: int = 0
    remaining: int = 0
    shared: int = 0
    groups: tuple[int | None, ...] = ()
