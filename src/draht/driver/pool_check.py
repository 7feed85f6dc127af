"""Which devices of a pool can't be published, by the rules of the API and of those who read pools.

A server refuses a whole slice for one bad device, and a scheduler ignores a whole pool for two devices of one name.
Here the bad device alone is left out, with its errors, before anything is written. Rules across the slices of a pool:
``k8s.io/dynamic-resource-allocation/structured`` at v0.37.2; rules of a slice: `draht.validation`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from draht.api.resource import CounterSet, ResourcePool, ResourceSlice, ResourceSliceSpec
from draht.api.resource import Device as WireDevice
from draht.driver.framework import Pool
from draht.driver.slices import is_local, pool_name
from draht.validation import validate
from draht.validation.gates import ALL
from draht.validation.limits import COUNTER_SETS, DEVICES_WITH_ADVANCED_FEATURES

__all__ = ["CheckedPool", "LeftOut", "check_pool"]

_INDEX: Final = re.compile(r"spec\.(?:devices|sharedCounters)\[(\d+)\](?:\.(.*))?")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What isn't published.

    Args:
        pool: Name of the pool as it is published.
        name: Name of the device or counter set; empty for the whole pool.
        message: Why, as a sentence without its subject; with the field.
    """

    pool: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckedPool:
    """A pool as it can be published, and what was left out of it; None where nothing of it can be."""

    pool: Pool | None
    left_out: tuple[LeftOut, ...]


def check_pool(driver: str, pool: Pool, *, node_name: str) -> CheckedPool:
    """Judge a pool with every feature on: what a server's gates do to it, that server must say."""
    name = pool_name(pool, node_name)
    bare = ResourceSliceSpec(
        driver=driver,
        pool=ResourcePool(name=name, generation=1, resource_slice_count=1),
        node_name=node_name if is_local(pool) else None,
        all_nodes=True if pool.all_nodes else None,
        node_selector=pool.node_selector,
    )
    whole = validate(ResourceSlice(spec=bare), gates=ALL)
    wrong = [error for error in whole if not error.path.startswith("metadata")]
    if wrong:
        return CheckedPool(None, tuple(LeftOut(name, "", str(error)) for error in wrong))
    left_out: list[LeftOut] = []
    bad_sets = dict(_bad_sets(bare, pool.counter_sets))
    left_out += [LeftOut(name, each, message) for each, message in bad_sets.items()]
    sets = tuple(each for each in pool.counter_sets if each.name not in bad_sets)
    devices = [offered.device for group in pool.groups for offered in group]
    bad = dict(_bad_devices(bare, devices, sets))
    left_out += [LeftOut(name, devices[position].name, message) for position, message in sorted(bad.items())]
    positions = itertools.count()
    groups = (tuple(offered for offered in group if next(positions) not in bad) for group in pool.groups)
    kept = tuple(group for group in groups if group)
    return CheckedPool(replace(pool, groups=kept, counter_sets=sets), tuple(left_out))


def _bad_sets(bare: ResourceSliceSpec, sets: Sequence[CounterSet]) -> Iterable[tuple[str, str]]:
    names: set[str] = set()
    for at in range(0, len(sets), COUNTER_SETS):
        part = sets[at : at + COUNTER_SETS]
        spec = msgspec.structs.replace(bare, shared_counters=tuple(part))
        for index, message in _by_index(spec).items():
            yield part[index].name, message
    for each in sets:
        if each.name in names:
            yield each.name, "there are two counter sets of this name"
        names.add(each.name)


def _bad_devices(
    bare: ResourceSliceSpec, devices: Sequence[WireDevice], sets: Sequence[CounterSet]
) -> Iterable[tuple[int, str]]:
    """Position of a device → why it can't be published; of two devices of one name the first stays."""
    names: set[str] = set()
    counters = {each.name: each.counters for each in sets}
    for at in range(0, len(devices), DEVICES_WITH_ADVANCED_FEATURES):
        part = devices[at : at + DEVICES_WITH_ADVANCED_FEATURES]
        found = _by_index(msgspec.structs.replace(bare, devices=tuple(part)))
        for index, device in enumerate(part):
            if device.name in names:
                yield at + index, "there is another device of this name in the pool"
            elif index in found:
                yield at + index, found[index]
            else:
                names.add(device.name)
                for consumption in device.consumes_counters:
                    known = counters.get(consumption.counter_set)
                    unknown = None if known is None else sorted(set(consumption.counters) - set(known))
                    if unknown is None:
                        yield at + index, f'it consumes counter set "{consumption.counter_set}", which the pool hasn\'t'
                    elif unknown:
                        yield at + index, f'counter set "{consumption.counter_set}" has no counter "{unknown[0]}"'


def _by_index(spec: ResourceSliceSpec) -> dict[int, str]:
    """Index of the device or counter set → its errors as one text."""
    found: dict[int, list[str]] = {}
    for error in validate(ResourceSlice(spec=spec), gates=ALL):
        match = _INDEX.match(error.path)
        if match:
            path = match.group(2)
            found.setdefault(int(match.group(1)), []).append(f"{path}: {error.text}" if path else error.text)
    return {index: "; ".join(texts) for index, texts in found.items()}
