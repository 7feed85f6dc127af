from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draht.api.core.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from draht.api.meta import ObjectMeta
from draht.api.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSlice,
    ResourceSliceSpec,
)
from draht.driver.framework import Offered, Pool
from draht.driver.pool_check import check_pool
from draht.driver.slices import name_prefix, pool_slices
from draht.validation import ALL, validate

DRIVER = "gpu.example.com"


def consuming(name: str, counter_set: str, counter: str = "memory") -> Device:
    """A partition."""
    taken = DeviceCounterConsumption(counter_set=counter_set, counters={counter: Counter(value="1")})
    return Device(name=name, consumes_counters=(taken,))


def counters(name: str) -> CounterSet:
    """What partitions share."""
    return CounterSet(name=name, counters={"memory": Counter(value="8")})


def pool(*groups: Sequence[Device], sets: Sequence[CounterSet] = (), name: str = "", all_nodes: bool = False) -> Pool:
    """A pool of these groups."""
    return Pool(
        groups=tuple(tuple(Offered(device=device) for device in group) for group in groups),
        counter_sets=tuple(sets),
        name=name,
        all_nodes=all_nodes,
    )


def plain(count: int, prefix: str = "d") -> list[Device]:
    """Devices without anything."""
    return [Device(name=f"{prefix}-{number}") for number in range(count)]


def sizes(specs: Sequence[ResourceSliceSpec]) -> list[tuple[int, int]]:
    """For each slice, how many counter sets and devices it has."""
    return [(len(spec.shared_counters), len(spec.devices)) for spec in specs]


PARTITIONED = [[consuming(f"g{gpu}-{part}", f"g{gpu}") for part in range(26)] for gpu in range(9)]
LISTED = Device(name="l", attributes={"nodes": DeviceAttribute(ints=(1,))})
TAINTED = Device(name="t", taints=(DeviceTaint(key="a.example/b", effect="NoSchedule"),))


@pytest.mark.parametrize(
    ("given_pool", "options", "expected"),
    [
        pytest.param(pool(), {}, [(0, 0)], id="an empty pool is one empty slice"),
        pytest.param(pool(*([each] for each in plain(130))), {"taintable": False}, [(0, 128), (0, 2)], id="plain"),
        pytest.param(pool(*([each] for each in plain(130))), {}, [(0, 64), (0, 64), (0, 2)], id="room for taints"),
        pytest.param(pool(plain(40), plain(40, "e")), {}, [(0, 40), (0, 40)], id="groups stay together"),
        pytest.param(pool(plain(150)), {}, [(0, 64), (0, 64), (0, 22)], id="a group that no slice holds"),
        pytest.param(pool(plain(100), [LISTED]), {"taintable": False}, [(0, 100), (0, 1)], id="lists need room"),
        pytest.param(pool([TAINTED], plain(63)), {"taintable": False}, [(0, 64)], id="a taint limits its slice"),
        pytest.param(pool([TAINTED], plain(64)), {"taintable": False}, [(0, 1), (0, 64)], id="and the next is free"),
        pytest.param(
            pool(*PARTITIONED, sets=[counters(f"g{gpu}") for gpu in range(9)]),
            {},
            [(8, 0), (1, 0), *[(0, 26)] * 9],
            id="counter sets come first",
        ),
        pytest.param(
            pool(*PARTITIONED[:2], plain(3), sets=[counters("g0"), counters("g1")]),
            {"combined": True},
            [(1, 26), (1, 26), (0, 3)],
            id="before 1.35 counter sets are beside their devices",
        ),
    ],
)
def test_devices_are_split_into_slices(
    given_pool: Pool, options: dict[str, bool], expected: list[tuple[int, int]]
) -> None:
    """As many as a slice may hold, groups whole, counters where readers look for them; each says how many there are."""
    specs = pool_slices(DRIVER, given_pool, node_name="n", **options)
    assert sizes(specs) == expected
    assert {spec.pool.resource_slice_count for spec in specs} == {len(specs)}
    devices = [offered.device for group in given_pool.groups for offered in group]
    assert [device for spec in specs for device in spec.devices] == devices


@settings(max_examples=150, deadline=None)
@given(
    groups=st.lists(st.tuples(st.integers(1, 80), st.sampled_from(["plain", "list", "taint", "counter"])), max_size=8),
    taintable=st.booleans(),
)
def test_every_split_keeps_the_limits_of_the_api(groups: list[tuple[int, str]], taintable: bool) -> None:
    """Whatever devices are mixed, the API's rules accept each slice, and with a taint on any device as well."""
    made = []
    for number, (count, kind) in enumerate(groups):
        devices = plain(count, f"g{number}")
        if kind == "list":
            devices[0] = msgspec.structs.replace(LISTED, name=devices[0].name)
        elif kind == "taint":
            devices[-1] = msgspec.structs.replace(TAINTED, name=devices[-1].name)
        elif kind == "counter":
            devices = [consuming(device.name, "set") for device in devices]
        made.append(devices)
    specs = pool_slices(DRIVER, pool(*made, sets=[counters("set")]), node_name="n", taintable=taintable)
    for index, spec in enumerate(specs):
        if taintable and spec.devices:
            tainted = msgspec.structs.replace(spec.devices[0], taints=TAINTED.taints)
            spec = msgspec.structs.replace(spec, devices=(tainted, *spec.devices[1:]))
        whole = ResourceSlice(metadata=ObjectMeta(name=name_prefix(index, DRIVER) + "n"), spec=spec)
        assert validate(whole, gates=ALL) == ()


def test_pools_for_other_nodes_have_no_node() -> None:
    """For all nodes or for those of a selector, under a name of their own."""
    requirement = NodeSelectorRequirement(key="rack", operator="In", values=("a",))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))
    (everywhere,) = pool_slices(DRIVER, Pool(name="fabric", all_nodes=True), node_name="n")
    (somewhere,) = pool_slices(DRIVER, Pool(name="fabric", node_selector=selector), node_name="n")
    assert (everywhere.pool.name, everywhere.node_name, everywhere.all_nodes) == ("fabric", None, True)
    assert (somewhere.node_name, somewhere.all_nodes, somewhere.node_selector) == (None, None, selector)


@pytest.mark.parametrize(
    ("given_pool", "kept", "names", "words"),
    [
        pytest.param(pool(plain(2)), ["d-0", "d-1"], [], "", id="nothing is wrong"),
        pytest.param(pool([Device(name="A_b")], plain(1)), ["d-0"], ["A_b"], "name", id="a name"),
        pytest.param(pool(plain(1), plain(1)), ["d-0"], ["d-0"], "another device of this name", id="a name twice"),
        pytest.param(pool([Device(name="d-0")] * 3), ["d-0"], ["d-0", "d-0"], "another device", id="one device thrice"),
        pytest.param(pool([consuming("a", "x")]), [], ["a"], 'counter set "x"', id="a set that isn't there"),
        pytest.param(
            pool([consuming("a", "x"), consuming("b", "x", "cores")], sets=[counters("x")]),
            ["a"],
            ["b"],
            'no counter "cores"',
            id="a counter that isn't there",
        ),
        pytest.param(
            pool([consuming("a", "x")], plain(1), sets=[CounterSet(name="x", counters={})]),
            ["d-0"],
            ["x", "a"],
            "counters",
            id="a set without counters, and who needs it",
        ),
        pytest.param(
            pool([consuming("a", "x"), consuming("b", "y")], sets=[counters("x"), counters("x"), counters("y")]),
            ["b"],
            ["x", "a"],
            "two counter sets",
            id="a set twice",
        ),
        pytest.param(pool([LISTED]), ["l"], [], "", id="features that may be off are the server's to judge"),
        pytest.param(
            pool([msgspec.structs.replace(TAINTED, taints=TAINTED.taints * 17)], plain(1)),
            ["d-0"],
            ["t"],
            "taints",
            id="too many taints",
        ),
    ],
)
def test_what_breaks_a_rule_is_left_out_alone(given_pool: Pool, kept: list[str], names: list[str], words: str) -> None:
    """The others stay, in their order; each that is left out has a reason."""
    checked = check_pool(DRIVER, given_pool, node_name="n")
    assert checked.pool is not None
    assert [offered.device.name for group in checked.pool.groups for offered in group] == kept
    assert [each.name for each in checked.left_out] == names
    assert words in "; ".join(each.message for each in checked.left_out)


def test_a_bad_device_behind_many_good_ones_is_found() -> None:
    """Slices are judged in parts; positions are counted over all of them."""
    devices = plain(200)
    devices[150] = Device(name="BAD")
    checked = check_pool(DRIVER, pool(*([each] for each in devices)), node_name="n")
    assert checked.pool is not None
    assert [each.name for each in checked.left_out] == ["BAD"]
    assert len(checked.pool.groups) == 199


@pytest.mark.parametrize(
    ("driver", "name", "words"), [("Not A Driver", "", "spec.driver"), (DRIVER, "-bad-", "spec.pool.name")]
)
def test_a_pool_that_cant_be_named_is_left_out_whole(driver: str, name: str, words: str) -> None:
    """Nothing of it could be written."""
    checked = check_pool(driver, pool(plain(1), name=name), node_name="n")
    assert checked.pool is None
    assert words in checked.left_out[0].message
