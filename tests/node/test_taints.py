from __future__ import annotations

import itertools

import msgspec
import pytest

from draht.allocator import Snapshot
from draht.api.core import Node
from draht.api.meta import ObjectMeta
from draht.api.resource import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from draht.driver.framework import Health, Offer, Offered, Pool
from draht.node.taints import rules_for, selects, with_health

NODE = Node(metadata=ObjectMeta(name="n"))
BAD = DeviceTaint(key="gpu.example.com/unhealthy", value="xid-79", effect="NoExecute")
NOTE = DeviceTaint(key="gpu.example.com/hot", effect="None")


def offer(*devices: Device, name: str = "") -> Offer:
    """A pool of devices."""
    return Offer(pools=(Pool(groups=tuple((Offered(device=device),) for device in devices), name=name),))


def taints(found: Offer) -> list[tuple[DeviceTaint, ...]]:
    """The taints of each device."""
    return [offered.device.taints for offered in found.devices().values()]


def test_bad_health_taints_its_device_and_no_other() -> None:
    """The pool's name is part of the device's; who isn't offered is passed over."""
    found = offer(Device(name="a"), Device(name="b"))
    assert taints(with_health(found, [Health(device="b", state="Unhealthy", taint=BAD)])) == [(), (BAD,)]
    assert with_health(found, [Health(device="b", pool="other", taint=BAD), Health(device="z", taint=BAD)]) == found
    named = offer(Device(name="b"), name="other")
    assert taints(with_health(named, [Health(device="b", pool="other", taint=BAD)])) == [(BAD,)]


def test_health_without_a_taint_changes_nothing() -> None:
    """Not even the object."""
    found = offer(Device(name="a"))
    assert with_health(found, [Health(device="a", state="Unhealthy", message="hot")]) is found


def test_taints_of_driver_and_health_are_joined() -> None:
    """One for each key and effect, the newer value; the same health twice is one taint."""
    own = DeviceTaint(key=BAD.key, value="old", effect=BAD.effect)
    found = with_health(offer(Device(name="a", taints=(own, NOTE))), [Health(device="a", taint=BAD)] * 2)
    assert taints(found) == [(BAD, NOTE)]


def test_of_too_many_taints_those_stay_that_act() -> None:
    """A device takes 16; a note must not push out what keeps claims away."""
    notes = [Health(device="a", taint=msgspec.structs.replace(NOTE, key=f"a.example/{n}")) for n in range(20)]
    (found,) = taints(with_health(offer(Device(name="a")), [*notes, Health(device="a", taint=BAD)]))
    assert len(found) == 16
    assert found[0] == BAD


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        (DeviceTaintSelector(), True),
        (DeviceTaintSelector(driver="d"), True),
        (DeviceTaintSelector(driver="e"), False),
        (DeviceTaintSelector(driver="d", pool="p", device="a"), True),
        (DeviceTaintSelector(driver="d", pool="p", device="b"), False),
        (DeviceTaintSelector(pool="q"), False),
        (DeviceTaintSelector(device="a"), True),
        (DeviceTaintSelector(device=""), False),
    ],
)
def test_a_rule_is_about_devices_that_all_its_fields_match(
    selector: DeviceTaintSelector | None, expected: bool
) -> None:
    """No selector matches nothing, an empty one everything."""
    assert selects(selector, driver="d", pool="p", device="a") is expected


def test_rules_taint_the_devices_that_the_allocator_taints() -> None:
    """For every combination of fields, the same devices as the allocator, which merges rules into slices."""
    rules = []
    for number, (driver, pool, device) in enumerate(
        itertools.product((None, "d.example", "e.example"), (None, "p", "q"), (None, "a", "b"))
    ):
        selector = DeviceTaintSelector(driver=driver, pool=pool, device=device)
        spec = DeviceTaintRuleSpec(
            device_selector=selector, taint=DeviceTaint(key=f"rule.example/{number}", effect="NoSchedule")
        )
        rules.append(DeviceTaintRule(metadata=ObjectMeta(name=f"rule-{number}"), spec=spec))
    for driver, pool, device in itertools.product(("d.example", "e.example"), "pq", "ab"):
        spec_of = ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool, resource_slice_count=1),
            all_nodes=True,
            devices=(Device(name=device),),
        )
        slices = [ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec_of)]
        (pool_seen,) = Snapshot.of(slices=slices, taint_rules=rules, nodes=[NODE]).row("n").pools
        expected = {key for key, _, _ in pool_seen.taints[0]}
        found = {rule.spec.taint.key for rule in rules_for(rules, driver=driver, pool=pool, device=device)}
        assert found == expected
