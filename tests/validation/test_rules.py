"""Each rule alone: a good object with one change gets exactly the errors that the server gives, in its order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from draht.api.kinds import KINDS
from draht.api.meta import Object
from draht.api.reader import read_object
from draht.validation import ALL, DEFAULT, Gates, dropped_fields, validate, written_path
from validation_objects import GOOD, NAMES

BY_NAME = dict(zip(NAMES, GOOD, strict=True))
RULES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "validation" / "rules.yaml").read_text(encoding="utf-8")
)
EXACT = "spec.devices.requests[0].exactly"
DEVICE = "spec.devices[0]"


def read(obj: Any) -> Object:
    """The object of a JSON value, read as a server reads it."""
    return read_object(json.dumps(obj).encode(), KINDS[obj["apiVersion"], obj["kind"]])


def changed(name: str, changes: dict[str, Any]) -> Object:
    """A good object with other values at dotted paths."""
    obj = json.loads(json.dumps(BY_NAME[name]))
    for dotted, value in changes.items():
        *path, last = [int(key) if key.isdecimal() else key for key in dotted.split(".")]
        parent: Any = obj
        for key in path:
            parent = parent[key]
        if value == "REMOVE":
            del parent[last]
        elif isinstance(parent, list) and last == len(parent):
            parent.append(value)
        else:
            parent[last] = value
    return read(obj)


def found(obj: Object, gates: Gates = ALL) -> list[str]:
    """The errors of an object as ``Kind path``."""
    return [f"{error.kind} {error.path}" for error in validate(obj, gates=gates)]


@pytest.mark.parametrize("name", NAMES)
def test_a_good_object_has_no_errors(name: str) -> None:
    """Objects with nearly every field are accepted with every feature on."""
    assert validate(read(BY_NAME[name]), gates=ALL) == ()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule['good']}: {json.dumps(rule['set'])[:80]}")
def test_a_rule_is_upstreams(rule: dict[str, Any]) -> None:
    """One change gives these kinds of errors at these paths, in this order."""
    assert found(changed(rule["good"], rule["set"])) == rule["errors"]


def _requests(count: int) -> list[Any]:
    return [{"name": f"r{number}", "exactly": {"deviceClassName": "a"}} for number in range(count)]


def _devices(count: int, **fields: Any) -> list[Any]:
    return [{"name": f"d{number}", **fields} for number in range(count)]


TRUE = {"cel": {"expression": "true"}}
TAINT = {"key": "a", "effect": "None"}
ONE = {"value": "1"}
EXPENSIVE = (
    "device.attributes.all(a, device.attributes.all(b, device.attributes[a].all(i, device.attributes[b].all(j,"
    " i.matches(j)))))"
)
CLAIMED = {"spec.devices.constraints": "REMOVE", "spec.devices.config": "REMOVE"}
LIMITS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("claim", {"metadata.annotations": {"a": "x" * (2**18 - 1)}}, []),
    ("claim", {"metadata.annotations": {"a": "x" * 2**18}}, ["TooLong metadata.annotations"]),
    ("claim", {"spec.devices.requests": _requests(32), **CLAIMED}, []),
    ("claim", {"spec.devices.requests": _requests(33), **CLAIMED}, ["TooMany spec.devices.requests"]),
    ("class", {"spec.selectors": [TRUE] * 32}, []),
    ("class", {"spec.selectors": [TRUE] * 33}, ["TooMany spec.selectors"]),
    ("class", {"spec.selectors.0.cel.expression": "true" + " " * 10236}, []),
    ("class", {"spec.selectors.0.cel.expression": "true" + " " * 10237}, ["TooLong spec.selectors[0].cel.expression"]),
    ("class", {"spec.selectors.0.cel.expression": EXPENSIVE}, ["Forbidden spec.selectors[0].cel.expression"]),
    ("class", {"spec.config.0.opaque.parameters": {"a": "x" * 10232}}, []),
    ("class", {"spec.config.0.opaque.parameters": {"a": "x" * 10233}}, ["TooLong spec.config[0].opaque.parameters"]),
    ("counters", {"spec.sharedCounters.0.counters": {f"c{n}": ONE for n in range(32)}}, []),
    (
        "counters",
        {"spec.sharedCounters.0.counters": {f"c{n}": ONE for n in range(33)}},
        ["TooMany spec.sharedCounters[0].counters"],
    ),
    ("slice", {"spec.devices": _devices(128)}, []),
    ("slice", {"spec.devices": _devices(129)}, ["TooMany spec.devices"]),
    ("slice", {"spec.devices": _devices(64, taints=[TAINT])}, []),
    ("slice", {"spec.devices": _devices(65, taints=[TAINT])}, ["TooMany spec.devices"]),
    ("slice", {"spec.devices.1.attributes": {f"a{n}": {"int": n} for n in range(32)}}, []),
    ("slice", {"spec.devices.1.attributes": {f"a{n}": {"int": n} for n in range(33)}}, ["Invalid spec.devices[1]"]),
    ("slice", {"spec.devices.1.attributes": {"a": {"ints": [1] * 48}}}, []),
    ("slice", {"spec.devices.1.attributes": {"a": {"ints": [1] * 49}}}, ["Invalid spec.devices[1]"]),
    ("slice", {"spec.devices.0.taints": [TAINT] * 16}, []),
    ("slice", {"spec.devices.0.taints": [TAINT] * 17}, ["TooMany spec.devices[0].taints"]),
]


@pytest.mark.parametrize(("name", "changes", "errors"), LIMITS, ids=range(len(LIMITS)))
def test_a_limit_is_upstreams(name: str, changes: dict[str, Any], errors: list[str]) -> None:
    """What is just small enough is accepted; one more isn't."""
    assert found(changed(name, changes)) == errors


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
MEMORY = "spec.devices.0.capacity.memory"
# Each was judged differently once, and by a running API server.
REGRESSIONS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("claim", {"metadata.ownerReferences": [OWNER, OWNER]}, []),
    ("claim", {"metadata.ownerReferences": [OWNER, OWNER | {"name": "q"}]}, ["Invalid metadata.ownerReferences"]),
    (
        "claim",
        {"metadata.ownerReferences": [OWNER, OWNER, {"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
        ["Required metadata.ownerReferences[1].uid"],
    ),
    ("class", {"metadata.generateName": "a/b"}, ["Invalid metadata.generateName"]),
    ("class", {"metadata.generateName": "A_", "metadata.name": "a"}, []),
    (
        "class",
        {"metadata.generateName": "a/b", "spec.extendedResourceName": "x"},
        ["Invalid spec.extendedResourceName"],
    ),
    ("slice", {"spec.devices.0.capacity.bandwidth": {}}, []),
    ("counters", {"spec.sharedCounters.0.counters.memory": {}}, []),
    (
        "slice",
        {f"{MEMORY}.requestPolicy.validRange.min": "REMOVE"},
        ["Required spec.devices[0].capacity[memory].requestPolicy.validRange.min"],
    ),
]


@pytest.mark.parametrize(("name", "changes", "errors"), REGRESSIONS, ids=range(len(REGRESSIONS)))
def test_what_was_judged_differently_once_is_judged_as_the_server_does(
    name: str, changes: dict[str, Any], errors: list[str]
) -> None:
    """Owners that are there twice, names of classes that are made up, amounts that are left out."""
    assert sorted(set(found(changed(name, changes)))) == errors


def test_fields_of_features_that_are_off_are_not_judged() -> None:
    """The server drops them first, so errors in them don't count, and what is missing then does."""
    groups = {"spec.devices.0.consumesCounters.0.compatibilityGroups": ["A"]}
    path = "spec.devices[0].consumesCounters[0].compatibilityGroups"
    assert found(changed("partitions", groups)) == [f"Invalid {path}[0]"]
    assert found(changed("partitions", groups), DEFAULT) == []
    assert path in dropped_fields(changed("partitions", groups))
    assert found(read(BY_NAME["slice"]), DEFAULT) == [
        f"Invalid spec.devices[0].attributes[{name}]" for name in ("flags", "links", "ports", "releases")
    ]


@pytest.mark.parametrize("name", NAMES)
def test_with_every_feature_nothing_is_dropped(name: str) -> None:
    """And with none of the optional ones, every field behind a gate is."""
    obj = read(BY_NAME[name])
    assert dropped_fields(obj, gates=ALL) == ()
    none = Gates(**dict.fromkeys(Gates.__dataclass_fields__, False))
    assert validate(obj, gates=none) is not None
    assert len(dropped_fields(obj, gates=none)) >= len(dropped_fields(obj))


def test_older_versions_are_judged_as_v1() -> None:
    """A v1beta1 object has the errors of its v1 form, at paths that can be written as the file has them."""
    request = {"name": "a", "deviceClassName": "", "count": -1}
    spec: Any = {"devices": {"requests": [request]}}
    claim = read(
        {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "metadata": {"name": "a"}, "spec": spec}
    )
    assert found(claim) == [f"Required {EXACT}.deviceClassName", f"Invalid {EXACT}.count"]
    assert written_path(claim, f"{EXACT}.count") == "spec.devices.requests[0].count"
    basic = {"attributes": {"a-b": {"int": 1}}}
    pool = {"name": "p", "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": "x", "basic": basic}]}
    slice_ = read(
        {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice", "metadata": {"name": "a"}, "spec": spec}
    )
    assert found(slice_) == [f"Invalid {DEVICE}.attributes"]
    assert written_path(slice_, f"{DEVICE}.attributes") == f"{DEVICE}.basic.attributes"
    assert written_path(slice_, f"{DEVICE}.name") == f"{DEVICE}.name"


def test_an_expression_shows_what_is_wrong() -> None:
    """The error of a selector has the picture with the caret and the first hint."""
    (error,) = validate(changed("class", {"spec.selectors.0.cel.expression": 'device.driver = "x"'}))
    assert error.hint == "compare with =="
    assert error.picture is not None
    assert "  |               ^" in error.picture


STATUS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"reservedFor": [{"resource": "pods", "name": "p", "uid": ""}]}, ["Required status.reservedFor[0].uid"]),
    (
        {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}] * 2},
        ["Duplicate status.reservedFor[1]"],
    ),
    ({"allocation": None}, ["Invalid status.devices[0]", "Forbidden status.reservedFor"]),
    ({"allocation.devices.results.0.request": "none"}, ["Invalid status.allocation.devices.results[0].request"]),
    (
        {"allocation.devices.results.0.driver": ""},
        ["Invalid status.devices[0]", "Required status.allocation.devices.results[0].driver"],
    ),
    (
        {"allocation.devices.results.0.shareID": "A"},
        ["Invalid status.devices[0]", "Invalid status.allocation.devices.results[0].shareID"],
    ),
    ({"allocation.devices.config.0.source": "Me"}, ["NotSupported status.allocation.devices.config[0].source"]),
    ({"allocation.nodeSelector.nodeSelectorTerms": []}, ["Required status.allocation.nodeSelector.nodeSelectorTerms"]),
    ({"devices.0.networkData.ips": ["1.2.3.4"]}, ["Invalid status.devices[0].networkData.ips[0]"]),
    ({"devices.0.networkData.ips": ["2001:DB8::1/64"]}, ["Invalid status.devices[0].networkData.ips[0]"]),
    ({"devices.0.networkData.interfaceName": "x" * 257}, ["TooLong status.devices[0].networkData.interfaceName"]),
    ({"devices.0.conditions.0.status": "Yes"}, ["NotSupported status.devices[0].conditions[0].status"]),
    ({"devices.0.conditions.0.reason": "a b"}, ["Invalid status.devices[0].conditions[0].reason"]),
    ({"devices.0.data": [1]}, ["Invalid status.devices[0].data"]),
]
ALLOCATED: dict[str, Any] = {
    "allocation": {
        "devices": {
            "results": [{"request": "one", "driver": "gpu.example.com", "pool": "a/b", "device": "gpu-0"}],
            "config": [{"source": "FromClass", "opaque": {"driver": "gpu.example.com", "parameters": {}}}],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
        },
    },
    "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    "devices": [
        {
            "driver": "gpu.example.com",
            "pool": "a/b",
            "device": "gpu-0",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Up"}
            ],
            "data": {"a": 1},
            "networkData": {"interfaceName": "eth0", "ips": ["10.0.0.1/24", "2001:db8::1/64"]},
        }
    ],
}


@pytest.mark.parametrize(("changes", "errors"), STATUS, ids=range(len(STATUS)))
def test_a_status_is_judged(changes: dict[str, Any], errors: list[str]) -> None:
    """Allocation, users and devices of a claim that was just allocated."""
    status = json.loads(json.dumps(ALLOCATED))
    for dotted, value in changes.items():
        *path, last = [int(key) if key.isdecimal() else key for key in dotted.split(".")]
        parent: Any = status
        for key in path:
            parent = parent[key]
        parent[last] = value
    assert found(changed("claim", {"status": status})) == errors


def test_other_kinds_have_no_errors() -> None:
    """An object of another group isn't judged."""
    assert validate(read({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A"}, "spec": {}})) == ()
