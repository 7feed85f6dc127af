"""Rule 3: a search node fails when counting shows that the remaining requests can't be satisfied.

Owns: necessary conditions over the remaining requests, each of which only looks at masks.

**Rule 3.** A node fails if

- a request has fewer usable candidates than it needs in each of its alternatives, or
- requests whose candidates all lie in one set of devices need more devices than the set has (only devices that can't be
  taken twice count, and only requests without admin access; the sets tried are the candidates of each request and the
  candidates of all), or
- a match constraint that hasn't chosen its value yet has no value under which its remaining requests find enough
  candidates, each alone and all together, or
- a distinct constraint has fewer values among usable candidates than it must still tell apart.

Safe because: each is a necessary condition for a completion. "Usable" is a superset of what the search may take: free
now (use only grows below a node), allowed by the constraints now (they only narrow), and, for requests of later claims,
having the attributes of that claim's constraints; amounts are ignored. A request with alternatives counts with its
smallest number and the union of the candidates of those alternatives that have enough.

An error must not be hidden: below the node upstream might look at an error position that is free and fail for good. So
the rule is off while any remaining alternative has a free error position (with admin access: any error position).
"""

from __future__ import annotations

from draht.allocator.prune.model import Choice, Model, Rule
from draht.allocator.prune.state import State

__all__ = ["error_gate", "infeasible"]


def error_gate(model: Model, slot: int, current: Choice | None, state: State) -> bool:
    """Whether a remaining alternative has an error position that the search may still look at."""
    for index in range(slot, len(model.slots)):
        choices = (current,) if current is not None and index == slot else model.slots[index]
        for choice in choices:
            if choice.errors and choice.errors & (-1 if choice.admin else ~state.used):
                return True
    return False


def infeasible(model: Model, slot: int, current: Choice | None, need: int, ahead: int, state: State) -> bool:
    """Whether the requests from `slot` on can't all be satisfied.

    With `current`, the request at `slot` is in progress: `need` devices are missing and lie in `ahead`.
    """
    if slot >= len(model.slots):
        return False
    claim = model.claim_of[slot]
    wanted: list[tuple[int, int, int, tuple[int, ...]]] = []
    for index in range(slot, len(model.slots)):
        same_claim = model.claim_of[index] == claim
        if current is not None and index == slot:
            usable = _usable(model, current, index, state, same_claim) & ahead
            if usable.bit_count() < need:
                return True
            wanted.append((need, usable, 0 if current.admin else 1, current.rules if same_claim else ()))
            continue
        least = -1
        union = 0
        normal = 1
        shared_rules: set[int] | None = None
        for choice in model.slots[index]:
            if choice.fixed is not None:
                if not choice.fixed or (not choice.admin and choice.fixed_mask & state.used):
                    continue
                usable, count = choice.fixed_mask, len(choice.fixed)
            else:
                usable, count = _usable(model, choice, index, state, same_claim), choice.count
                if usable.bit_count() < count:
                    continue
            least = count if least < 0 or count < least else least
            union |= usable
            normal &= not choice.admin
            shared_rules = set(choice.rules) if shared_rules is None else shared_rules & set(choice.rules)
        if least < 0:
            return True
        wanted.append((least, union, normal, tuple(shared_rules or ()) if same_claim else ()))
    if _crowded(wanted, model.multi):
        return True
    for number, rule in enumerate(model.rules[claim]):
        under = [(need, usable, normal) for need, usable, normal, rules in wanted if number in rules and need]
        if under and _unruly(rule, state.allowed[number], state.running[number], under, model.multi):
            return True
    return False


def _usable(model: Model, choice: Choice, slot: int, state: State, same_claim: bool) -> int:
    usable = choice.candidates
    if not choice.admin:
        usable &= ~state.used
    elif same_claim:
        usable &= ~state.mine
    if same_claim:
        for index in choice.rules:
            usable &= state.allowed[index]
    else:
        rules = model.rules[model.claim_of[slot]]
        for index in choice.rules:
            usable &= rules[index].present
    return usable


def _crowded(wanted: list[tuple[int, int, int, tuple[int, ...]]], multi: int) -> bool:
    """Whether requests need more dedicated devices than the set that holds all their candidates."""
    dedicated = [(need, usable) for need, usable, normal, _ in wanted if normal and need and not usable & multi]
    if len(dedicated) < 2:
        return False
    every = 0
    for _, usable in dedicated:
        every |= usable
    for candidates in {usable for _, usable in dedicated} | {every}:
        if sum([need for need, usable in dedicated if not usable & ~candidates]) > candidates.bit_count():
            return True
    return False


def _unruly(rule: Rule, allowed: int, running: int | None, under: list[tuple[int, int, int]], multi: int) -> bool:
    """Whether no value (match) or too few values (distinct) are left for the requests under a constraint."""
    if rule.distinct:
        return any(_values(rule, usable, need) < need for need, usable, _ in under) or (
            _values(rule, _union(under), total := sum(need for need, _, _ in under)) < total
        )
    if running is None and not rule.elements:
        # After the first device the value is chosen, and `allowed` is what has it.
        single = allowed & -allowed
        if single and rule.same[single.bit_length() - 1] == allowed:
            return False
    return not any(
        all((usable & holders).bit_count() >= need for need, usable, _ in under)
        and not _crowded([(need, usable & holders, normal, ()) for need, usable, normal in under], multi)
        for holders in _candidates_by_value(rule, _union(under), running)
    )


def _union(under: list[tuple[int, int, int]]) -> int:
    every = 0
    for _, usable, _ in under:
        every |= usable
    return every


def _candidates_by_value(rule: Rule, usable: int, running: int | None) -> list[int]:
    """For each value that the devices may agree on: who has it."""
    found = []
    if rule.elements:
        elements = running
        if elements is None:
            elements = 0
            rest = usable
            while rest:
                bit = rest & -rest
                rest ^= bit
                elements |= rule.elements[bit.bit_length() - 1]
        while elements:
            element = elements & -elements
            elements ^= element
            found.append(rule.holders(element))
        return found
    rest = usable
    while rest:
        bit = rest & -rest
        # A value that matches nothing, not even itself, is accepted alone.
        holders = rule.same[bit.bit_length() - 1] | bit
        found.append(holders)
        rest &= ~holders
    return found


def _values(rule: Rule, usable: int, enough: int) -> int:
    """How many values the devices have, at most `enough` where that is cheaper; never too few."""
    if rule.elements:
        elements = 0
        while usable:
            bit = usable & -usable
            usable ^= bit
            elements |= rule.elements[bit.bit_length() - 1]
        return elements.bit_count()
    number = 0
    while usable and number < enough:
        bit = usable & -usable
        usable &= ~(rule.same[bit.bit_length() - 1] | bit)
        number += 1
    return number
