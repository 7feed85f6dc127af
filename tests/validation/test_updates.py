"""Updates against what a running API server said about them, recorded once; and when two values are the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from draht.api.kinds import KINDS
from draht.api.meta import Object
from draht.api.reader import read_object
from draht.api.resource import AllocationResult, DeviceCapacity
from draht.manifests.defaults import defaulted
from draht.validation import ALL, DEFAULT, Gates, validate
from draht.validation.equality import same
from validation_objects import GOOD, NAMES
from validation_statuses import RULE_STATUS, STATUS

BY_NAME = dict(zip(NAMES, GOOD, strict=True))
LINES = (
    (Path(__file__).parents[1] / "data" / "validation" / "updates.jsonl").read_text(encoding="utf-8").splitlines()[1:]
)
KEPT = {"name": "updated", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
FIRST = {"claim": STATUS, "rule": RULE_STATUS}


def read(obj: Any) -> Object:
    """The object of a JSON value, with the defaults of a server."""
    return defaulted(read_object(json.dumps(obj).encode(), KINDS[obj["apiVersion"], obj["kind"]]))


def stored(good: str, *, allocated: bool = False) -> Any:
    """A good object as a server has it."""
    obj = json.loads(json.dumps(BY_NAME[good]))
    obj["metadata"] = KEPT | obj["metadata"]
    if allocated:
        obj["status"] = json.loads(json.dumps(STATUS))
    return obj


def changed(obj: Any, changes: list[tuple[list[Any], Any]]) -> Any:
    """A copy with other values."""
    obj = json.loads(json.dumps(obj))
    for (*path, last), value in changes:
        parent = obj
        for key in path:
            parent = parent[key]
        if value == "REMOVE":
            parent.pop(last, None)
        else:
            parent[last] = value
    return obj


@pytest.mark.parametrize("number", range(len(LINES)), ids=lambda number: str(number + 2))
def test_updates_have_the_errors_of_the_server(number: int) -> None:
    """Each recorded update has the same kinds of errors at the same paths, no more and no fewer."""
    case = json.loads(LINES[number])
    old = stored(case["good"], allocated=case["allocated"])
    sent = old if case["allocated"] or not case["subresource"] else {**old, "status": FIRST[case["good"]]}
    new = changed(sent, case["set"])
    errors = validate(read(new), gates=ALL, old=read(old), subresource=case["subresource"])
    assert sorted({f"{error.kind} {error.path}" for error in errors}) == case["errors"], case["set"]


def test_every_kind_of_object_is_updated_well_and_badly() -> None:
    """The records have updates of every kind that pass and that are refused, and of both statuses."""
    cases = [json.loads(line) for line in LINES]
    assert {case["good"] for case in cases if case["errors"]} == set(NAMES)
    assert {case["good"] for case in cases if not case["errors"]} == set(NAMES)
    assert {(case["good"], case["allocated"]) for case in cases if case["subresource"]} == {
        ("claim", False),
        ("claim", True),
        ("rule", False),
    }


def test_nothing_is_added_to_what_is_being_deleted() -> None:
    """Neither finalizers nor users of a claim; what is there may go."""
    old = stored("claim", allocated=True)
    old["metadata"] |= {"deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["example.com/a", "example.com/b"]}
    more = changed(old, [(["metadata", "finalizers"], ["example.com/a", "example.com/c"])])
    fewer = changed(old, [(["metadata", "finalizers"], ["example.com/a"])])
    assert [str(error.path) for error in validate(read(more), old=read(old))] == ["metadata.finalizers"]
    assert validate(read(fewer), old=read(old)) == ()
    user = {"resource": "pods", "name": "q", "uid": "w"}
    joined = changed(old, [(["status", "reservedFor"], [*STATUS["reservedFor"], user])])
    left = changed(old, [(["status", "reservedFor"], STATUS["reservedFor"][:1])])
    found = validate(read(joined), old=read(old), subresource="status")
    assert [(error.kind, error.path) for error in found] == [("Forbidden", "status.reservedFor")]
    assert validate(read(left), old=read(old), subresource="status") == ()


def test_an_update_keeps_fields_of_features_that_were_turned_off() -> None:
    """What the object that is there has isn't dropped, and so is judged."""
    old = stored("partitions")
    bad = [(["spec", "devices", 0, "consumesCounters", 0, "compatibilityGroups"], ["A"])]
    assert [error.kind for error in validate(read(changed(old, bad)), old=read(old))] == ["Invalid"]
    without = changed(old, [(["spec", "devices", 0, "consumesCounters", 0, "compatibilityGroups"], "REMOVE")])
    assert validate(read(changed(old, bad)), old=read(without)) == ()
    assert validate(read(changed(old, bad)), old=read(old), gates=Gates(device_compatibility_groups=True)) != ()


def test_what_a_server_fills_in_is_no_change() -> None:
    """Mode, count and operator may be left out of what is sent."""
    changes = [
        (["spec", "devices", "requests", 1, "firstAvailable", 1, "count"], 1),
        (["spec", "devices", "requests", 0, "exactly", "allocationMode"], "ExactCount"),
        (["spec", "devices", "requests", 0, "exactly", "tolerations", 1, "operator"], "Equal"),
    ]
    old = read(changed(stored("claim"), changes))
    sent = read_object(json.dumps(stored("claim")).encode(), KINDS["resource.k8s.io/v1", "ResourceClaim"])
    assert validate(sent, gates=ALL, old=old) == ()


def test_an_update_of_another_kind_is_not_judged() -> None:
    """A request can't do that."""
    assert validate(read(BY_NAME["claim"]), old=read(BY_NAME["class"])) == ()


SAME = [
    (DeviceCapacity(value="1Gi"), DeviceCapacity(value="1024Mi"), True),
    (DeviceCapacity(value="1"), DeviceCapacity(value=1), True),
    (DeviceCapacity(value="1"), DeviceCapacity(value="1001m"), False),
    (DeviceCapacity(value="?"), DeviceCapacity(value="?"), True),
    (
        AllocationResult(allocation_timestamp="2026-01-01T00:00:00Z"),
        AllocationResult(allocation_timestamp="2026-01-01T01:00:00+01:00"),
        True,
    ),
    (AllocationResult(allocation_timestamp="then"), AllocationResult(allocation_timestamp="now"), False),
    (AllocationResult(), AllocationResult(allocation_timestamp="2026-01-01T00:00:00Z"), False),
    ("a", "a", True),
    (None, "", False),
]


@pytest.mark.parametrize(("left", "right", "expected"), SAME, ids=range(len(SAME)))
def test_values_are_compared_as_the_server_compares_them(left: object, right: object, expected: bool) -> None:
    """Amounts and moments by value."""
    assert same(left, right) is expected


def test_empty_lists_are_told_from_none_where_the_server_does() -> None:
    """In attributes, and where devices and shared counters exclude each other."""
    devices = read(BY_NAME["slice"])
    counters = read(BY_NAME["counters"])
    assert [error.path for error in validate(counters, gates=ALL, empty=["spec.devices"])] == ["spec"]
    assert [error.path for error in validate(devices, gates=ALL, empty=["spec.sharedCounters"])] == ["spec"]
    none = Gates(partitionable_devices=False, list_type_attributes=True, optional_node_operations=True)
    assert [error.path for error in validate(devices, gates=none, empty=["spec.sharedCounters"])] == []
    bare = read(changed(BY_NAME["slice"], [(["spec", "devices", 0, "attributes", "ports"], {})]))
    path = "spec.devices[0].attributes[ports]"
    assert {error.path for error in validate(bare, gates=ALL, empty=[f"{path}.ints"])} == {path, f"{path}.ints"}
    assert path in {error.path for error in validate(bare, gates=DEFAULT, empty=[f"{path}.ints"])}
