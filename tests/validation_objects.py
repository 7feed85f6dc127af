"""Objects of ``resource.k8s.io`` as JSON values: good ones of every shape, and ones that are changed at random."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, TypeAlias

__all__ = [
    "AMOUNTS",
    "GOOD",
    "KINDS",
    "NAMES",
    "NODE_SELECTOR",
    "TEXTS",
    "at",
    "changed",
    "is_amount",
    "places",
    "random_object",
]

Json: TypeAlias = Any

_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com", "labels": {"a": "b", "example.com/c": ""}, "annotations": {"X": "y"}},
    "spec": {
        "selectors": [
            {"cel": {"expression": 'device.driver == "gpu.example.com"'}},
            {"cel": {"expression": 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'}},
        ],
        "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"kind": "Config", "deep": {"x": [1]}}}}],
        "extendedResourceName": "example.com/gpu",
    },
}
_TOLERATIONS = [
    {"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "x", "value": "y", "tolerationSeconds": 3},
]
_CLAIM_SPEC = {
    "devices": {
        "requests": [
            {
                "name": "one",
                "exactly": {
                    "deviceClassName": "gpu.example.com",
                    "selectors": [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "A100"'}}],
                    "allocationMode": "ExactCount",
                    "count": 2,
                    "tolerations": _TOLERATIONS,
                    "capacity": {"requests": {"memory": "10Gi"}},
                    "derivedAttributes": [
                        {"name": "gpu.example.com/half", "expression": 'device.attributes["gpu.example.com"].numa'}
                    ],
                },
            },
            {
                "name": "two",
                "firstAvailable": [
                    {"name": "big", "deviceClassName": "big", "allocationMode": "All", "tolerations": _TOLERATIONS},
                    {
                        "name": "small",
                        "deviceClassName": "small",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "derivedAttributes": [{"name": "gpu.example.com/half", "expression": "1 + 1"}],
                    },
                ],
            },
        ],
        "constraints": [
            {"requests": ["one", "two/small"], "matchAttribute": "gpu.example.com/half"},
            {"distinctAttribute": "gpu.example.com/slot"},
        ],
        "config": [
            {"requests": ["one", "two"], "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}},
            {"opaque": {"driver": "gpu.example.com", "parameters": {}}},
        ],
    }
}
_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {
        "name": "claim",
        "namespace": "default",
        "finalizers": ["example.com/keep"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
    },
    "spec": _CLAIM_SPEC,
}
_TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"generateName": "template-", "namespace": "default"},
    "spec": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": _CLAIM_SPEC},
}
NODE_SELECTOR = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux", "windows"]},
                {"key": "gpus", "operator": "Gt", "values": ["2"]},
                {"key": "x", "operator": "Exists"},
            ],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
        }
    ]
}
_DEVICE = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "A100"},
        "gpu.example.com/numa": {"int": 1},
        "driverVersion": {"version": "570.86.15"},
        "healthy": {"bool": True},
        "links": {"strings": ["a", "b"]},
        "ports": {"ints": [1, 2]},
        "flags": {"bools": [True]},
        "releases": {"versions": ["1.2.3"]},
    },
    "capacity": {
        "memory": {
            "value": "80Gi",
            "requestPolicy": {"default": "10Gi", "validRange": {"min": "5Gi", "max": "80Gi", "step": "5Gi"}},
        },
        "gpu.example.com/cores": {
            "value": "8",
            "requestPolicy": {"default": "2", "validValues": ["1", "2", "4", "8"]},
        },
        "bandwidth": {"value": "1500m"},
    },
    "taints": [{"key": "example.com/broken", "value": "yes", "effect": "NoExecute"}],
    "bindsToNode": True,
    "bindingConditions": ["example.com/ready"],
    "bindingFailureConditions": ["example.com/failed"],
    "allowMultipleAllocations": True,
    "nodeAllocatableResources": {
        "cpu": {"mapping": {"deviceMultiplier": "2"}, "overhead": {"perPod": "100m"}},
        "memory": {"mapping": {"capacityKey": "memory", "capacityMultiplier": "1"}},
    },
}
_SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-1-gpu"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "node-1", "generation": 3, "resourceSliceCount": 1},
        "nodeName": "node-1",
        "devices": [_DEVICE, {"name": "gpu-1", "attributes": {"model": {"string": "A100"}}}],
        "skipNodeOperations": ["NodePrepareResources", "NodeUnprepareResources"],
    },
}
_PARTITIONS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "partitions"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "pool/a", "generation": 1, "resourceSliceCount": 2},
        "perDeviceNodeSelection": True,
        "partitionTypeAttribute": "gpu.example.com/profile",
        "devices": [
            {
                "name": "half",
                "attributes": {"profile": {"string": "half"}},
                "allNodes": True,
                "consumesCounters": [
                    {
                        "counterSet": "gpu-0",
                        "counters": {"memory": {"value": "40Gi"}, "slices": {"value": "4"}},
                        "compatibilityGroups": ["a", "b"],
                    },
                    {"counterSet": "gpu-1", "counters": {"memory": {"value": "1Gi"}}},
                ],
            },
            {"name": "other", "nodeName": "node-1"},
            {"name": "third", "nodeSelector": NODE_SELECTOR},
        ],
    },
}
_COUNTERS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "counters"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "pool/a", "generation": 1, "resourceSliceCount": 2},
        "nodeSelector": NODE_SELECTOR,
        "sharedCounters": [
            {"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}, "slices": {"value": "8"}}},
            {"name": "gpu-1", "counters": {"memory": {"value": "80Gi"}}},
        ],
    },
}
_RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "broken"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
        "taint": {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"},
    },
}

GOOD: tuple[Json, ...] = (_CLASS, _CLAIM, _TEMPLATE, _SLICE, _PARTITIONS, _COUNTERS, _RULE)
"""Objects that a server with every feature on accepts; together they have nearly every field."""
KINDS = tuple(dict.fromkeys(each["kind"] for each in GOOD))
NAMES = ("class", "claim", "template", "slice", "partitions", "counters", "rule")
"""What tables call the good objects, in their order."""

TEXTS = [
    *(
        "",
        "a",
        "A",
        "a.b",
        "A.b",
        "a/b",
        "a/b/c",
        "/",
        "a/",
        "/b",
        "-a",
        "a-",
        "a_b",
        "_",
        "é",
        "a b",
        "0",
        "1.2",
        "gpu-0",
    ),
    *(
        "one",
        "two",
        "two/small",
        "two/big",
        "two/none",
        "one/x",
        "One",
        "a..b",
        "x" * 63,
        "x" * 64,
        "x" * 33,
        "x" * 254,
    ),
    *(
        "gpu.example.com",
        "gpu.example.com/half",
        "GPU.example.com/Half",
        "x" * 64 + "/a",
        "a/" + "b" * 33,
        "\u212a",
        "\u017f",
    ),
    *(
        "Exists",
        "Equal",
        "In",
        "NotIn",
        "Gt",
        "Lt",
        "DoesNotExist",
        "All",
        "ExactCount",
        "NoSchedule",
        "NoExecute",
        "None",
    ),
    *(
        "true",
        "1",
        "device.driver",
        "device.foo",
        "((",
        'device.attributes["a"].b',
        "1 + 1",
        "'x'",
        "device.attributes",
    ),
    *(
        "cpu",
        "memory",
        "hugepages-2Mi",
        "ephemeral-storage",
        "requests.a/b",
        "kubernetes.io/x",
        "a.kubernetes.io/b",
        "a/b_",
    ),
    *(
        "1.2.3",
        "v1.2.3",
        "1.2",
        "1.2.3-rc.1+b",
        "01.2.3",
        "metadata.name",
        "NodePrepareResources",
        "*",
        "v1",
        "apps/v1",
        "a//",
    ),
    *(
        "NodeUnprepareResources",
        "orphan",
        "foregroundDeletion",
        "Event",
        "example.com/ready",
        "example.com/failed",
        "node-1",
    ),
    "x" * 10241,
]
AMOUNTS = [
    *(
        "0",
        "1",
        "2",
        "-1",
        "4",
        "5",
        "8",
        "10Gi",
        "5Gi",
        "80Gi",
        "81Gi",
        "1500m",
        "1.5",
        "0.5",
        "100m",
        "1u",
        "1n",
        "1k",
    ),
    *(
        "1000",
        "1.0",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "1Ki",
        "1024",
        "3",
        "1e3",
        "7",
    ),
    *("9223372036854775807m", "9223372036854775808m", "0.0001", "-5Gi"),
]
_NUMBERS = [0, 1, -1, 2, 3, 7, 2**31, 2**63 - 1, -(2**63)]
_AMOUNT_FIELDS = {"value", "default", "min", "max", "step", "validValues", "perPod", "perContainer", "memory"} | {
    "capacityMultiplier",
    "deviceMultiplier",
}


def places(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below the top."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from places(child, (*path, key))


def at(value: Json, path: tuple[Any, ...]) -> Json:
    """What is at a path."""
    for key in path:
        value = value[key]
    return value


def is_amount(path: tuple[Any, ...]) -> bool:
    """Whether a text at a path is an amount."""
    names = [key for key in path if isinstance(key, str)]
    if "parameters" in names or "tolerations" in names or "taints" in names or "taint" in names:
        return False
    if names[-1] == "memory":
        return names[-2:-1] == ["requests"]
    if names[-1] == "value":
        return True
    return names[-1] in _AMOUNT_FIELDS


def _change(rng: random.Random, obj: Json, path: tuple[Any, ...]) -> None:
    parent, key = at(obj, path[:-1]), path[-1]
    value = parent[key]
    if isinstance(value, bool):
        parent[key] = not value
    elif isinstance(value, int):
        parent[key] = rng.choice(_NUMBERS)
    elif isinstance(value, str):
        parent[key] = rng.choice(AMOUNTS if is_amount(path) else TEXTS)
    elif isinstance(value, list) and value:
        _change_list(rng, parent, key, value)
    elif isinstance(value, dict) and value:
        _change_mapping(rng, key, value)


def _change_list(rng: random.Random, parent: Json, key: Any, value: list[Json]) -> None:
    match rng.randrange(4):
        case 0:
            value.append(copy.deepcopy(rng.choice(value)))
        case 1:
            value.extend(copy.deepcopy(rng.choice(value)) for _ in range(rng.choice([1, 3, 9, 33, 130])))
        case 2:
            value.pop(rng.randrange(len(value)))
            if not value and isinstance(parent, dict):
                del parent[key]
        case _:
            rng.shuffle(value)


def _change_mapping(rng: random.Random, key: Any, value: dict[str, Json]) -> None:
    old = rng.choice(sorted(value))
    if key in _MAPS and rng.random() < 0.7:
        names = [rng.choice(TEXTS[:60])]
        if rng.random() < 0.3:
            names = [f"k{number}" for number in range(rng.choice([2, 31, 33, 49]))]
        value.update({name: copy.deepcopy(value[old]) for name in names})
    elif key in _MAPS or old not in _NEEDED:
        del value[old]


_MAPS = {"attributes", "capacity", "counters", "labels", "annotations", "nodeAllocatableResources"}
_NEEDED = {
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "driver",
    "pool",
    "name",
    "key",
    "effect",
    "expression",
    "taint",
} | {
    "deviceClassName",
    "parameters",
    "resourceSliceCount",
    "value",
    "counterSet",
    "counters",
    "min",
    "operator",
    "uid",
    "nodeSelectorTerms",
    "matchFields",
}


def changed(rng: random.Random, good: Json, changes: int) -> Json:
    """A good object with that many changes, each of which may make it bad."""
    obj = copy.deepcopy(good)
    for _ in range(changes):
        choices = [
            path
            for path in places(obj)
            if path[0] not in ("apiVersion", "kind") and path != ("metadata",) and path != ("spec",)
        ]
        _change(rng, obj, rng.choice(choices))
    return obj


def random_object(rng: random.Random) -> Json:
    """An object of any kind with up to four changes."""
    return changed(rng, rng.choice(GOOD), rng.choice([0, 1, 1, 1, 2, 2, 3, 4]))
