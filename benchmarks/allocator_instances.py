"""Instances on one node that make upstream's search long (kubernetes/kubernetes#131730 has the shape).

Each has many devices, several requests, and a test that fails late. ``seconds`` is what upstream may take before it is
stopped; where it is known not to finish within minutes, that is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from allocator_clusters import CLASSES, DRIVER, FEATURES, HERE, claim, counter_sets, partitions, request

__all__ = ["INSTANCES", "Instance"]

Object = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    """One hard question."""

    name: str
    about: str
    seconds: float
    devices: list[Object]
    claims: list[Object]
    counters: list[Object]

    def case(self) -> Object:
        """As `structured.allocate` takes it."""
        specs: list[Object] = [{"devices": self.devices[at : at + 60]} for at in range(0, len(self.devices), 60)]
        if self.counters:
            specs.append({"sharedCounters": self.counters})
        pool = {"name": "node-0", "resourceSliceCount": len(specs)}
        return {
            "features": FEATURES,
            "slices": [
                {
                    "metadata": {"name": f"slice-{number}"},
                    "spec": {"driver": DRIVER, "nodeName": "node-0", "pool": pool, **spec},
                }
                for number, spec in enumerate(specs)
            ],
            "classes": CLASSES,
            "allocatedClaims": [],
            "nodes": [{"metadata": {"name": "node-0"}}],
            "claims": self.claims,
            "on": ["node-0"],
            "timeoutMs": int(self.seconds * 1000),
        }


def _gpus(count: int, attributes: Callable[[int], Object]) -> list[Object]:
    return [
        {
            "name": f"gpu-{index:02}",
            "attributes": {"uuid": {"string": f"GPU-{index}"}, "index": {"int": index}, **attributes(index)},
        }
        for index in range(count)
    ]


def _shared(count: int) -> list[Object]:
    return [
        {"name": f"gpu-{index:02}", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}
        for index in range(count)
    ]


def _share(name: str, amount: str) -> Object:
    return request(name, capacity={"requests": {"memory": amount}})


def _match(attribute: str, *requests: str) -> Object:
    return {"matchAttribute": f"{DRIVER}/{attribute}"} | ({"requests": list(requests)} if requests else {})


def _instances() -> Iterator[Instance]:
    special = _gpus(20, lambda index: {"special": {"bool": index < 4}})
    yield Instance(
        "H1", "20 GPUs: 10 any, then 4 special ones, which come first: late", 15, special,
        [claim("c", request("any", 10), request("special", 4, f"{HERE}.special"))], [],
    )  # fmt: skip
    yield Instance(
        "H2", "18 GPUs: 9 + 9 + 1: impossible", 25, _gpus(18, lambda _: {}),
        [claim("c", request("a", 9), request("b", 9), request("c", 1))], [],
    )  # fmt: skip
    for name, last, about, seconds in (("H3", 10, "late", 25.0), ("H3b", 9, "impossible", 25.0)):
        groups = [0] * 9 + [1] * 9 + [2] * last
        yield Instance(
            name, f"10 requests in one group of 9/9/{last}: {about}", seconds,
            _gpus(len(groups), lambda index, groups=groups: {"group": {"int": groups[index]}}),  # type: ignore[misc] # mypy infers no type for a lambda with a default
            [claim("c", *(request(f"r{number}") for number in range(10)), constraints=[_match("group")])], [],
        )  # fmt: skip
    for name, large, small, about in (("H4", 9, 18, "impossible"), ("H4b", 6, 24, "late")):
        yield Instance(
            name, f"6 partitionable GPUs: {large} x 3g + {small} x 1g: {about}", 6,
            [device for gpu in range(6) for device in partitions(gpu)],
            [claim("c", request("l", large, f'{HERE}.profile == "3g"'),
                   request("s", small, f'{HERE}.profile == "1g"'))],
            counter_sets(6),
        )  # fmt: skip
    yield Instance(
        "H5", "10 shares of 30 + 1 of 40 on 5 x 80: impossible", 15, _shared(5),
        [claim("c", *(_share(f"a{number}", "30Gi") for number in range(10)), _share("b", "40Gi"))], [],
    )  # fmt: skip
    alternatives = {
        "firstAvailable": [
            {"name": model, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1,
             "selectors": [{"cel": {"expression": f'{HERE}.model == "{model}"'}}]}
            for model in ("a", "b")
        ]
    }  # fmt: skip
    yield Instance(
        "H6", "4 x a or else b, then 9 of a: late", 15,
        _gpus(16, lambda index: {"model": {"string": "a" if index < 9 else "b"}}),
        [claim("c", *({"name": f"r{number}", **alternatives} for number in range(4)),
               request("rest", 9, f'{HERE}.model == "a"'))], [],
    )  # fmt: skip
    yield Instance(
        "H7", "a claim of 10, then 4 claims that need the pairs among the first 8: late, across claims", 15,
        _gpus(18, lambda index: {"pair": {"int": index // 2 if index < 8 else index}}),
        [claim("c", request("r", 10)),
         *(claim(f"pair-{number}", request("r", 2), constraints=[_match("pair")]) for number in range(4))], [],
    )  # fmt: skip
    yield Instance(
        "H8", "5 of distinct uuid, then 9 at one of two NUMA nodes of 8: impossible", 12,
        _gpus(16, lambda index: {"numa": {"int": index % 2}}),
        [claim("c", request("a", 5), request("b", 9),
               constraints=[{"distinctAttribute": f"{DRIVER}/uuid", "requests": ["a"]}, _match("numa", "b")])], [],
    )  # fmt: skip
    yield Instance(
        "M9", "8 partitionable GPUs, 9 claims for a whole one: impossible", 15,
        [device for gpu in range(8) for device in partitions(gpu)],
        [claim(f"c{number}", request("r", 1, f'{HERE}.profile == "7g"')) for number in range(9)], counter_sets(8),
    )  # fmt: skip
    yield Instance(
        "S31", "31 shares of 35 + 1 of 50 on 16 x 80: impossible", 6, _shared(16),
        [claim("c", *(_share(f"a{number}", "35Gi") for number in range(31)), _share("b", "50Gi"))], [],
    )  # fmt: skip


INSTANCES = list(_instances())
