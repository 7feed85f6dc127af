from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from draht.api.meta import ObjectMeta
from draht.api.resource import (
    Device,
    DeviceCapacity,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from draht.node.slices.plan import Create, Delete, Plan, Replace, Write, plan, remove

DRIVER = "gpu.example.com"
Content = frozenset[bytes]


def spec(*devices: Device | str, count: int = 1, generation: int = 0) -> ResourceSliceSpec:
    """A slice of the pool of node-1."""
    return ResourceSliceSpec(
        driver=DRIVER,
        pool=ResourcePool(name="node-1", generation=generation, resource_slice_count=count),
        node_name="node-1",
        devices=tuple(Device(name=each) if isinstance(each, str) else each for each in devices),
    )


def specs(*names: str) -> list[ResourceSliceSpec]:
    """A pool with one slice for each word, one device for each letter."""
    return [spec(*name, count=len(names)) for name in names]


class Server:
    """The slices of a server; applies one write at a time."""

    def __init__(self, *slices: ResourceSlice) -> None:
        self.slices = {each.metadata.name: each for each in slices}
        self.names = 0

    @classmethod
    def with_pool(cls, *names: str, generation: int = 1) -> Server:
        """A server where a pool has been published."""
        server = cls()
        for index, each in enumerate(specs(*names)):
            pool = msgspec.structs.replace(each.pool, generation=generation)
            server.add(index, msgspec.structs.replace(each, pool=pool))
        return server

    def add(self, index: int, new: ResourceSliceSpec) -> None:
        """Create a slice with a name of its own."""
        self.names += 1
        name = f"{index:05x}-{DRIVER}-node-1-{self.names:05}"
        self.slices[name] = ResourceSlice(metadata=ObjectMeta(name=name), spec=new)

    def apply(self, write: Write) -> None:
        """Do one write."""
        match write:
            case Create(index, new):
                self.add(index, new)
            case Replace(old, new):
                self.slices[old.metadata.name] = msgspec.structs.replace(old, spec=new)
            case Delete(old):
                del self.slices[old.metadata.name]

    def now(self) -> tuple[ResourceSlice, ...]:
        """All slices."""
        return tuple(self.slices.values())

    def readings(self) -> set[Content]:
        """What readers may take the pool for: one of them trusts the one, another one the other slice's number."""
        newest = max((each.spec.pool.generation for each in self.now()), default=0)
        live = [each for each in self.now() if each.spec.pool.generation == newest]
        if not any(each.spec.pool.resource_slice_count == len(live) for each in live):
            return set()
        return {content(each.spec for each in live)}


def content(pool: Iterator[ResourceSliceSpec] | Sequence[ResourceSliceSpec]) -> Content:
    """The devices and counter sets of a pool."""
    return frozenset(msgspec.json.encode((each.devices, each.shared_counters)) for each in pool)


def follow(server: Server, steps: Plan, order: random.Random) -> list[set[Content]]:
    """Apply a plan, the writes of a stage in any order; what readers see after each write."""
    seen = []
    for stage in steps.stages:
        for write in order.sample(stage, len(stage)):
            server.apply(write)
            seen.append(server.readings())
    return seen


WORDS = st.lists(st.text("abcdef", max_size=3), min_size=1, max_size=4)
FOREIGN = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.text("abcdef", max_size=3),
        st.one_of(st.none(), st.integers(1, 5)),
        st.sampled_from([0, 1, 2, 2, 2, 3]),
    ),
    max_size=4,
)
"""Strangers' slices: index, devices, the number of slices it claims (None: as many as wanted), generation."""


@settings(max_examples=1000, deadline=None)
@example(before=["a", "b", "c"], after=["a", "b", "c"], foreign=[(9, "x", None, 2)], lost={0, 1}, seed=1)
@example(before=["a", "b", "c"], after=["a", "x", "y"], foreign=[(9, "x", None, 2)], lost=set(), seed=1)
@given(before=WORDS, after=WORDS, foreign=FOREIGN, lost=st.sets(st.integers(0, 4)), seed=st.integers(0, 2**16))
def test_no_reader_ever_sees_devices_that_were_neither_there_nor_wanted(
    before: list[str], after: list[str], foreign: list[tuple[int, str, int | None, int]], lost: set[int], seed: int
) -> None:
    """From any state, with slices of strangers and without some of the own, in any order of writes within a stage."""
    server = Server.with_pool(*before, generation=2)
    for index, letters, count, generation in foreign:
        server.add(index, spec(*letters, count=count or len(after), generation=generation))
    for name in [name for position, name in enumerate(list(server.slices)) if position in lost]:
        del server.slices[name]
    first = server.readings()
    desired = specs(*after)
    for readings in follow(server, plan(desired, server.now()), random.Random(seed)):
        assert readings <= first | {content(desired)}
    assert server.readings() == {content(desired)}
    assert len(server.slices) == len(desired), "nothing is left over"
    assert plan(desired, server.now()).stages == (), "nothing is left to do"


@settings(max_examples=300, deadline=None)
@given(before=WORDS, after=WORDS, stop=st.integers(0, 12), seed=st.integers(0, 2**16))
def test_a_plan_that_was_cut_off_is_taken_up_from_what_is_there(
    before: list[str], after: list[str], stop: int, seed: int
) -> None:
    """After a crash in the middle, a new plan ends at the same pool, and meanwhile nobody is misled."""
    server, desired, order = Server.with_pool(*before), specs(*after), random.Random(seed)
    first = server.readings()
    for write in plan(desired, server.now()).writes[:stop]:
        server.apply(write)
    for readings in follow(server, plan(desired, server.now()), order):
        assert readings <= first | {content(desired)}
    assert server.readings() == {content(desired)}
    assert len(server.slices) == len(desired)


def test_a_pool_that_isnt_there_is_created_with_the_first_generation() -> None:
    """All at once: the pool is complete with the last of them, whichever that is."""
    steps = plan(specs("ab", "c"), ())
    assert steps.generation == 1
    assert [[type(write) for write in stage] for stage in steps.stages] == [[Create, Create]]


def test_a_changed_device_keeps_the_generation() -> None:
    """One slice is written; the others and the generation stay."""
    server = Server.with_pool("ab", "cd", "ef", generation=7)
    steps = plan(specs("ab", "cx", "ef"), server.now())
    (write,) = steps.writes
    assert isinstance(write, Replace)
    assert write.spec.pool.generation == 7


def test_a_change_of_two_slices_is_a_new_generation() -> None:
    """Every slice gets it, the unchanged one as well."""
    steps = plan(specs("xb", "cx", "ef"), Server.with_pool("ab", "cd", "ef", generation=7).now())
    assert steps.generation == 8
    assert [write.spec.pool.generation for write in steps.writes if isinstance(write, Replace)] == [8, 8, 8]


def test_a_lost_slice_comes_back_alone() -> None:
    """The pool is incomplete without it, so nobody is misled by the same generation."""
    server = Server.with_pool("ab", "cd", "ef", generation=3)
    del server.slices[sorted(server.slices)[1]]
    (write,) = plan(specs("ab", "cd", "ef"), server.now()).writes
    assert isinstance(write, Create)
    assert (write.index, write.spec.pool.generation) == (1, 3)


def test_a_twin_goes_alone() -> None:
    """A slice that is there twice makes the pool one too many; the second goes."""
    server = Server.with_pool("ab", "cd")
    server.add(1, next(each.spec for name, each in server.slices.items() if name.startswith("00001")))
    (write,) = plan(specs("ab", "cd"), server.now()).writes
    assert isinstance(write, Delete)
    assert write.old.metadata.name.startswith("00001")


def test_obsolete_slices_go_first_and_surplus_ones_last() -> None:
    """Those of an old generation are seen by nobody; those of the present one hide only behind a complete new one."""
    server = Server.with_pool("ab", "cd", "ef", generation=5)
    server.add(0, spec("z", count=9, generation=4))
    steps = plan(specs("ab", "cd"), server.now())
    kinds = [{type(write) for write in stage} for stage in steps.stages]
    assert kinds == [{Delete}, {Replace}, {Delete}]


def test_a_pool_that_was_wiped_goes_on_with_the_next_generation() -> None:
    """Who has seen the old ones doesn't take the first new slice for one of them."""
    assert plan(specs("ab"), (), used=4).generation == 5


def test_a_generation_that_leaves_no_next_one_is_begun_again() -> None:
    """A stranger's slice with the highest number can't hide the pool for ever: it goes before anything is written."""
    server = Server.with_pool("ab")
    server.add(0, spec("z", count=1, generation=2**63 - 1))
    steps = plan(specs("ab"), server.now())
    assert {type(write) for write in steps.stages[0]} == {Delete}
    assert steps.generation == 1


def test_a_slice_for_another_node_is_replaced_by_a_new_one() -> None:
    """The node of a slice can't be changed: the server would refuse it."""
    server = Server.with_pool("ab")
    other = msgspec.structs.replace(specs("ab")[0], node_name=None, all_nodes=True)
    steps = plan([other], server.now())
    assert [[type(write) for write in stage] for stage in steps.stages] == [[Create], [Delete]]


def test_a_slice_named_by_another_driver_program_is_taken_over() -> None:
    """Names of another form belong to no position."""
    name = f"node-1-{DRIVER}-x7k2p"
    old = ResourceSlice(metadata=ObjectMeta(name=name), spec=spec("ab", generation=3))
    steps = plan(specs("ab"), [old])
    assert steps.generation == 4
    assert [[type(write) for write in stage] for stage in steps.stages] == [[Create], [Delete]]


def test_the_time_of_a_taint_that_stays_is_kept() -> None:
    """Also when something else of its slice changes; a new taint has none yet."""
    old, new = (
        DeviceTaint(key="k", effect="NoSchedule", time_added="2026-01-01T00:00:00Z"),
        DeviceTaint(key="k", effect="NoSchedule"),
    )
    server = Server()
    server.add(0, spec(Device(name="a", taints=(old,)), generation=1))
    assert plan([spec(Device(name="a", taints=(new,)))], server.now()).stages == ()
    added = DeviceTaint(key="l", effect="NoExecute")
    (write,) = plan([spec(Device(name="a", taints=(new, added)))], server.now()).writes
    assert isinstance(write, Replace)
    assert [taint.time_added for taint in write.spec.devices[0].taints] == ["2026-01-01T00:00:00Z", None]


def test_amounts_in_another_form_are_no_change() -> None:
    """A server writes 2048Mi as 2Gi."""
    server = Server()
    server.add(0, spec(Device(name="a", capacity={"memory": DeviceCapacity(value="2Gi")}), generation=1))
    assert (
        plan([spec(Device(name="a", capacity={"memory": DeviceCapacity(value="2048Mi")}))], server.now()).stages == ()
    )


def test_a_pool_that_isnt_offered_any_more_goes() -> None:
    """All its slices, whatever their generation."""
    server = Server.with_pool("ab", "cd")
    assert {type(write) for write in remove(server.now()).writes} == {Delete}
    assert remove(()).stages == ()
