"""Rule 1: devices that nothing tells apart are tried once.

Owns: the partition of a model's devices into *blocks* and, inside a block, into *classes*.

Block: devices linked, directly or over others, by a shared counter field, a shared value of a constraint, or a shared
counter set with compatibility groups; devices that have none of these are one block together. What happens in one block
changes nothing in another but which devices are free.
Class: devices of one block with the same candidate bit and error bit in every alternative of all claims, the same
membership in lists of "All" requests, the same needs (same fields, same amounts), the same value for every constraint
of all claims and the same compatibility groups. A device that may be allocated several times is a class of its own,
because its remaining amount is its own.

**Rule 1.** After device x failed at one search node, skip every later device y of its class there.

Safe because: let y have a completion, that is an acceptable set of choices for the rest of the search in which this
request uses, besides y, only positions after y (F2), hence after x. x is free here, so it can occur only in choices of
later requests. Exchange x and y in all choices. The result is acceptable: every test sees equal candidate bits, needs,
values and groups, and neither the order inside a later request nor that of the requests matters (F1). So x had a
completion and, the search being complete, x wouldn't have failed.
No error hides in y's subtree: x's subtree ended without error, so (F4) no request entered there had a free error
position; each request entered below y is entered below x with x and y exchanged, and error bits are equal in a class.
Positions that follow in this same loop are looked at by the loop itself, which goes on.

Needs: x and y have the same status of use. Normal requests see only free devices, so this holds; for admin access the
device may be used by another claim, so the status is part of what must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from draht.allocator.prune.model import Choice, Model
from draht.allocator.prune.state import State

__all__ = ["Block", "Symmetry", "alike", "components", "signature", "symmetry"]


@dataclass(frozen=True, slots=True)
class Block:
    """One block: its devices, its classes in order of their first position, its resource fields in the same order.

    Two blocks of equal `kind` are isomorphic: their classes correspond by index, their fields by index, and for each
    constraint their values by the order in which the classes first show them.
    """

    mask: int
    classes: tuple[int, ...]
    fields: tuple[tuple[int, int], ...]
    field_mask: int
    values: tuple[tuple[int, ...], ...]
    sets: tuple[int, ...]
    kind: int


@dataclass(frozen=True, slots=True)
class Symmetry:
    """The blocks of a model, and for each position its block and its class (numbered over all blocks)."""

    blocks: tuple[Block, ...]
    block_of: tuple[int, ...]
    class_of: tuple[int, ...]
    index_of: tuple[int, ...]


def alike(parts: Symmetry, choice: Choice, state: State, position: int) -> tuple[int, int]:
    """Rule 1: what must be equal for a failed position of this node to rule out a later one."""
    return parts.class_of[position], state.used >> position & 1 if choice.admin else 0


def components(model: Model) -> list[int]:
    """The masks of devices linked by fields, values of constraints or counter sets, in order of first position."""
    links: dict[object, int] = {}
    for position, fields in enumerate(model.fields):
        for shift, _ in fields:
            links[shift] = links.get(shift, 0) | 1 << position
    for position, groups in enumerate(model.groups):
        for counter_set, _ in groups:
            links["groups", counter_set] = links.get(("groups", counter_set), 0) | 1 << position
    masks = list(links.values())
    for rules in model.rules:
        for rule in rules:
            masks.extend(set(rule.same))
    merged: list[int] = []
    for mask in masks:
        if not mask & (mask - 1):
            continue
        linked = mask
        apart = []
        for other in merged:
            if other & linked:
                linked |= other
            else:
                apart.append(other)
        apart.append(linked)
        merged = apart
    covered = 0
    for mask in merged:
        covered |= mask
    alone = ((1 << model.size) - 1) & ~covered
    loose = 0
    while alone:
        bit = alone & -alone
        alone ^= bit
        if _is_loose(model, bit.bit_length() - 1):
            loose |= bit
        else:
            merged.append(bit)
    if loose:
        merged.append(loose)
    merged.sort(key=lambda mask: mask & -mask)
    return merged


def _is_loose(model: Model, position: int) -> bool:
    """Whether a device that is linked to no other one has nothing of its own either, so that it can join its like."""
    return not (
        model.multi >> position & 1
        or (model.fields and model.fields[position])
        or (model.groups and model.groups[position])
        or any(rule.same[position] for rules in model.rules for rule in rules)
    )


def signature(model: Model, position: int) -> tuple[object, ...]:
    """What tells two devices of one block apart; equal for devices of one class."""
    if model.multi >> position & 1:
        return ("multi", position)
    bits = _bits(model, position)
    values = tuple(
        (rule.present >> position & 1, rule.same[position], rule.elements[position] if rule.elements else 0)
        for rules in model.rules
        for rule in rules
    )
    need = model.needs[position] if model.needs else 0
    groups = model.groups[position] if model.groups else ()
    return (bits, values, need, groups)


def symmetry(model: Model, tell_apart: Callable[[Model, int], object] = signature) -> Symmetry:
    """The blocks and classes of a model; `tell_apart` gives what makes devices of a block differ."""
    kinds: dict[object, int] = {}
    blocks: list[Block] = []
    block_of = [0] * model.size
    class_of = [0] * model.size
    index_of = [0] * model.size
    total = 0
    for mask in components(model):
        order: dict[object, int] = {}
        members: list[int] = []
        rest = mask
        while rest:
            bit = rest & -rest
            rest ^= bit
            position = bit.bit_length() - 1
            index = order.setdefault(tell_apart(model, position), len(order))
            if index == len(members):
                members.append(0)
            members[index] |= bit
            block_of[position] = len(blocks)
            class_of[position] = total + index
            index_of[position] = index
        total += len(members)
        blocks.append(_block(model, mask, members, kinds))
    return Symmetry(tuple(blocks), tuple(block_of), tuple(class_of), tuple(index_of))


def _bits(model: Model, position: int) -> int:
    """A bit for each different mask (candidates, errors, list of all devices) that the position is in.

    Equal for positions with equal bits in every alternative.
    """
    known = model.memory.bits
    if known is None:
        choices = [choice for slot in model.slots for choice in slot]
        masks = [*{choice.candidates: None for choice in choices}, *{choice.errors: None for choice in choices}]
        masks += {choice.fixed_mask: None for choice in choices}
        signatures = [0] * model.size
        for number, mask in enumerate(masks):
            while mask:
                low = mask & -mask
                mask ^= low
                signatures[low.bit_length() - 1] |= 1 << number
        known = model.memory.bits = signatures
    return known[position]


def _takes(model: Model, position: int, fields: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...]:
    """What each alternative takes of the fields of a device that may be allocated several times."""
    choices = [choice for slot in model.slots for choice in slot if choice.takes]
    known: dict[int, tuple[int, ...]] = {}
    found = []
    for choice in choices:
        packed = choice.takes[position]
        amounts = known.get(packed)
        if amounts is None:
            amounts = known[packed] = tuple([packed >> shift & mask for shift, mask in fields])
        found.append(amounts)
    return tuple(found)


def _block(model: Model, mask: int, classes: list[int], kinds: dict[object, int]) -> Block:
    """The block with its canonical form: fields, values and counter sets renamed by first occurrence."""
    fields: dict[tuple[int, int], int] = {}
    values: list[dict[int, int]] = [{} for rules in model.rules for _ in rules]
    sets: dict[int, int] = {}
    every_rule = [rule for rules in model.rules for rule in rules]
    form: list[object] = []
    for members in classes:
        position = (members & -members).bit_length() - 1
        own = model.fields[position] if model.fields else ()
        need = model.needs[position] if model.needs else 0
        amounts = tuple((fields.setdefault(one, len(fields)), need >> one[0] & one[1]) for one in own)
        shown = []
        for rule, known in zip(every_rule, values, strict=True):
            if rule.elements:
                elements = rule.elements[position]
                names = []
                while elements:
                    element = elements & -elements
                    elements ^= element
                    names.append(known.setdefault(element, len(known)))
                shown.append(tuple(sorted(names)))
            elif rule.same[position]:
                shown.append((known.setdefault(rule.same[position], len(known)),))
            else:
                # A present value that matches nothing, not even itself, differs from a missing one.
                shown.append((-2,) if rule.present >> position & 1 else ())
        groups = tuple(
            (sets.setdefault(counter_set, len(sets)), bits)
            for counter_set, bits in (model.groups[position] if model.groups else ())
        )
        multi = bool(model.multi >> position & 1)
        takes = _takes(model, position, own) if multi else ()
        form.append((members.bit_count(), multi, _bits(model, position), takes, amounts, tuple(shown), groups))
    kind = kinds.setdefault(tuple(form), len(kinds))
    every_field = 0
    for shift, mask_here in fields:
        every_field |= mask_here << shift
    return Block(
        mask,
        tuple(classes),
        tuple(fields),
        every_field,
        tuple(tuple(known) for known in values),
        tuple(sets),
        kind,
    )
