"""Small clusters with many kinds of nodes, and random things that happen to them.

Nodes have whole GPUs, partitions with counters, shared devices with capacity, or a pool that several nodes reach; some
are equal, so that what is known of one is used for another.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from draht.allocator import Snapshot
from draht.api.core import Node
from draht.api.resource import DeviceClass, ResourceClaim, ResourceSlice

__all__ = ["claims_of", "cluster", "slice_of"]

DRIVER = "gpu.example.com"
ANY = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
HERE = f'device.attributes["{DRIVER}"]'

Object = dict[str, Any]


def cluster(seed: int, nodes: int = 12) -> Snapshot:
    """A random cluster in which nothing is held."""
    chance = random.Random(seed)
    slices = [piece for node in range(nodes) for piece in _slices(chance, node)]
    if chance.random() < 0.5:
        slices.append(_shared_pool(nodes))
    named = [{"metadata": {"name": f"node-{node}", "labels": {"rack": str(node % 3)}}} for node in range(nodes)]
    classes = [{"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}]
    return Snapshot.of(
        slices=msgspec.convert(slices, tuple[ResourceSlice, ...]),
        classes=msgspec.convert(classes, tuple[DeviceClass, ...]),
        nodes=msgspec.convert(named, tuple[Node, ...]),
    )


def slice_of(chance: random.Random, node: int) -> ResourceSlice:
    """What a node's first slice may be replaced by."""
    return msgspec.convert(_whole(chance, node), ResourceSlice)


def _slice(node: int, part: int, parts: int, generation: int = 1, **spec: object) -> Object:
    pool = {"name": f"node-{node}", "resourceSliceCount": parts, "generation": generation}
    return {
        "metadata": {"name": f"node-{node}-{part}"},
        "spec": {"driver": DRIVER, "nodeName": f"node-{node}", "pool": pool, **spec},
    }


def _slices(chance: random.Random, node: int) -> list[Object]:
    kind = chance.choice(["whole", "whole", "partitions", "shares"])
    if kind == "whole":
        return [_whole(chance, node)]
    if kind == "shares":
        policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
        devices = [
            {
                "name": f"gpu-{index}",
                "attributes": {"model": {"string": "S"}, "numa": {"int": index}},
                "allowMultipleAllocations": True,
                "capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}},
            }
            for index in range(2)
        ]
        return [_slice(node, 0, 1, devices=devices)]
    devices = []
    for gpu in range(2):
        for size in (1, 1, 2):
            devices.append(
                {
                    "name": f"gpu-{gpu}-{len(devices)}",
                    "attributes": {"model": {"string": "M"}, "numa": {"int": gpu}, "size": {"int": size}},
                    "consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": {"slices": {"value": str(size)}}}],
                }
            )
    sets = [{"name": f"gpu-{gpu}", "counters": {"slices": {"value": "3"}}} for gpu in range(2)]
    return [_slice(node, 0, 2, devices=devices), _slice(node, 1, 2, sharedCounters=sets)]


def _whole(chance: random.Random, node: int) -> Object:
    model = chance.choice(["A", "B"])
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "model": {"string": model},
                "numa": {"int": index // 2},
                "uuid": {"string": f"{node}-{index}"},
                "size": {"int": index % 2 + 1},
            },
            "capacity": {"memory": {"value": f"{40 + 40 * (index % 2)}Gi"}},
        }
        for index in range(4)
    ]
    return _slice(node, 0, 1, devices=devices)


def _shared_pool(nodes: int) -> Object:
    devices = [{"name": f"nic-{index}", "attributes": {"model": {"string": "N"}}} for index in range(2)]
    requirement = {"key": "rack", "operator": "In", "values": ["0", "2"]}
    return {
        "metadata": {"name": f"shared-{nodes}"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": "shared", "resourceSliceCount": 1},
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]},
            "devices": devices,
        },
    }


def claims_of(chance: random.Random, number: int) -> tuple[ResourceClaim, ...]:
    """The claims of one pod, of one of a few shapes."""
    shape = chance.randrange(7)
    if shape == 0:
        devices: Object = {"requests": [{"name": "r", "exactly": ANY}]}
    elif shape == 1:
        devices = {
            "requests": [{"name": "r", "exactly": ANY | {"count": 2}}],
            "constraints": [{"matchAttribute": f"{DRIVER}/numa"}],
        }
    elif shape == 2:
        size = [{"cel": {"expression": f"has({HERE}.size) && {HERE}.size == 2"}}]
        devices = {"requests": [{"name": "r", "exactly": ANY | {"selectors": size}}]}
    elif shape == 3:
        capacity = {"capacity": {"requests": {"memory": "15Gi"}}}
        devices = {"requests": [{"name": "r", "exactly": ANY | capacity}]}
    elif shape == 4:
        first = {"name": "a", **ANY, "selectors": [{"cel": {"expression": f'{HERE}.model == "B"'}}]}
        second = {"name": "b", **ANY, "selectors": [{"cel": {"expression": f'{HERE}.model == "N"'}}]}
        devices = {"requests": [{"name": "r", "firstAvailable": [first, second]}, {"name": "s", "exactly": ANY}]}
    elif shape == 5:
        # Partitions have a size, shared devices don't: an error where the search meets one.
        devices = {
            "requests": [{"name": "r", "exactly": ANY | {"selectors": [{"cel": {"expression": f"{HERE}.size == 1"}}]}}]
        }
    else:
        unique = [{"cel": {"expression": f'has({HERE}.uuid) && {HERE}.uuid.endsWith("-3")'}}]
        devices = {"requests": [{"name": "r", "exactly": ANY | {"selectors": unique}}]}
    claims = [{"metadata": {"name": f"claim-{number}", "namespace": "default"}, "spec": {"devices": devices}}]
    if chance.random() < 0.2:
        claims.append(
            {
                "metadata": {"name": f"claim-{number}-b", "namespace": "default"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": ANY}]}},
            }
        )
    return msgspec.convert(claims, tuple[ResourceClaim, ...])
