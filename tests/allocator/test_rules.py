"""The rules behind an allocation, each against a slow and obvious version of itself."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from draht.allocator.compatibility import UNGROUPED, Groups, fold
from draht.allocator.constraint import ABSENT, Constraint, ConstraintKind, ConstraintTable, elements, pattern
from draht.allocator.fields import Field, FieldPacker, exact_sum
from draht.api.quantity import Quantity
from draht.api.resource import DeviceAttribute

TEXTS = (
    "0",
    "1",
    "2",
    "3",
    "500m",
    "1500m",
    "1u",
    "999999999n",
    "1Ki",
    "4Gi",
    "1e3",
    "1E",
    "7.25",
    "12345678901234567890",
)


def _value(text: str) -> Fraction:
    quantity = Quantity(text)
    return Fraction(quantity.mantissa) * Fraction(10) ** quantity.exponent


@pytest.mark.parametrize("seed", range(200))
def test_packed_amounts_are_exact(seed: int) -> None:
    """A device fits in packed amounts if and only if it fits in exact fractions, however many fields there are."""
    rng = random.Random(seed)
    packer = FieldPacker()
    fields: list[tuple[Field, Fraction, list[str]]] = []
    left = guards = 0
    for _ in range(rng.randrange(1, 6)):
        texts = [rng.choice(TEXTS) for _ in range(rng.randrange(0, 4))]
        value = rng.choice(TEXTS)
        taken = [rng.choice(TEXTS) for _ in range(rng.choice([0, 0, 1, 2]))]
        field = packer.add(Quantity(value), map(Quantity, texts))
        left |= field.remaining([(1, Quantity(value)), *[(-1, Quantity(text)) for text in taken]])
        exact = _value(value) - sum(map(_value, taken))
        guard_set = bool(left & field.guard)
        assert guard_set == (exact >= 0)
        if guard_set:
            fields.append((field, exact, texts))
            guards |= field.guard
    for _ in range(20):
        wanted = [(field, exact, rng.choice(texts)) for field, exact, texts in fields if texts and rng.random() < 0.7]
        if not wanted:
            return
        need = sum(field.need([(1, Quantity(text))]) for field, _, text in wanted)
        fits = all(exact >= _value(text) for _, exact, text in wanted)
        after = left - need
        assert (after & guards == guards) == fits, f"seed {seed}"
        if fits:
            left = after
            chosen = {id(field): _value(text) for field, _, text in wanted}
            fields = [(field, exact - chosen.get(id(field), 0), texts) for field, exact, texts in fields]


def test_amounts_with_huge_exponents_are_bounded() -> None:
    """An exponent out of somebody's text costs no time, and a huge need never fits a small amount."""
    huge, small = Quantity("1e999999999"), Quantity("1n")
    packer = FieldPacker()
    field = packer.add(small, [huge, small])
    assert packer.size < 10_000
    left = field.remaining([(1, small)])
    assert left & field.guard
    assert not (left - field.need([(1, huge)])) & field.guard
    assert (left - field.need([(1, small)])) & field.guard
    assert exact_sum([(1, huge), (-1, huge)], 0) == 0


class _Slow:
    """Constraints as upstream tells them: a list of chosen attributes, asked for every device."""

    def __init__(self, match: bool, lists: bool) -> None:
        self.match = match
        self.lists = lists
        self.chosen: list[tuple[tuple[str, Any], ...]] = []

    def allows(self, attribute: DeviceAttribute | None) -> bool:
        if attribute is None:
            return False
        mine = elements(attribute, self.lists)
        if self.lists and not mine:
            return False
        if not self.chosen:
            return True
        if not mine:
            return False
        if self.match:
            common = set(mine)
            for other in self.chosen:
                common &= set(other)
            return bool(common)
        return all(not set(mine) & set(other) for other in self.chosen)


def _attribute(rng: random.Random) -> DeviceAttribute | None:
    kind = rng.randrange(9)
    if kind < 3:
        return DeviceAttribute(int_=rng.randrange(3))
    if kind == 3:
        return DeviceAttribute(bool_=rng.random() < 0.5)
    if kind == 4:
        return DeviceAttribute(string=rng.choice("ab"))
    if kind == 5:
        return DeviceAttribute(version=rng.choice(["1.0.0", "1.0.0+b"]))
    if kind == 6:
        return DeviceAttribute(ints=tuple(rng.sample(range(4), rng.randrange(1, 4))))
    return DeviceAttribute() if kind == 7 else None


@pytest.mark.parametrize("seed", range(300))
def test_constraint_tables_say_what_comparing_says(seed: int) -> None:
    """Masks allow exactly the devices that comparing with every chosen device allows."""
    rng = random.Random(seed)
    match, lists = rng.random() < 0.5, rng.random() < 0.5
    attributes = [_attribute(rng) for _ in range(10)]
    kind = ConstraintKind.MATCH if match else ConstraintKind.DISTINCT
    table = ConstraintTable(Constraint(kind, "a/b", frozenset()), [pattern(attributes, lists)])
    slow = _Slow(match, lists)
    state = table.initial
    for _ in range(6):
        allowed = [n for n, attribute in enumerate(attributes) if slow.allows(attribute)]
        assert table.allowed(state, 0) == sum(1 << n for n in allowed), f"seed {seed}"
        if not allowed:
            return
        position = rng.choice(allowed)
        attribute = attributes[position]
        assert attribute is not None
        slow.chosen.append(elements(attribute, lists))
        if table.simple:
            assert isinstance(state, int)
            assert isinstance(table.initial, int)
        state = table.after(state, 0, position)


def test_sources_of_a_constraint_are_compared_with_each_other() -> None:
    """A derived value matches the own value of another device; lists compare by what all have in common."""
    constraint = Constraint(ConstraintKind.MATCH, "a/b", frozenset())
    table = ConstraintTable(constraint, [[(0,), (1,), ABSENT], [(1,), (0,), (0,)]])
    state = table.after(table.initial, 0, 0)
    assert table.allowed(state, 0) == 0b001
    assert table.allowed(state, 1) == 0b110
    lists = ConstraintTable(constraint, [[(0, 1), (1, 2), (0,)], [(2,), (1,), (0, 2)]])
    state = lists.after(lists.initial, 0, 0)
    assert lists.allowed(state, 1) == 0b110
    assert lists.allowed(lists.after(state, 0, 1), 1) == 0b010


def test_a_constraint_is_about_requests_and_their_alternatives() -> None:
    """No names mean all; the name of a request covers its alternatives, the name of an alternative nothing else."""
    everything = Constraint(ConstraintKind.MATCH, "a/b", frozenset())
    some = Constraint(ConstraintKind.MATCH, "a/b", frozenset({"r", "s/one"}))
    assert everything.applies("x")
    assert some.applies("r")
    assert some.applies("r/any")
    assert some.applies("s/one")
    assert not some.applies("s")
    assert not some.applies("s/two")


def test_compatibility_is_an_intersection() -> None:
    """Groups narrow; devices without groups have one of their own; what contradicts leaves the first alone."""
    groups = Groups()
    a, both = groups.mask(["a"]), groups.mask(["a", "b"])
    assert groups.mask([]) == UNGROUPED
    assert fold(None, both) == both
    assert fold(both, a) == a
    assert fold(a, groups.mask(["b"])) == 0
    assert fold(a, UNGROUPED) == a
    assert fold(UNGROUPED, a) == UNGROUPED
    assert groups.known(["c"]) == 0
