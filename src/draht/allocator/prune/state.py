"""What a partial choice of devices leaves behind: the state of a pruned search.

Owns: `State` and the one step that changes it, taking a device. Values are immutable, so going back is forgetting.

Doesn't do: choosing devices; errors (a position with an error bit is never taken).
"""

from __future__ import annotations

from typing import NamedTuple

from draht.allocator.prune.model import Choice, Model, Root, Rule

__all__ = ["State", "enter_claim", "start", "take"]


class State(NamedTuple):
    """Used positions, positions marked by the current claim, remaining amounts, devices holding a share.

    `allowed[i]` are the positions that constraint i of the current claim still accepts, `running[i]` the values that
    all devices under a match constraint with lists have in common (None before the first device).
    `groups` is as in `Root`. `took` are the devices that may be allocated several times and that the current request
    has: it can't take them once more, although they are free.
    """

    used: int
    mine: int
    remaining: int
    shared: int
    allowed: tuple[int, ...]
    running: tuple[int | None, ...]
    groups: tuple[int | None, ...]
    took: int = 0


def start(model: Model, root: Root) -> State:
    """The state before the first request."""
    state = State(root.used, 0, root.remaining, root.shared, (), (), root.groups)
    return enter_claim(model, state, model.claim_of[0] if model.claim_of else 0)


def enter_claim(model: Model, state: State, claim: int) -> State:
    """The state with which a claim begins: use, amounts and groups carry over, constraints and marks don't."""
    rules = model.rules[claim] if claim < len(model.rules) else ()
    return State(
        state.used,
        0,
        state.remaining,
        state.shared,
        tuple([rule.present for rule in rules]),
        (None,) * len(rules),
        state.groups,
    )


def take(model: Model, choice: Choice, rules: tuple[Rule, ...], position: int, state: State) -> State | None:
    """The state after taking a device that is a free candidate, or None when amounts, groups or constraints refuse it.

    The order of the tests doesn't matter here: none of them is an error, and none leaves a trace when another refuses.
    """
    bit = 1 << position
    used, mine, remaining, shared, allowed, running, groups, took = state
    multi = model.multi & bit
    first = not (multi and shared & bit)
    if model.guards and first:
        remaining -= model.needs[position]
        guards = model.guards[position]
        if remaining & guards != guards:
            return None
    if multi and choice.takes:
        remaining -= choice.takes[position]
        guards = choice.take_guards[position]
        if remaining & guards != guards:
            return None
    if first and model.groups and model.groups[position]:
        placed = list(groups)
        for counter_set, bits in model.groups[position]:
            before = placed[counter_set]
            common = bits if before is None else before & bits
            if not common:
                return None
            placed[counter_set] = common
        groups = tuple(placed)
    if choice.rules:
        masks = list(allowed)
        for index in choice.rules:
            if not masks[index] & bit:
                return None
            rule = rules[index]
            if rule.distinct:
                masks[index] &= ~rule.same[position]
            elif not rule.elements:
                masks[index] &= rule.same[position]
            else:
                common = rule.elements[position]
                so_far = running[index]
                if so_far is not None:
                    common &= so_far
                running = (*running[:index], common, *running[index + 1 :])
                masks[index] = rule.holders(common)
        allowed = tuple(masks)
    if multi:
        shared |= bit
        took |= bit
    else:
        used |= bit
        mine |= bit
    return State(used, mine, remaining, shared, allowed, running, groups, took)
