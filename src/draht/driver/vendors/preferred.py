"""Which GPUs a container should get together: the device plugin's preferred allocation.

Owns the choice. Whole GPUs are chosen so that they reach each other fast: pairs score by what lies between them, and
the node is thought of as cut into sets of the wanted size, so that one container's good set doesn't leave pieces for
the next. Instances of GPUs are spread over the GPUs that have the most of them left. It is a preference only; the
kubelet decides.

Source of scores and of the objective: NVIDIA/go-gpuallocator's best-effort policy in k8s-device-plugin v0.20.0. Up to
`EXACT` GPUs the answer is the best one; above, a good one is built greedily and improved by exchanging single GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Final

from msgspec.structs import replace

from draht.hardware.inventory import Device, Inventory

__all__ = ["EXACT", "pair_scores", "preferred"]

EXACT: Final = 16
"""Most GPUs for which every way to cut the node into sets is considered; sixteen take about a second."""
_ROUNDS: Final = 64

_NEAR: Final[Mapping[str, int]] = {"X": 60, "PIX": 50, "PXB": 40, "PHB": 30, "NODE": 20, "SYS": 10}
_LINK: Final = 100


def pair_scores(inventory: Inventory) -> dict[frozenset[str], int]:
    """Ids of two whole GPUs → how well they reach each other: what PCIe gives, and 100 for each link between them."""
    gpus = inventory.gpus()
    links: Counter[frozenset[str]] = Counter()
    for link in inventory.links:
        links[frozenset({link.a, link.b})] += link.count
    without_links = replace(inventory, links=())
    return {
        pair: _NEAR[without_links.distance(one, other)] + _LINK * links[pair]
        for one, other in combinations(gpus, 2)
        if (pair := frozenset({one.id, other.id}))
    }


def preferred(
    available: Sequence[str], must_include: Collection[str], size: int, inventory: Inventory
) -> tuple[str, ...]:
    """The ids that should be given out together, in the order of `available`.

    Args:
        available: Ids that can be given, of whole GPUs or of instances; others count as far from everything.
        must_include: Those of them that have to be in the answer.
        size: How many are wanted.
        inventory: The machine.

    Returns:
        `size` ids, or none where that can't be: too few are available, or more are required.
    """
    ids = tuple(dict.fromkeys(available))
    required = [id_ for id_ in ids if id_ in must_include]
    if not 0 < size <= len(ids) or len(required) > size or len(required) < len(set(must_include)):
        return ()
    known = {device.id: device for device in inventory.devices}
    if any((device := known.get(id_)) is not None and device.kind == "mig" for id_ in ids):
        chosen = _spread(ids, required, size, known, inventory)
    else:
        scores = pair_scores(inventory)
        table = [[scores.get(frozenset({one, other}), 0) for other in ids] for one in ids]
        places = [ids.index(id_) for id_ in required]
        best = _best(table, places, size) if len(ids) <= EXACT else _good(table, places, size)
        chosen = {ids[place] for place in best}
    return tuple(id_ for id_ in ids if id_ in chosen)


def _spread(
    ids: Sequence[str], required: Sequence[str], size: int, known: Mapping[str, Device], inventory: Inventory
) -> set[str]:
    """Instances of the GPUs that have given away the fewest."""

    def silicon(id_: str) -> str:
        device = known.get(id_)
        return id_ if device is None else device.parent or id_

    total = Counter(silicon(device.id) for device in inventory.instances())
    given = total - Counter(silicon(id_) for id_ in ids)
    chosen = list(required)
    given.update(silicon(id_) for id_ in chosen)
    rest = [id_ for id_ in ids if id_ not in chosen]
    while len(chosen) < size:
        least = min(rest, key=lambda id_: (given[silicon(id_)], ids.index(id_)))
        given[silicon(least)] += 1
        rest.remove(least)
        chosen.append(least)
    return set(chosen)


def _best(table: Sequence[Sequence[int]], required: Sequence[int], size: int) -> tuple[int, ...]:
    """The best set of the best way to cut all GPUs into sets of a size, one of them perhaps smaller.

    The set that is given away has the full size and all required GPUs. Of equally good ones the first wins.
    """
    number = len(table)
    rest = [place for place in range(number) if place not in required]

    @cache
    def score(mask: int) -> int:
        low = mask & -mask
        others = mask ^ low
        if not others:
            return 0
        row = table[low.bit_length() - 1]
        return score(others) + sum(row[place] for place in _bits(others))

    @cache
    def most(mask: int) -> int:
        """The sum of the best way to cut these GPUs; the GPU with the lowest place decides which set comes next."""
        if not mask:
            return 0
        low = mask & -mask
        others = _bits(mask ^ low)
        left = len(others) + 1
        sizes = {min(size, left)} | ({left % size} if left > size and left % size else set())
        best = 0
        for length in sizes:
            for chosen in combinations(others, length - 1):
                part = low | sum(1 << place for place in chosen)
                best = max(best, score(part) + most(mask ^ part))
        return best

    everything = (1 << number) - 1
    base = sum(1 << place for place in required)
    # What a GPU can contribute at most to any set: its best partners, counted half for each side.
    reach = [sum(sorted(row, reverse=True)[: size - 1]) for row in table]
    candidates = []
    for chosen in combinations(rest, size - len(required)):
        mask = base | sum(1 << place for place in chosen)
        bound = 2 * score(mask) + sum(reach[place] for place in _bits(everything ^ mask))
        candidates.append((-bound, -score(mask), mask))
    best: tuple[int, int] | None = None
    answer = 0
    for bound, own, mask in sorted(candidates, key=lambda found: found[:2]):
        if best is not None and -bound < 2 * best[0]:
            break
        value = (most(everything ^ mask) - own, -own)
        if best is None or value > best:
            best, answer = value, mask
    return _bits(answer)


def _good(table: Sequence[Sequence[int]], required: Sequence[int], size: int) -> tuple[int, ...]:
    """A set whose pairs score high: grown from each GPU in turn, then improved by single exchanges."""
    number = len(table)
    answer: tuple[int, tuple[int, ...]] | None = None
    for start in (None,) if required else range(min(number, _ROUNDS)):
        chosen = set(required) if start is None else {start}
        gain = [sum(table[place][other] for other in chosen) for place in range(number)]
        while len(chosen) < size:
            nearest = max((place for place in range(number) if place not in chosen), key=lambda place: gain[place])
            chosen.add(nearest)
            for place in range(number):
                gain[place] += table[place][nearest]
        _improve(table, chosen, gain, frozenset(required))
        value = (sum(gain[place] for place in chosen), tuple(sorted(chosen)))
        if answer is None or value[0] > answer[0]:
            answer = value
    assert answer is not None, "there is a GPU to start from"
    return answer[1]


def _improve(table: Sequence[Sequence[int]], chosen: set[int], gain: list[int], required: frozenset[int]) -> None:
    for _ in range(_ROUNDS):
        outside = [place for place in range(len(table)) if place not in chosen]
        exchanges = (
            (gain[new] - table[new][old] - gain[old], -new, -old) for old in chosen - required for new in outside
        )
        better, new, old = max(exchanges, default=(0, 0, 0))
        if better <= 0:
            return
        chosen.remove(-old)
        chosen.add(-new)
        for place in range(len(table)):
            gain[place] += table[place][-new] - table[place][-old]


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)
