from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

from draht.driver.vendors import preferred as module
from draht.driver.vendors.preferred import EXACT, pair_scores, preferred
from draht.hardware import profiles
from draht.hardware.inventory import Device, Inventory
from draht.hardware.simulated import from_profile
from draht.hardware.topology import Link

Sets = tuple[frozenset[str], ...]


def machine(number: int, rng: random.Random) -> Inventory:
    """GPUs on random NUMA nodes with random links."""
    gpus = tuple(
        Device(id=f"G{place}", kind="gpu", vendor="nvidia", index=place, numa_node=rng.randrange(2))
        for place in range(number)
    )
    links = tuple(
        Link(kind="nvlink", a=one.id, b=other.id, count=rng.randint(1, 4))
        for one, other in combinations(gpus, 2)
        if rng.random() < 0.4
    )
    return Inventory(machine="m", source="test", devices=gpus, links=links)


def cuts(ids: Sequence[str], size: int, rest: int) -> Iterator[Sets]:
    """Every way to cut GPUs into sets of a size and, if there is a rest, one smaller set."""
    if not ids:
        yield ()
        return
    first, others = ids[0], ids[1:]
    for length, left in ((size, rest), *(((rest, 0),) if rest else ())):
        if length - 1 <= len(others):
            for chosen in combinations(others, length - 1):
                below = [id_ for id_ in others if id_ not in chosen]
                for part in cuts(below, size, left):
                    yield (frozenset({first, *chosen}), *part)


def total(chosen: frozenset[str], scores: dict[frozenset[str], int]) -> int:
    """What the pairs of a set score."""
    return sum(scores[frozenset(pair)] for pair in combinations(sorted(chosen), 2))


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_is_as_good_as_the_best_of_all(seed: int) -> None:
    """Compared with every cut of the machine: the best sum first, and then the best set in it."""
    rng = random.Random(seed)
    inventory = machine(rng.randint(1, 7), rng)
    ids = [gpu.id for gpu in inventory.gpus()]
    available = rng.sample(ids, rng.randint(1, len(ids)))
    size = rng.randint(1, len(available))
    required = rng.sample(available, rng.randint(0, min(size, 2)))
    scores = pair_scores(inventory)
    best = max(
        (sum(total(part, scores) for part in cut), total(chosen, scores))
        for cut in cuts(available, size, len(available) % size)
        for chosen in cut
        if len(chosen) == size and chosen >= set(required)
    )
    answer = frozenset(preferred(available, required, size, inventory))
    assert len(answer) == size
    assert answer >= set(required)
    reached = max(
        sum(total(part, scores) for part in cut)
        for cut in cuts(available, size, len(available) % size)
        if answer in cut
    )
    assert (reached, total(answer, scores)) == best


@pytest.mark.parametrize(
    ("profile", "size", "must", "expected"),
    [
        ("mixed-x6", 2, (), {2, 3}),
        ("mixed-x6", 2, (4,), {4, 5}),
        ("l40s-x4", 2, (), {0, 1}),
        ("dgx-h100", 8, (), set(range(8))),
    ],
)
def test_gpus_that_reach_each_other_fast_go_together(
    profile: str, size: int, must: tuple[int, ...], expected: set[int]
) -> None:
    """NVLink before one PCIe switch before everything else."""
    inventory = from_profile(profile)
    gpus = inventory.gpus()
    answer = preferred([gpu.id for gpu in gpus], [gpus[index].id for index in must], size, inventory)
    assert {gpu.index for gpu in gpus if gpu.id in answer} == expected


def test_a_good_pair_isnt_broken_up_for_a_single_gpu() -> None:
    """With one GPU of a linked pair already gone, the next one takes the other, not half of the next pair."""
    gpus = tuple(Device(id=f"G{place}", kind="gpu", index=place) for place in range(3))
    links = (Link(kind="nvlink", a="G0", b="G1", count=4),)
    inventory = Inventory(machine="m", source="test", devices=gpus, links=links)
    assert preferred(["G0", "G1", "G2"], [], 2, inventory) == ("G0", "G1")


@pytest.mark.parametrize("profile", profiles.names())
def test_scores_are_those_of_the_device_plugin(profile: str) -> None:
    """Ten to sixty for the way over PCIe, and a hundred for each link."""
    inventory = from_profile(profile)
    links = {frozenset({link.a, link.b}): link.count for link in inventory.links}
    for pair, score in pair_scores(inventory).items():
        assert score - 100 * links.get(pair, 0) in {10, 20, 30, 40, 50, 60}


@pytest.mark.parametrize(
    ("available", "must", "size"),
    [((), (), 1), (("G0",), (), 2), (("G0", "G1"), ("G0", "G1"), 1), (("G0",), ("G1",), 1), (("G0",), (), 0)],
)
def test_what_cant_be_has_no_preference(available: tuple[str, ...], must: tuple[str, ...], size: int) -> None:
    """The kubelet then decides alone."""
    assert preferred(available, must, size, machine(2, random.Random(1))) == ()


@pytest.mark.parametrize("seed", range(5))
def test_large_machines_get_a_good_set(seed: int) -> None:
    """Beyond the exact search two islands of linked GPUs are still found."""
    number, half = 24, 12
    order = list(range(number))
    random.Random(seed).shuffle(order)
    gpus = tuple(Device(id=f"G{place}", kind="gpu", index=place) for place in range(number))
    links = tuple(
        Link(kind="nvlink", a=f"G{one}", b=f"G{other}", count=2)
        for island in (order[:half], order[half:])
        for one, other in combinations(island, 2)
    )
    inventory = Inventory(machine="m", source="test", devices=gpus, links=links)
    assert number > EXACT
    must = f"G{order[0]}"
    answer = preferred([gpu.id for gpu in gpus], [must], half, inventory)
    assert set(answer) == {f"G{place}" for place in order[:half]}
    assert len(preferred([gpu.id for gpu in gpus], [], 20, inventory)) == 20


@pytest.mark.parametrize("seed", range(20))
def test_the_search_for_large_machines_never_leaves_out_what_is_required(seed: int) -> None:
    """And can't be improved by one exchange."""
    rng = random.Random(seed)
    number, size = 12, rng.randint(1, 12)
    table = [[0] * number for _ in range(number)]
    for one, other in combinations(range(number), 2):
        table[one][other] = table[other][one] = rng.choice([10, 20, 300])
    required = rng.sample(range(number), rng.randint(0, min(2, size)))

    def score(chosen: tuple[int, ...]) -> int:
        return sum(table[one][other] for one, other in combinations(chosen, 2))

    answer = module._good(table, required, size)
    assert len(answer) == size
    assert set(required) <= set(answer)
    for old in set(answer) - set(required):
        for new in set(range(number)) - set(answer):
            assert score(tuple({*answer, new} - {old})) <= score(answer)


def test_instances_are_spread_over_gpus() -> None:
    """One from each GPU, and first from the GPU that has given away the fewest."""
    gpus = tuple(Device(id=f"G{place}", kind="gpu", index=place) for place in range(2))
    instances = tuple(
        Device(id=f"M{gpu}{number}", kind="mig", parent=f"G{gpu}") for gpu in range(2) for number in range(3)
    )
    inventory = Inventory(machine="m", source="test", devices=(*gpus, *instances))
    everything = [instance.id for instance in instances]
    assert preferred(everything, [], 2, inventory) == ("M00", "M10")
    assert preferred([id_ for id_ in everything if id_ != "M00"], [], 1, inventory) == ("M10",)
    assert preferred(everything, ["M11"], 2, inventory) == ("M00", "M11")
