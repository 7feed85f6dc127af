"""Clusters and claims for the allocator's benchmark, as plain JSON data that both sides read.

The shapes are those of common GPU servers; names and numbers are synthetic.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["CLASSES", "DRIVER", "claim", "cluster", "held", "held_partitions", "heterogeneous", "homogeneous", "migs"]

DRIVER = "gpu.example.com"
HERE = f'device.attributes["{DRIVER}"]'
CLASSES = [
    {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}
]
FEATURES = dict.fromkeys(
    (
        "AdminAccess",
        "ConsumableCapacity",
        "DeviceBindingAndStatus",
        "DeviceTaints",
        "FractionalCapacityRange",
        "PartitionableDevices",
        "PrioritizedList",
    ),
    True,
)
"""What Kubernetes 1.37 has on: without the alpha features, upstream takes its faster implementation."""
MODELS = (
    ("A10", "24Gi"),
    ("A30", "24Gi"),
    ("A40", "48Gi"),
    ("A100", "40Gi"),
    ("A100", "80Gi"),
    ("H100", "80Gi"),
    ("H100", "94Gi"),
    ("H200", "141Gi"),
    ("L4", "24Gi"),
    ("L40S", "48Gi"),
    ("B200", "180Gi"),
    ("V100", "32Gi"),
)
VERSIONS = ("535.104.5", "550.54.15", "550.90.7", "560.35.3", "570.86.15")
FIRMWARE = ("1.0", "1.1", "2.0", "2.1")

Object = dict[str, Any]


def _device(node: int, index: int, shape: tuple[str, str, str, str], root: str) -> Object:
    model, memory, version, firmware = shape
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "model": {"string": model},
            "driverVersion": {"version": version},
            "firmware": {"string": firmware},
            "index": {"int": index},
            "uuid": {"string": f"GPU-{node:05d}-{index:02d}"},
            "numa": {"int": index // 4},
            "resource.kubernetes.io/pcieRoot": {"string": root},
        },
        "capacity": {"memory": {"value": memory}},
    }


def _slice(node: int, devices: list[Object], part: int = 0, parts: int = 1, **spec: object) -> Object:
    name = f"node-{node:05d}"
    about: Object = {"driver": DRIVER, "nodeName": name, "pool": {"name": name, "resourceSliceCount": parts}}
    if devices:
        about["devices"] = devices
    return {"metadata": {"name": f"{name}-{part}"}, "spec": about | spec}


def cluster(slices: list[Object], nodes: int) -> Object:
    """The file that `structured.load` reads."""
    return {
        "features": FEATURES,
        "slices": slices,
        "classes": CLASSES,
        "allocatedClaims": [],
        "nodes": [{"metadata": {"name": f"node-{node:05d}"}} for node in range(nodes)],
    }


def homogeneous(nodes: int, gpus: int = 8) -> Object:
    """Equal nodes; two GPUs at each PCIe root."""
    shape = ("H100", "80Gi", "570.86.15", "2.1")
    return cluster(
        [
            _slice(node, [_device(node, index, shape, f"pci0000:{index // 2:02x}") for index in range(gpus)])
            for node in range(nodes)
        ],
        nodes,
    )


def heterogeneous(nodes: int, gpus: int = 8, kinds: int = 300, seed: int = 3) -> Object:
    """Nodes of many kinds out of 240 device shapes, up to three in a node; every node has PCIe names of its own."""
    rng = random.Random(seed)
    shapes = [
        (model, memory, version, firmware) for model, memory in MODELS for version in VERSIONS for firmware in FIRMWARE
    ]
    rng.shuffle(shapes)
    layouts = []
    for kind in range(kinds):
        # Each shape is in some kind; the others are drawn.
        some = [shapes[kind % len(shapes)], *rng.sample(shapes, rng.randint(0, 2))]
        layouts.append([rng.choice(some) if index else some[0] for index in range(gpus)])
    slices = []
    for node in range(nodes):
        layout = layouts[rng.randrange(kinds)]
        devices = [_device(node, index, shape, f"pci{node:04x}:{index // 2:02x}") for index, shape in enumerate(layout)]
        slices.append(_slice(node, devices))
    return cluster(slices, nodes)


PARTITIONS = (("1g", 1, 1, 7), ("2g", 2, 2, 3), ("3g", 3, 4, 2), ("4g", 4, 4, 1), ("7g", 7, 8, 1))
"""Profiles of a GPU that can be partitioned: name, compute slices, memory slices, placements."""


def partitions(gpu: int, *, larger_first: bool = False) -> list[Object]:
    """Every partition of one GPU, as devices that draw on its counters."""
    found = []
    for profile, compute, memory, placements in PARTITIONS[:: -1 if larger_first else 1]:
        for placement in range(placements):
            counters = {"compute": {"value": str(compute)}, "memory": {"value": str(memory)}}
            found.append(
                {
                    "name": f"gpu-{gpu}-{profile}-{placement}",
                    "attributes": {"profile": {"string": profile}, "parent": {"int": gpu}},
                    "consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": counters}],
                }
            )
    return found


def counter_sets(gpus: int) -> list[Object]:
    """The counters of some GPUs that can be partitioned."""
    full = {"compute": {"value": "7"}, "memory": {"value": "8"}}
    return [{"name": f"gpu-{gpu}", "counters": full} for gpu in range(gpus)]


def mig_slices(node: int, gpus: int) -> list[Object]:
    """A node's pool of partitions: at most 64 devices in a slice, the counters in one of their own."""
    devices = [device for gpu in range(gpus) for device in partitions(gpu)]
    parts = [devices[start : start + 56] for start in range(0, len(devices), 56)]
    count = len(parts) + 1
    return [
        *(_slice(node, part, number, count) for number, part in enumerate(parts)),
        _slice(node, [], len(parts), count, sharedCounters=counter_sets(gpus)),
    ]


def migs(nodes: int, gpus: int = 8) -> Object:
    """Nodes whose GPUs are all partitionable."""
    return cluster([slice_ for node in range(nodes) for slice_ in mig_slices(node, gpus)], nodes)


def held(description: Object, occupancy: float, seed: int = 5) -> list[Object]:
    """Claims that hold a random part of a cluster's devices, one claim a device."""
    rng = random.Random(seed)
    return [
        _holder(slice_["spec"], device, number)
        for number, slice_ in enumerate(description["slices"])
        for device in slice_["spec"].get("devices", [])
        if rng.random() < occupancy
    ]


def held_partitions(description: Object, occupancy: float, seed: int = 5) -> list[Object]:
    """Claims that hold random partitions, of each GPU as many as fit together in a part of its compute slices."""
    rng = random.Random(seed)
    amounts = {profile: (compute, memory) for profile, compute, memory, _ in PARTITIONS}
    claims: list[Object] = []
    for number, slice_ in enumerate(description["slices"]):
        spec = slice_["spec"]
        by_gpu: dict[int, list[Object]] = {}
        for device in spec.get("devices", []):
            by_gpu.setdefault(device["attributes"]["parent"]["int"], []).append(device)
        for devices in by_gpu.values():
            compute, memory = round(7 * occupancy), 8
            for device in rng.sample(devices, len(devices)):
                needed = amounts[device["attributes"]["profile"]["string"]]
                if needed[0] <= compute and needed[1] <= memory:
                    compute, memory = compute - needed[0], memory - needed[1]
                    claims.append(_holder(spec, device, number))
    return claims


def _holder(spec: Object, device: Object, number: int) -> Object:
    result = {"request": "r", "driver": DRIVER, "pool": spec["pool"]["name"], "device": device["name"]}
    return {
        "metadata": {"name": f"held-{number}-{device['name']}", "namespace": "default"},
        "spec": {},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


def request(name: str, count: int = 1, selector: str = "", **exactly: object) -> Object:
    """A request for some devices of the class."""
    about: Object = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **exactly}
    if selector:
        about["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": about}


def claim(name: str, *requests: Object, constraints: list[Object] | None = None) -> Object:
    """A claim."""
    devices: Object = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = constraints
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}}
