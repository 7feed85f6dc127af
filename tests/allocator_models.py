"""Random small problems for the pruned search, and a slow search that shares no code with it.

An `Instance` spells out what devices are (values, amounts, groups) instead of masks. `slow_search` walks it exactly as
upstream's allocator does, undoing each choice; `model_of` packs it for the code under test.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from draht.allocator.prune.model import Choice, Model, Root, Rule

__all__ = [
    "PROFILES",
    "Alternative",
    "Constraint",
    "Device",
    "Instance",
    "TooLongError",
    "instance",
    "model_of",
    "planted",
    "slow_search",
]

WIDTH = 8


@dataclass
class Device:
    """One device: values by attribute (several are a list), counters by field, capacity if it may be shared."""

    values: dict[str, tuple[int, ...]] = field(default_factory=dict)
    needs: dict[str, int] = field(default_factory=dict)
    groups: frozenset[str] | None = None
    multi: bool = False
    block: int = 0


@dataclass
class Alternative:
    """One alternative of a request."""

    count: int
    candidates: set[int]
    errors: set[int] = field(default_factory=set)
    admin: bool = False
    everything: bool = False
    take: int = 0


@dataclass
class Constraint:
    """A constraint over some requests of its claim."""

    attribute: str
    distinct: bool
    requests: set[int]


@dataclass
class Instance:
    """A problem with names."""

    devices: list[Device]
    claims: list[list[list[Alternative]]]
    constraints: list[list[Constraint]]
    available: dict[str, int]
    used: set[int] = field(default_factory=set)
    shared: set[int] = field(default_factory=set)
    lists: bool = False


class TooLongError(Exception):
    """The slow search took too many steps."""


class FatalError(Exception):
    """The search looked at an error position."""


class _Slow:
    def __init__(self, case: Instance, budget: int) -> None:
        self.case = case
        self.budget = budget
        self.steps = 0
        self.used = {p: {-1} for p in case.used}
        self.left = dict(case.available)
        self.shares: dict[int, int] = dict.fromkeys(case.shared, 1)
        self.placed: dict[int, list[frozenset[str]]] = {}
        self.under: list[list[tuple[int, tuple[int, ...]]]] = []
        self.chosen: list[tuple[int, int, list[int]]] = []

    def solve(self, claim: int, request: int, alternative: int, taken: int, start: int) -> bool:
        self.steps += 1
        if self.steps > self.budget:
            raise TooLongError
        case = self.case
        if claim == len(case.claims):
            return True
        if request == len(case.claims[claim]):
            saved, self.under = (
                self.under,
                [[] for _ in case.constraints[claim + 1]] if claim + 1 < len(case.claims) else [],
            )
            if self.solve(claim + 1, 0, -1, 0, 0):
                return True
            self.under = saved
            return False
        if alternative < 0:
            for index in range(len(case.claims[claim][request])):
                self.chosen.append((request, index, []))
                if self.solve(claim, request, index, 0, 0):
                    return True
                self.chosen.pop()
            return False
        one = case.claims[claim][request][alternative]
        if one.everything:
            listed = sorted(one.candidates)
            if not listed:
                return False
            if taken == len(listed):
                return self.solve(claim, request + 1, -1, 0, 0)
            return self._try(claim, request, alternative, taken, listed[taken])
        if taken == one.count:
            return self.solve(claim, request + 1, -1, 0, 0)
        for position in range(start, len(case.devices)):
            if self._in_use(position, claim, one.admin):
                continue
            if position in one.errors:
                raise FatalError
            if position in one.candidates and self._try(claim, request, alternative, taken, position):
                return True
        return False

    def _in_use(self, position: int, claim: int, admin: bool) -> bool:
        marks = self.used.get(position, set())
        return claim in marks if admin else bool(marks)

    def _try(self, claim: int, request: int, alternative: int, taken: int, position: int) -> bool:
        case = self.case
        one = case.claims[claim][request][alternative]
        device = case.devices[position]
        if self._in_use(position, claim, one.admin):
            return False
        first = not (device.multi and self.shares.get(position))
        amounts: dict[str, int] = dict(device.needs) if first else {}
        if device.multi:
            amounts[f"capacity{position}"] = one.take
        if any(self.left[name] < amount for name, amount in amounts.items()):
            return False
        if first and device.groups is not None:
            placed = self.placed.get(device.block, [])
            everyone = [*placed, device.groups]
            if any(everyone) and (not all(everyone) or not frozenset.intersection(*everyone)):
                return False
        for constraint, under in zip(case.constraints[claim], self.under, strict=True):
            if request in constraint.requests and not self._accepts(constraint, under, device):
                return False
        marks = []
        for constraint, under in zip(case.constraints[claim], self.under, strict=True):
            if request in constraint.requests:
                under.append((position, device.values[constraint.attribute]))
                marks.append(under)
        for name, amount in amounts.items():
            self.left[name] -= amount
        if first and device.groups is not None:
            self.placed.setdefault(device.block, []).append(device.groups)
        if device.multi:
            self.shares[position] = self.shares.get(position, 0) + 1
        else:
            self.used.setdefault(position, set()).add(claim)
        self.chosen[-1][2].append(position)
        if self.solve(claim, request, alternative, taken + 1, position + 1):
            return True
        self.chosen[-1][2].pop()
        if device.multi:
            self.shares[position] -= 1
        else:
            self.used[position].discard(claim)
        if first and device.groups is not None:
            self.placed[device.block].pop()
        for name, amount in amounts.items():
            self.left[name] += amount
        for under in marks:
            under.pop()
        return False

    @staticmethod
    def _accepts(constraint: Constraint, under: list[tuple[int, tuple[int, ...]]], device: Device) -> bool:
        value = device.values.get(constraint.attribute)
        if value is None:
            return False
        if constraint.distinct:
            return not any(set(value) & set(other) for _, other in under)
        common = set(value)
        for _, other in under:
            common &= set(other)
        return bool(common)


def slow_search(case: Instance, budget: int = 20_000) -> tuple[str, object]:
    """``("found", choices)``, ``("none", None)`` or ``("error", None)`` as upstream finds it first."""
    slow = _Slow(case, budget)
    slow.under = [[] for _ in case.constraints[0]] if case.constraints else []
    try:
        found = slow.solve(0, 0, -1, 0, 0)
    except FatalError:
        return ("error", None)
    if not found:
        return ("none", None)
    return ("found", tuple((index, tuple(positions)) for _, index, positions in slow.chosen))


def model_of(case: Instance) -> tuple[Model, Root]:
    """The packed form."""
    shifts: dict[str, int] = {}
    for name in case.available:
        shifts[name] = len(shifts) * (WIDTH + 1)
    guard = 1 << WIDTH
    remaining = sum(guard + amount << shifts[name] for name, amount in case.available.items())
    multi = sum(1 << p for p, device in enumerate(case.devices) if device.multi)
    needs = tuple(sum(amount << shifts[name] for name, amount in device.needs.items()) for device in case.devices)
    guards = tuple(sum(guard << shifts[name] for name in device.needs) for device in case.devices)
    mask = 2 * guard - 1
    fields = tuple(
        tuple((shifts[name], mask) for name in (*device.needs, *([f"capacity{p}"] if device.multi else [])))
        for p, device in enumerate(case.devices)
    )
    bits = {"a": 2, "b": 4}
    groups = tuple(
        () if device.groups is None else ((device.block, sum(bits[g] for g in device.groups) or 1),)
        for device in case.devices
    )
    take_guards = tuple(guard << shifts[f"capacity{p}"] if d.multi else 0 for p, d in enumerate(case.devices))
    rules = []
    slots = []
    claim_of = []
    for claim, constraints in enumerate(case.constraints):
        packed = []
        for constraint in constraints:
            values = [device.values.get(constraint.attribute, ()) for device in case.devices]
            same = tuple(
                sum(1 << other for other, theirs in enumerate(values) if set(value) & set(theirs)) for value in values
            )
            present = sum(1 << p for p, value in enumerate(values) if value)
            elements = tuple(sum(1 << e for e in value) for value in values) if case.lists else ()
            packed.append(Rule(constraint.distinct, same, present, elements))
        rules.append(tuple(packed))
        for request, alternatives in enumerate(case.claims[claim]):
            slots.append(
                tuple(
                    Choice(
                        one.count,
                        0 if one.everything else sum(1 << p for p in one.candidates),
                        sum(1 << p for p in one.errors),
                        one.admin,
                        tuple(sorted(one.candidates)) if one.everything else None,
                        tuple(i for i, c in enumerate(constraints) if request in c.requests),
                        tuple(
                            one.take << shifts[f"capacity{p}"] if device.multi else 0
                            for p, device in enumerate(case.devices)
                        ),
                        take_guards,
                        sum(1 << p for p in one.candidates) if one.everything else 0,
                    )
                    for one in alternatives
                )
            )
            claim_of.append(claim)
    model = Model(len(case.devices), tuple(slots), tuple(claim_of), tuple(rules), multi, needs, guards, fields, groups)
    used = sum(1 << p for p in case.used)
    return model, Root(used, remaining, sum(1 << p for p in case.shared), (None,) * 4)


PROFILES = ("mixed", "values", "errors", "admin", "partitions", "shares", "lists", "groups", "blocks")


def instance(seed: int, profile: str = "") -> Instance:
    """A random instance with the symmetries that pruning lives on: equal blocks, few values, tight amounts."""
    chance = random.Random(seed)
    profile = profile or PROFILES[seed % len(PROFILES)]
    devices, available = _hardware(chance, profile)
    claims = []
    constraints = []
    for _ in range(chance.choice([1, 1, 1, 2, 3] if profile != "admin" else [1, 2, 2])):
        requests = [_request(chance, profile, devices) for _ in range(chance.randint(1, 4))]
        claims.append(requests)
        constraints.append(_constraints(chance, profile, requests))
    used = {p for p in range(len(devices)) if chance.random() < 0.15} if chance.random() < 0.5 else set()
    shared = {p for p, d in enumerate(devices) if d.multi and chance.random() < 0.3} - used
    for position in shared:
        for name, amount in devices[position].needs.items():
            available[name] = max(0, available[name] - amount)
    return Instance(devices, claims, constraints, available, used, shared, profile == "lists")


def _hardware(chance: random.Random, profile: str) -> tuple[list[Device], dict[str, int]]:
    layout = {
        "partitions": "partitions",
        "groups": "partitions",
        "shares": "shares",
        "values": "flat",
        "blocks": "partitions",
    }.get(profile, chance.choice(["flat", "partitions", "shares", "mixed"]))
    devices: list[Device] = []
    available: dict[str, int] = {}
    sizes = chance.choice([[4, 2, 2, 1, 1], [2, 2, 1, 1], [1, 1, 1, 2], [2, 1, 1]])
    width = chance.randint(1, 4)
    memory = chance.choice([[4], [4, 3], [2, 3], [7]])
    paid = chance.random() < 0.5
    for block in range(chance.randint(2, 4)):
        kind = chance.choice(["flat", "partitions", "shares"]) if layout == "mixed" else layout
        values = {
            "model": (chance.randint(0, 1),),
            "near": (block if profile == "blocks" or chance.random() < 0.6 else block // 2,),
        }
        if kind == "flat":
            members = [Device({**values, "rank": (rank % 2,)}, block=block) for rank in range(width)]
        elif kind == "partitions":
            available[f"memory{block}"] = chance.choice(memory)
            members = [
                Device({**values, "size": (size,), "rank": (rank % 2,)}, {f"memory{block}": size}, block=block)
                for rank, size in enumerate(sizes)
            ]
            if profile == "groups":
                for device in members:
                    device.groups = frozenset(chance.choice([["a"], ["b"], ["a", "b"], []]))
        else:
            available[f"capacity{len(devices)}"] = chance.choice([8, 8, 8, 5, 10])
            members = [Device({**values, "rank": (block % 2,)}, multi=True, block=block)]
            if paid:
                available[f"memory{block}"] = 2
                members[0].needs = {f"memory{block}": chance.choice([1, 2])}
                members.append(Device({**values, "rank": (1,)}, {f"memory{block}": 1}, block=block))
        devices += members
    devices = devices[:13]
    for position, device in enumerate(devices):
        device.values["id"] = (position,)
        if chance.random() < 0.04:
            device.values.pop(chance.choice(list(device.values)))
        if profile == "lists":
            for name in {"model", "near"} & set(device.values):
                device.values[name] = tuple({*device.values[name], chance.randint(0, 2)})
    return devices, available


def _request(chance: random.Random, profile: str, devices: list[Device]) -> list[Alternative]:
    alternatives = []
    for _ in range(chance.choice([1, 1, 1, 1, 2, 3])):
        one = Alternative(
            chance.choice([1, 1, 1, 2, 2, 3, 4]), _selected(chance, devices), take=chance.choice([3, 3, 4, 5, 2])
        )
        one.everything = chance.random() < 0.05
        if profile == "errors" and not one.everything and chance.random() < 0.5:
            one.errors = {chance.randrange(len(devices)) for _ in range(chance.choice([1, 1, 2]))}
            one.candidates -= one.errors
        one.admin = profile == "admin" and chance.random() < 0.5
        alternatives.append(one)
    return alternatives


def _constraints(chance: random.Random, profile: str, requests: list[list[Alternative]]) -> list[Constraint]:
    found = []
    names = {
        "values": ["model", "near", "rank"],
        "lists": ["model", "near"],
        "partitions": ["near", "near", "size"],
        "blocks": ["near"],
    }
    for _ in range(chance.choice([0, 1, 1, 2] if profile != "values" else [2, 2, 3])):
        subject = {r for r in range(len(requests)) if chance.random() < 0.75}
        # A constraint on an "All" request is refused by the search under test.
        subject -= {r for r, alternatives in enumerate(requests) if any(one.everything for one in alternatives)}
        name = chance.choice(names.get(profile, ["model", "near", "near", "size", "rank", "id"]))
        found.append(Constraint(name, chance.random() < 0.3, subject))
    return found


def _selected(chance: random.Random, devices: list[Device]) -> set[int]:
    everyone = set(range(len(devices)))
    how = chance.random()
    if how < 0.45:
        return everyone
    if how < 0.6:
        return {p for p in everyone if devices[p].values.get("model") == (1,)} or everyone
    if how < 0.75:
        size = chance.choice([1, 2])
        return {p for p in everyone if devices[p].values.get("size", (size,)) == (size,)}
    if how < 0.85:
        return {p for p in everyone if devices[p].values.get("rank") == (0,)} or everyone
    if how < 0.93:
        return {p for p in everyone if p < 4}
    return {p for p in everyone if chance.random() < 0.6}


def planted(name: str) -> Instance:
    """An instance made for one mistake that random ones hardly ever meet."""
    return _PLANTED[name]()


def _common_elements() -> Instance:
    """The first device decides by an element that shows in no mask, only in what the next two have in common."""
    lists = [(1, 2), (1, 2, 9), (1, 9), (2, 9)]
    claim = [[Alternative(1, {0, 1})], [Alternative(1, {2})], [Alternative(1, {3})]]
    constraint = Constraint("near", False, {0, 1, 2})
    return Instance([Device({"near": values}) for values in lists], [claim], [[constraint]], {}, lists=True)


def _paid_shares() -> Instance:
    """Taking the second device first pays the counter that its second share then needs no more."""
    devices = [
        Device({}, {"memory": 1}, multi=True),
        Device({}, {"memory": 1}, multi=True),
        Device({}, {"memory": 1}),
    ]
    claim = [[Alternative(1, {0, 1})], [Alternative(1, {1})], [Alternative(1, {2})]]
    return Instance(devices, [claim], [[]], {"memory": 2, "capacity0": 0, "capacity1": 0})


_PLANTED = {"common elements": _common_elements, "paid shares": _paid_shares}
