from __future__ import annotations

from collections.abc import Callable

import pytest

from draht.api.meta import ObjectMeta
from draht.api.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from draht.node.slices.memory import SliceMemory


def each(uid: str, version: int) -> ResourceSlice:
    """A slice in one of its versions."""
    spec = ResourceSliceSpec(driver="d", pool=ResourcePool(name="p", resource_slice_count=1), all_nodes=True)
    return ResourceSlice(metadata=ObjectMeta(name=uid, uid=uid, resource_version=str(version)), spec=spec)


def view(memory: SliceMemory, version: int, *stored: ResourceSlice) -> list[str]:
    """UID and version of what is there."""
    found = memory.view(stored, str(version))
    return sorted(f"{one.metadata.uid}{one.metadata.resource_version}" for one in found)


@pytest.mark.parametrize(
    ("learn", "version", "stored", "expected"),
    [
        pytest.param(lambda m: m.wrote(each("a", 7)), 5, [], ["a7"], id="created, not shown yet"),
        pytest.param(lambda m: m.wrote(each("a", 7)), 5, [each("a", 5)], ["a7"], id="changed, not shown yet"),
        pytest.param(lambda m: m.wrote(each("a", 7)), 7, [each("a", 7)], ["a7"], id="shown"),
        pytest.param(lambda m: m.wrote(each("a", 7)), 9, [each("a", 9)], ["a9"], id="changed by others since"),
        pytest.param(lambda m: m.wrote(each("a", 7)), 9, [], [], id="deleted by others since"),
        pytest.param(lambda m: m.wrote(each("a", 10)), 9, [], ["a10"], id="versions are numbers"),
        pytest.param(lambda m: m.removed(each("a", 5)), 5, [each("a", 5), each("b", 4)], ["b4"], id="deleted"),
        pytest.param(lambda m: m.listed([each("b", 6)], "8"), 5, [each("a", 5)], ["b6"], id="asked, newer"),
        pytest.param(lambda m: m.listed([each("b", 6)], "8"), 9, [each("a", 9)], ["a9"], id="asked, older"),
        pytest.param(
            lambda m: (m.wrote(each("a", 7)), m.listed([], "8")), 5, [each("a", 5)], [], id="asked, and it isn't there"
        ),
        pytest.param(
            lambda m: (m.listed([], "6"), m.wrote(each("a", 7))), 5, [], ["a7"], id="written after it was asked"
        ),
        pytest.param(lambda m: m.wrote(each("a", 7)), 0, [], ["a7"], id="a watch that has shown nothing"),
    ],
)
def test_what_is_there_is_the_newest_that_is_known(
    learn: Callable[[SliceMemory], object], version: int, stored: list[ResourceSlice], expected: list[str]
) -> None:
    """A watch that lags, own writes, and answers to direct questions."""
    memory = SliceMemory(lambda: 0.0)
    learn(memory)
    assert view(memory, version, *stored) == expected
    assert view(memory, version, *stored) == expected, "looking changes nothing"


def test_nothing_is_kept_of_slices_that_are_gone() -> None:
    """An agent that runs for a year doesn't grow."""
    memory = SliceMemory(lambda: 0.0)
    for number in range(100):
        memory.wrote(each(f"s{number}", number))
        memory.removed(each(f"s{number}", number))
    view(memory, 100)
    assert not memory._gone
    assert not memory._written


def test_writes_are_forgotten_once_the_watch_has_shown_them() -> None:
    """And until then it is known since when they wait."""
    now = [5.0]
    memory = SliceMemory(lambda: now[0])
    memory.wrote(each("a", 7))
    now[0] = 6.0
    memory.wrote(each("b", 8))
    assert memory.oldest() == 5.0
    assert view(memory, 7, each("a", 7)) == ["a7", "b8"]
    assert memory.oldest() == 6.0
    assert view(memory, 8, each("a", 7), each("b", 8)) == ["a7", "b8"]
    assert memory.oldest() is None
