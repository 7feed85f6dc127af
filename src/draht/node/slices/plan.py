"""Which writes lead from the slices that are there to those that should be there.

Owns the order of writes and the generations, so that who reads a pool meanwhile sees the old devices, none, or the new
ones, never some of both. A pool is what all slices of its highest generation say, if they are as many as they say
themselves (``k8s.io/dynamic-resource-allocation/structured`` at v0.37.2). Pure.

The generation stays where a reader can't be misled: one slice changes and none comes or goes; slices that were missing
come back; slices that are too many go. Anything else gets the next generation, which makes the pool incomplete with the
first write and complete with the last, in any order. Incomplete pools make requests for all devices fail, so those
writes are one stage and may be done side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from draht.api.resource import ResourceSlice, ResourceSliceSpec
from draht.node.slices.content import fingerprint, with_known_times

__all__ = ["Create", "Delete", "Plan", "Replace", "Same", "Write", "plan", "remove", "same", "slice_index"]

Same = Callable[[ResourceSliceSpec, ResourceSliceSpec], bool]

_GENERATIONS: Final = 2**62
"""Above this a pool begins again: somebody has used generations up, and there must be a next one."""
_NAME: Final = re.compile(r"([0-9a-f]{5,15})-(.+)")


@dataclass(frozen=True, slots=True)
class Create:
    """A new slice; its name is made by the server from the index."""

    index: int
    spec: ResourceSliceSpec


@dataclass(frozen=True, slots=True)
class Replace:
    """An existing slice gets another spec, if it is still as it was seen."""

    old: ResourceSlice
    spec: ResourceSliceSpec


@dataclass(frozen=True, slots=True)
class Delete:
    """An existing slice goes, if it is still as it was seen."""

    old: ResourceSlice


Write = Create | Replace | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with one pool.

    Attributes:
        stages: Writes of one stage may be done in any order, those of the next after all of them.
        generation: What the pool has when all is done.
    """

    stages: tuple[tuple[Write, ...], ...]
    generation: int

    @property
    def writes(self) -> tuple[Write, ...]:
        """All writes, in an order that is allowed."""
        return tuple(write for stage in self.stages for write in stage)


def same(desired: ResourceSliceSpec, existing: ResourceSliceSpec) -> bool:
    """Whether a slice means what it should; the generation is no part of that."""
    return fingerprint(desired) == fingerprint(existing)


def slice_index(each: ResourceSlice) -> int | None:
    """The position in its pool that a slice has by its name; None for a name of another form."""
    match = _NAME.fullmatch(each.metadata.name)
    if match is None or not match.group(2).startswith(f"{each.spec.driver}-"):
        return None
    return int(match.group(1), 16)


def plan(
    desired: Sequence[ResourceSliceSpec], existing: Sequence[ResourceSlice], *, same: Same = same, used: int = 0
) -> Plan:
    """Make one pool as it should be.

    Args:
        desired: Its slices in their order, with the number of slices; generations are ignored.
        existing: All slices of that driver and pool that belong to the publisher, of any generation.
        same: Whether an existing slice will do.
        used: The highest generation the pool had that may not be on the server any more.
    """
    current = max((each.spec.pool.generation for each in existing), default=0)
    obsolete: tuple[Write, ...] = ()
    if current > _GENERATIONS:
        obsolete, existing, current, used = tuple(map(Delete, existing)), (), 0, 0
    live = sorted(
        (each for each in existing if each.spec.pool.generation == current), key=lambda one: one.metadata.name
    )
    obsolete += tuple(Delete(each) for each in existing if each.spec.pool.generation < current)
    specs = [with_known_times(spec, [each.spec for each in live]) for spec in desired]
    matched: dict[int, ResourceSlice] = {}
    surplus: list[ResourceSlice] = []
    for each in live:
        index = slice_index(each)
        if index is None or index >= len(specs) or index in matched or not _may_become(each.spec, specs[index]):
            surplus.append(each)
        else:
            matched[index] = each
    changed = [index for index, each in matched.items() if not same(specs[index], each.spec)]
    missing = [index for index in range(len(specs)) if index not in matched]
    in_place = _in_place(len(specs), live, changed=len(changed), missing=len(missing), surplus=len(surplus))
    generation = current if in_place else max(current, used) + 1
    specs = [_of_generation(spec, generation) for spec in specs]
    replaced = tuple(Replace(matched[index], specs[index]) for index in (changed if in_place else sorted(matched)))
    created = tuple(Create(index, specs[index]) for index in missing)
    deleted = tuple(Delete(each) for each in surplus)
    stages = (obsolete, replaced, created, deleted) if in_place else (obsolete, replaced + created, deleted)
    return Plan(tuple(stage for stage in stages if stage), generation)


def remove(existing: Sequence[ResourceSlice]) -> Plan:
    """Take a pool away."""
    deleted = tuple(Delete(each) for each in existing)
    generation = max((each.spec.pool.generation for each in existing), default=0)
    return Plan((deleted,) if deleted else (), generation)


def _in_place(count: int, live: Sequence[ResourceSlice], *, changed: int, missing: int, surplus: int) -> bool:
    """Whether readers can't be misled by writes of the present generation."""
    if not live:
        return False
    agreed = all(each.spec.pool.resource_slice_count == count for each in live)
    if missing and surplus:
        return False
    if missing:
        # Incomplete now, and until the last one is created, which comes after all changes.
        return agreed
    if surplus:
        # Too many now, and until the last one is gone, which comes after all changes.
        return agreed
    return changed <= 1


def _may_become(old: ResourceSliceSpec, new: ResourceSliceSpec) -> bool:
    """Fields that an update may not change."""
    return (old.driver, old.pool.name, old.node_name) == (new.driver, new.pool.name, new.node_name)


def _of_generation(spec: ResourceSliceSpec, generation: int) -> ResourceSliceSpec:
    return msgspec.structs.replace(spec, pool=msgspec.structs.replace(spec.pool, generation=generation))
